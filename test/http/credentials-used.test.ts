/** The account of a call of a model: the organization's own, or else the platform's. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { recordEvents } from '../support/outbox.ts';
import {
  answering,
  type RecordedRequest,
  type ScriptedProvider,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import {
  newThinker as newUnrecorded,
  providerKeys,
  startThinkers,
  type Thinker,
  type Thinkers,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

/** A thinker whose events are recorded. */
const newThinker: typeof newUnrecorded = async (...given) => {
  const thinker = await newUnrecorded(...given);
  await recordEvents(world.platform.database, thinker.organization);
  return thinker;
};

let world: Thinkers;
/** Where the organization's own account is. */
let own: ScriptedProvider;
let ollama: ScriptedProvider;
beforeAll(async () => {
  [own, ollama] = [await startScriptedProvider(), await startScriptedProvider()];
  world = await startThinkers({
    environment: { OLLAMA_BASE_URL: ollama.openaiBaseUrl, OLLAMA_API_KEY: 'key-of-ollama' },
  });
});
afterAll(async () => {
  await world.stop();
  await own.close();
  await ollama.close();
});
beforeEach(() => {
  for (const provider of [world.provider, own, ollama]) provider.script(answering('Yes.'));
});

const ownKey = 'sk-of-the-organization-0123';

function store({ organization }: Thinker, provider: string, fields: object) {
  const path = `/admin/organizations/${organization}/credentials/${provider}`;
  return world.platform.admin('PUT', path, fields);
}

const remove = ({ organization }: Thinker, provider: string) =>
  world.platform.admin('DELETE', `/admin/organizations/${organization}/credentials/${provider}`);

/** The requests that arrive meanwhile, of all providers. */
async function requestsDuring(work: () => Promise<unknown>) {
  const providers = { platform: world.provider, own, ollama };
  const before = Object.values(providers).map(({ requests }) => requests.length);
  await work();
  const after = Object.entries(providers).map(
    ([name, { requests }], i) => [name, requests.slice(before[i])] as const,
  );
  return Object.fromEntries(after) as unknown as Record<
    keyof typeof providers,
    readonly RecordedRequest[]
  >;
}

/** Failed calls that the metric counts to credentials. */
async function callsRefusedForCredentials(): Promise<number> {
  const { text } = await world.platform.request('GET', '/metrics');
  return Number(/^service_model_calls_total\{outcome="credentials"\} (\d+)$/m.exec(text)?.[1]);
}

/** With which key a request was made; undefined when with none. */
const keyOf = ({ protocol, headers }: RecordedRequest): string | undefined =>
  protocol === 'messages'
    ? headers['x-api-key']
    : headers['authorization']?.replace(/^Bearer /, '');

/** Asks once: at which provider the request arrived, and with which key. */
async function wayOf(thinker: Thinker) {
  let job: { status: string } | undefined;
  const requests = await requestsDuring(async () => {
    job = await thinker.task('Is it?');
  });
  expect(job).toMatchObject({ status: 'completed' });
  return Object.entries(requests).flatMap(([at, all]) =>
    all.map((request) => ({ at, key: keyOf(request) })),
  );
}

/** A job that fails with `missing_credentials`; the requests that it made, and its message. */
async function failureOf(thinker: Thinker) {
  // biome-ignore lint/suspicious/noExplicitAny: the job's body
  let job: any;
  const requests = await requestsDuring(async () => {
    job = await thinker.task('Is it?');
  });
  expect(job).toMatchObject({
    status: 'failed',
    attempt: 1,
    error: { code: 'missing_credentials' },
  });
  const rows = await world.platform.database.read.kysely
    .selectFrom('events')
    .select(['type', 'data'])
    .where('organization_id', '=', thinker.organization)
    .orderBy('seq')
    .execute();
  const ofJob = rows.filter(({ data }) => data.includes(job.job_id));
  expect(ofJob.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['skill.failed', 'agent.error']),
  );
  const error = ofJob.find(({ type }) => type === 'agent.error');
  expect(JSON.parse(error?.data ?? '')).toMatchObject({ ...job.error, job_id: job.job_id });
  return { ...requests, message: job.error.message as string };
}

