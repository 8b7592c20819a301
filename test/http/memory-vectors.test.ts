/** Search of memories by meaning over HTTP, with a provider of vectors on a real socket (docs/memories.md). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Platform, startPlatform } from '../support/platform.ts';
import {
  type ScriptedEmbedder,
  startScriptedEmbedder,
  tokensOf,
} from '../support/scripted-embedder.ts';
import {
  inTurn,
  type ScriptedProvider,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { environmentOf, newThinker, thinkersSkills, toolNamed } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let embedder: ScriptedEmbedder;
let provider: ScriptedProvider;
let platform: Platform;
let folder: string;
beforeAll(async () => {
  [embedder, provider] = await Promise.all([startScriptedEmbedder(), startScriptedProvider()]);
  folder = mkdtempSync(join(tmpdir(), 'skillwright-office-'));
  writeOffice(folder);
  platform = await startPlatform({
    skillsDirs: [...thinkersSkills, folder],
    environment: {
      ...environmentOf(provider),
      EMBEDDING_MODEL: 'local/concepts',
      LOCAL_BASE_URL: embedder.baseUrl,
      LOCAL_API_KEY: 'sk-of-the-platform',
      MODEL_PRICES: JSON.stringify([
        { model: 'local/concepts', from: '2020-01-01', input: 1, output: 0 },
      ]),
    },
  });
});
afterAll(async () => {
  await platform.stop();
  await Promise.all([embedder.close(), provider.close()]);
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => embedder.script(() => null));

/** More skills than a model is offered; one of them reserves automobiles. */
function writeOffice(folder: string): void {
  const skills = Array.from({ length: 41 }, (_, i) => [`form-${i}`, `Files the form ${i}.`]);
  for (const [name, description] of [...skills, ['reserve', 'Reserves an automobile.']]) {
    const skill = {
      ...{ category: 'office', name, version: 'v1.0', displayName: name, description },
      ...{ parameters: { type: 'object' }, output: {} },
    };
    writeFileSync(
      join(folder, `${name}.ts`),
      `import { defineSkill } from 'skillwright';
export default defineSkill({ ...${JSON.stringify(skill)}, run: async () => 'done' });
`,
    );
  }
}

const memories = '/api/agents/thinker/memories';
const metric = async (name: string) => {
  const { text } = await platform.request('GET', '/metrics');
  const line = text.split('\n').find((one) => one.startsWith(name));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
};
const allHaveVectors = () =>
  waitFor(async () => (await metric('service_memories_awaiting_vector ')) === 0 || null, {
    describe: 'the vectors of all memories',
  });
async function remembering(...all: readonly { content: string; user_id?: string }[]) {
  const thinker = await newThinker(platform, { memory: 'read_write' });
  for (const one of all) expect((await thinker.post(memories, one)).status).toBe(201);
  await allHaveVectors();
  const search = async (q: string, more = '') => {
    const { status, body } = await thinker.get(`${memories}?q=${encodeURIComponent(q)}${more}`);
    expect(status).toBe(200);
    return body.data.map(({ content }: { content: string }) => content);
  };
  return { ...thinker, search };
}

test('a memory is found by a question without a common word, and its tokens are on the ledger', async () => {
  const content = 'Ada has bought an automobile';
  const question = 'Which vehicle?';
  const { search, get, organization } = await remembering({ content });

  expect(await search(question)).toEqual([content]);

  const { body } = await get('/api/agents/thinker/usage');
  const tokens = tokensOf(content) + tokensOf(question);
  expect(body.days).toMatchObject([
    { prompt_tokens: tokens, completion_tokens: 0, calls: 2, cost_usd: tokens / 1e6 },
  ]);
  const ledger = `/admin/usage?organization_id=${organization}&owner_kind=embedding_model`;
  expect((await platform.admin('GET', ledger)).body.data).toMatchObject([
    { owner_id: 'local/concepts', total_tokens: tokens },
  ]);
  expect(embedder.requests.at(-1)?.key).toBe('sk-of-the-platform');
});

