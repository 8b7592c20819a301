/** The key for which scheduled jobs and triggers work (docs/decisions/api-keys.md), and what it allows them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { acting, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const minute = 60_000;
const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const schedules = '/api/scheduled-jobs';
const triggers = '/api/agent-triggers';
const any = { agent_id: 'default', skill_category: 'staged', skill_name: 'any' };

/** A key of all skills, and one of the scope `staged`, in the same organization. */
async function twoKeys() {
  const wide = await newTenant(platform, { client_name: 'wide' });
  const { organization: organization_id } = wide;
  const narrow = await newTenant(platform, {
    ...{ organization_id, client_name: 'narrow', scopes: ['staged'], rate_limit: 5 },
  });
  return { wide, narrow, organization_id };
}

async function made(tenant: Tenant, path: string, fields: object) {
  const { status, body, text } = await tenant.post(path, { ...any, ...fields });
  if (status !== 201) throw new Error(text);
  return { ...body, at: `${path}/${body.id}` };
}

const revoke = ({ keyId }: Tenant) => platform.admin('DELETE', `/admin/api-keys/${keyId}`);

/** Why a scheduled job or a trigger could not run now. */
const refusalOf = async (tenant: Tenant, at: string) =>
  (await tenant.get(`${at}?include=refusal`)).body.refusal?.code ?? null;

const kinds: [title: string, path: string, fields: object, others: object[]][] = [
  [
    'a scheduled job',
    schedules,
    { cron_expression: '* * * * *' },
    [{ cron_expression: '0 0 * * *' }],
  ],
  [
    'a trigger',
    triggers,
    { name: 'Pushes' },
    [{ name: 'x' }, { active: false }, { rate_limit: 3 }, { signing_secret: null }],
  ],
];
describe.each(kinds)('%s', (_title, path, fields, others) => {
  const changes: object[] = [
    { input: { a: 1 } },
    { agent_id: 'other' },
    { skill_name: 'versions', skill_version: 'v1.9' },
    ...(path === triggers ? [{ mapping: '{"a": body}' }] : []),
  ];
  test.each(changes)('works for the key that changed %j', async (change) => {
    const { wide, narrow } = await twoKeys();
    await wide.post('/api/agents', { id: 'other' });
    const { at } = await made(wide, path, fields);

    expect((await narrow.put(at, change)).status).toBe(200);
    await revoke(narrow);

    expect(await refusalOf(wide, at)).toBe('invalid_api_key');
  });

  test.each(others)('stays with its key after a change of %j alone', async (change) => {
    const { wide, narrow } = await twoKeys();
    const { at } = await made(wide, path, fields);

    expect((await narrow.put(at, change)).status).toBe(200);
    await revoke(narrow);

    expect(await refusalOf(wide, at)).toBeNull();
  });

  test('moves to a key that may do no more, where a change repeats what it runs', async () => {
    const { wide, narrow } = await twoKeys();
    const { at } = await made(wide, path, { ...fields, input: { a: 1, b: 2 } });

    await narrow.put(at, { input: { b: 2, a: 1 } });
    await revoke(narrow);

    expect(await refusalOf(wide, at)).toBe('invalid_api_key');
  });

  test('gets no wider key from a change that repeats what it runs', async () => {
    const { wide, narrow } = await twoKeys();
    const { at } = await made(narrow, path, { ...fields, input: { a: 1, b: 2 } });

    await wide.put(at, { input: { b: 2, a: 1 }, skill_name: 'any' });
    await revoke(narrow);

    expect(await refusalOf(wide, at)).toBe('invalid_api_key');
    await wide.put(at, { input: { a: 2 } });
    expect(await refusalOf(wide, at)).toBeNull();
  });
});

test('a slot after a change of the input runs with the scopes of the key that changed it', async () => {
  const { wide, narrow } = await twoKeys();
  const play = { skill_name: 'play', cron_expression: '* * * * *', input: acting() };
  const { at } = await made(wide, schedules, play);
  await narrow.put(at, { input: acting({ log: 'changed' }) });

  clock.advance(minute - (clock.now() % minute));
  const job = await waitFor(
    async () => {
      const { data } = (await wide.get('/api/jobs')).body;
      return data[0] ?? null;
    },
    { describe: 'the run of the slot' },
  );

  const row = await platform.database.read.kysely
    .selectFrom('jobs')
    .select(['api_key_id', 'user_id'])
    .where('id', '=', job.job_id)
    .executeTakeFirst();
  expect(row).toEqual({ api_key_id: narrow.keyId, user_id: 'narrow' });
});