describe.each([
  ['openai', providerKeys.openai],
  ['anthropic', providerKeys.anthropic],
])('credentials for %s', (provider, platformKey) => {
  const thinkerOf = () => newThinker(world.platform, { model: `${provider}/test` });
  const ownUrl = () => (provider === 'openai' ? own.openaiBaseUrl : own.anthropicBaseUrl);

  test("of an organization are used for its agents alone, the platform's for all others", async () => {
    const [thinker, other] = [await thinkerOf(), await thinkerOf()];
    await store(thinker, provider, { api_key: ownKey, base_url: ownUrl() });

    expect(await wayOf(thinker)).toEqual([{ at: 'own', key: ownKey }]);
    expect(await wayOf(other)).toEqual([{ at: 'platform', key: platformKey }]);
  });

  test("without a base_url are sent to the platform's", async () => {
    const thinker = await thinkerOf();
    await store(thinker, provider, { api_key: ownKey });

    expect(await wayOf(thinker)).toEqual([{ at: 'platform', key: ownKey }]);
  });

  test("that are stored, replaced and removed count at once; then the platform's do again", async () => {
    const thinker = await thinkerOf();
    expect(await wayOf(thinker)).toEqual([{ at: 'platform', key: platformKey }]);

    await store(thinker, provider, { api_key: ownKey, base_url: ownUrl() });
    expect(await wayOf(thinker)).toEqual([{ at: 'own', key: ownKey }]);
    await store(thinker, provider, { api_key: 'another-key', base_url: ownUrl() });
    expect(await wayOf(thinker)).toEqual([{ at: 'own', key: 'another-key' }]);
    await remove(thinker, provider);

    expect(await wayOf(thinker)).toEqual([{ at: 'platform', key: platformKey }]);
  });

  test('that another process removes are used no longer within a second', async () => {
    const thinker = await thinkerOf();
    await store(thinker, provider, { api_key: ownKey, base_url: ownUrl() });
    await wayOf(thinker);
    await world.platform.database.write((tx) =>
      tx.kysely
        .deleteFrom('credentials')
        .where('organization_id', '=', thinker.organization)
        .execute(),
    );

    const way = await waitFor(
      async () => {
        const found = await wayOf(thinker);
        return found[0]?.at === 'platform' ? found : null;
      },
      { describe: "the platform's credentials are used", deadlineMs: 10_000 },
    );

    expect(way).toEqual([{ at: 'platform', key: platformKey }]);
  });

  test.each([
    [401, ''],
    // It may be about something else, so the provider's words are shown, without the key.
    [403, ': bad …'],
  ])('that the provider refuses with %d fail the job after one request', async (status, words) => {
    const thinker = await thinkerOf();
    await store(thinker, provider, { api_key: ownKey, base_url: ownUrl() });
    own.script(() => ({ fault: { status, body: { error: { message: `bad ${ownKey}` } } } }));

    const failed = await failureOf(thinker);

    expect(failed.own).toHaveLength(1);
    expect(failed.platform).toHaveLength(0);
    expect(failed.message).toBe(
      `The provider ${provider} does not accept the credentials (${status}); replace the credentials stored for the organization${words}`,
    );
    expect(failed.message).not.toContain(ownKey);
    const { today, days } = (await thinker.get('/api/agents/thinker/usage')).body;
    expect(today).toMatchObject({ used: 0, reserved: 0 });
    expect(days).toMatchObject([{ calls: 1, unreported_calls: 0, total_tokens: 0 }]);
  });

  test('that cannot be decrypted fail the job before any request, with the remedy in the message', async () => {
    const thinker = await thinkerOf();
    const other = await newThinker(world.platform);
    await store(other, provider, { api_key: ownKey });
    await store(thinker, provider, { api_key: 'of-its-own' });
    // A key that was copied from another organization is none.
    await world.platform.database.write(async (tx) => {
      const { api_key } = await tx.kysely
        .selectFrom('credentials')
        .select('api_key')
        .where('organization_id', '=', other.organization)
        .executeTakeFirstOrThrow();
      await tx.kysely
        .updateTable('credentials')
        .set({ api_key })
        .where('organization_id', '=', thinker.organization)
        .execute();
    });

    const before = await callsRefusedForCredentials();
    const failed = await failureOf(thinker);

    expect(await callsRefusedForCredentials()).toBe(before + 1);
    expect([...failed.own, ...failed.platform]).toEqual([]);
    expect(failed.message).toBe(
      `The stored API key for ${provider} cannot be decrypted: it was stored under another ENCRYPTION_KEY; store it again`,
    );
  });

  test('with a base_url alone are sent there without any key', async () => {
    const thinker = await thinkerOf();
    await store(thinker, provider, { base_url: ownUrl() });

    const requests = await requestsDuring(() => thinker.task('Is it?'));

    expect(requests.platform).toEqual([]);
    expect(requests.own).toHaveLength(1);
    const { headers } = requests.own[0] as (typeof requests.own)[number];
    expect(Object.keys(headers)).not.toContain('authorization');
    expect(Object.keys(headers)).not.toContain('x-api-key');
  });
});