test('the tool of a model recalls by meaning what its user said, and nothing of another user', async () => {
  const { task } = await remembering(
    { content: 'Alice earns 7,000', user_id: 'alice' },
    { content: 'Bob earns 6,000', user_id: 'bob' },
  );
  const before = provider.requests.length;
  provider.script(
    inTurn({ toolCalls: [{ name: 'recall', input: { query: 'salary' } }] }, { text: 'So.' }),
  );

  await task('What do I get?', {}, { 'x-user-id': 'bob' });

  const [told] = provider.requests[before + 1]?.toolResults ?? [];
  expect(told).toContain('Bob earns');
  expect(told).not.toContain('Alice');
});

test('what a run remembers gets a vector when the run has completed', async () => {
  const { task, search } = await remembering();
  const content = 'The hound barks at night';
  provider.script(
    inTurn({ toolCalls: [{ name: 'remember', input: { content } }] }, { text: 'Noted.' }),
  );
  await task('Remember it');
  await allHaveVectors();

  expect(await search('any dog?')).toEqual([content]);
});

test('an erased user leaves no vector', async () => {
  const { search, delete: erase } = await remembering(
    { content: 'Alice earns 7,000', user_id: 'alice' },
    { content: 'Income is taxed', user_id: 'bob' },
  );
  expect(await search('salary')).toHaveLength(2);

  expect((await erase('/api/users/alice/data')).body.done).toBe(true);

  expect(await search('salary')).toEqual(['Income is taxed']);
  const { kysely } = platform.database.read;
  const left = await kysely
    .selectFrom('memory_vectors')
    .where('seq', 'not in', kysely.selectFrom('memories').select('seq'))
    .select('seq')
    .execute();
  expect(left).toEqual([]);
});

test('an organization’s own credentials make its vectors', async () => {
  const thinker = await newThinker(platform, { memory: 'read_write' });
  const path = `/admin/organizations/${thinker.organization}/credentials/local`;
  await platform.admin('PUT', path, { api_key: 'sk-own', base_url: embedder.baseUrl });
  await thinker.post(memories, { content: 'The clinic is near' });
  await allHaveVectors();

  expect(embedder.requests.at(-1)?.key).toBe('sk-own');
});

test('a provider that is down leaves searches to words, without an error', async () => {
  const { search } = await remembering({ content: 'Ada has bought an automobile' });
  embedder.script(() => ({ status: 503 }));

  expect(await search('Which automobile?')).toHaveLength(1);
  expect(await search('vehicle')).toEqual([]);

  const failed = 'service_embedding_calls_total{purpose="question",outcome="unavailable"}';
  expect(await metric(failed)).toBeGreaterThan(0);
});

/** The tools that a model finds in a task of its own. */
async function foundBy(
  { task }: Pick<Awaited<ReturnType<typeof newThinker>>, 'task'>,
  query: string,
) {
  const input = { query, limit: 2 };
  provider.script(inTurn({ toolCalls: [{ name: 'find_tools', input }] }, { text: 'Seen.' }));
  expect((await task('Look around')).status).toBe('completed');
  const [result = ''] = provider.requests.at(-1)?.toolResults ?? [];
  return result.startsWith('{')
    ? (JSON.parse(result).tools as { name: string }[]).map(({ name }) => name)
    : [];
}

const reserving = toolNamed('office/v1.0/reserve');

test('a model finds a tool by what it means, and the vectors of tools are made once and paid for by the agent', async () => {
  const thinker = await newThinker(platform, { skills: ['office/*'] });
  const before = embedder.requests.length;

  expect(await foundBy(thinker, 'rent a vehicle')).toContain(reserving);
  const made = embedder.requests.slice(before).flatMap(({ input }) => input);
  expect(made).toHaveLength(1 + 42);
  expect(await foundBy(thinker, 'a car to drive')).toContain(reserving);
  expect(embedder.requests.slice(before).flatMap(({ input }) => input)).toHaveLength(2 + 42);

  const { body } = await thinker.get('/api/agents/thinker/usage');
  const models = body.days[0].calls as number;
  // Four calls of the chat's model, two questions and a request for the tools.
  expect(models).toBe(4 + 2 + 1);
});

test.each([{ status: 500 }, 'malformed'] as const)(
  'without vectors (%j) a model finds tools by their words',
  async (trouble) => {
    embedder.script(() => trouble);
    const thinker = await newThinker(platform, { skills: ['office/*'] });

    expect(await foundBy(thinker, 'reserves')).toEqual([reserving]);
    expect(await foundBy(thinker, 'vehicle')).toEqual([]);
  },
);