describe("a trigger's signing secret", () => {
  const signed = { name: 'Pushes', signing_secret: 'secret-of-the-first-key' };
  const changes = [{ signing_secret: null }, { signing_secret: 'secret-of-the-second' }];

  test.each(changes)('moves it to the narrower key that sets %j', async (change) => {
    const { wide, narrow } = await twoKeys();
    const { at } = await made(wide, triggers, signed);

    expect((await narrow.put(at, change)).status).toBe(200);
    await revoke(narrow);

    expect(await refusalOf(wide, at)).toBe('invalid_api_key');
  });

  test('moves it to a key of other scopes, which would otherwise call with those of the first', async () => {
    const { organization_id } = await twoKeys();
    const first = await newTenant(platform, { organization_id, scopes: ['staged', 'web'] });
    const second = await newTenant(platform, { organization_id, scopes: ['staged', 'text'] });
    const { at } = await made(first, triggers, signed);

    await second.put(at, { signing_secret: null });
    await revoke(second);

    expect(await refusalOf(first, at)).toBe('invalid_api_key');
  });

  test('gets it no wider key', async () => {
    const { wide, narrow } = await twoKeys();
    const { at } = await made(narrow, triggers, signed);

    await wide.put(at, { signing_secret: 'secret-of-the-second' });
    await revoke(narrow);

    expect(await refusalOf(wide, at)).toBe('invalid_api_key');
  });
});

describe("a trigger's limit", () => {
  const rateOf = async (tenant: Tenant, fields: object) => {
    const { body } = await tenant.post(triggers, { ...any, name: 'Pushes', ...fields });
    return body.rate_limit ?? body;
  };

  test('is by default 60, or that of its key where it is smaller', async () => {
    const { narrow, organization_id } = await twoKeys();
    const middle = await newTenant(platform, { organization_id, rate_limit: 100 });

    expect(await rateOf(narrow, {})).toBe(5);
    expect(await rateOf(middle, {})).toBe(60);
  });

  test('is at most 60, or that of its key where it is larger', async () => {
    const { narrow, organization_id } = await twoKeys();
    const middle = await newTenant(platform, { organization_id, rate_limit: 100 });
    const { at } = await made(middle, triggers, { name: 'Pushes', rate_limit: 100 });

    expect(await rateOf(narrow, { rate_limit: 60 })).toBe(60);
    const tooMany = { ...any, name: 'Pushes', rate_limit: 61 };
    expectInvalid(await narrow.post(triggers, tooMany), 'rate_limit');
    expectInvalid(await middle.put(at, { rate_limit: 101 }), 'rate_limit');
  });

  test('is the default again where a change says null', async () => {
    const { wide, narrow } = await twoKeys();
    const ofNarrow = await made(narrow, triggers, { name: 'Pushes', rate_limit: 3 });
    const ofWide = await made(wide, triggers, { name: 'Pushes', rate_limit: 1_000 });

    expect((await narrow.put(ofNarrow.at, { rate_limit: null })).body.rate_limit).toBe(5);
    expect((await wide.put(ofWide.at, { rate_limit: null })).body.rate_limit).toBe(60);
    expect(await rateOf(narrow, { rate_limit: null })).toBe(5);
  });

  test('follows its key, also where another key changes it', async () => {
    const { wide, narrow } = await twoKeys();
    const ofNarrow = await made(narrow, triggers, { name: 'Pushes' });
    const ofWide = await made(wide, triggers, { name: 'Pushes', rate_limit: 1_000 });

    expectInvalid(await wide.put(ofNarrow.at, { rate_limit: 61 }), 'rate_limit');
    const taken = await narrow.put(ofWide.at, { input: { a: 1 } });
    expect(taken.body).toMatchObject({ rate_limit: 60 });
    const beyond = await narrow.put(ofWide.at, { input: { a: 2 }, rate_limit: 61 });
    expectRefusal(beyond, 400, 'validation_error');
  });
});