describe('credentials for a provider that the environment names', () => {
  const thinkerOf = () => newThinker(world.platform, { model: 'ollama/llama' });

  test('with a base_url alone send no key', async () => {
    const thinker = await thinkerOf();
    expect(await wayOf(thinker)).toEqual([{ at: 'ollama', key: 'key-of-ollama' }]);

    await store(thinker, 'ollama', { base_url: own.openaiBaseUrl });

    expect(await wayOf(thinker)).toEqual([{ at: 'own', key: undefined }]);
  });

  test('with a key alone send it to the address that the environment names', async () => {
    const thinker = await thinkerOf();
    await store(thinker, 'ollama', { api_key: ownKey });

    expect(await wayOf(thinker)).toEqual([{ at: 'ollama', key: ownKey }]);
  });
});

describe('a provider', () => {
  test('that only an organization names is there for it alone', async () => {
    const thinker = await newThinker(world.platform, { model: 'gateway/some/model' });
    const other = await newThinker(world.platform, { model: 'gateway/some/model' });
    await store(thinker, 'gateway', { base_url: own.openaiBaseUrl, api_key: ownKey });

    expect(await wayOf(thinker)).toEqual([{ at: 'own', key: ownKey }]);
    expect(own.requests.at(-1)?.model).toBe('some/model');
    expect((await failureOf(other)).message).toContain('No provider gateway is known');
  });

  test('that is not configured fails the job, and the message names the setting', async () => {
    const thinker = await newThinker(world.platform, { model: 'nowhere/model' });

    const failed = await failureOf(thinker);

    expect(failed.message).toContain('NOWHERE_BASE_URL');
    expect([...failed.platform, ...failed.own, ...failed.ollama]).toEqual([]);
  });
});

test('an address of an organization is spoken to in the protocol that is stored with it', async () => {
  const thinker = await newThinker(world.platform, { model: 'my-gateway/test' });
  const fields = { api_key: ownKey, base_url: own.anthropicBaseUrl };

  await store(thinker, 'my-gateway', { ...fields, protocol: 'messages' });
  const { own: first } = await requestsDuring(() => thinker.task('Is it?'));
  expect(first.map(({ protocol }) => protocol)).toEqual(['messages']);

  await store(thinker, 'my-gateway', fields);
  const { own: second } = await requestsDuring(() => thinker.task('Is it?'));
  expect(second.map(({ protocol }) => protocol)).toEqual(['chat']);
});
