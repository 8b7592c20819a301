/** Budgets with many runs at once: exact, and no call waits for tokens that no other call holds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { answering, type Reply, type ScriptedRequest } from '../support/scripted-provider.ts';
import { isInstalled, migratedDatabase } from '../support/shared-servers.ts';
import { newTenant } from '../support/tenant.ts';
import {
  asks,
  environmentOf,
  newThinker,
  runTask,
  startThinkers,
  type Thinker,
  type Thinkers,
  waitsForBudget,
} from '../support/thinkers.ts';

const hasPostgres = await isInstalled('PostgreSQL');
const databases = [
  ['SQLite', async () => ({})],
  ...(hasPostgres
    ? [['PostgreSQL', async () => ({ DATABASE_URL: await migratedDatabase() })] as const]
    : []),
] as readonly (readonly [string, () => Promise<Record<string, string>>])[];

/** Stopped when the test ends. */
async function startWorld(environment: Record<string, string> = {}): Promise<Thinkers> {
  const world = await startThinkers({ environment });
  onTestFinished(() => world.stop());
  return world;
}

/** Gone when the test ends. */
function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'skillwright-budgets-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const ended = ['completed', 'failed'];

/** Most tokens that the answer may have. */
const outputOf = ({ body }: ScriptedRequest): number =>
  body.max_tokens ?? body.max_completion_tokens;

const todayOf = async (thinker: Thinker, agent = 'thinker') =>
  (await thinker.get(`/api/agents/${agent}/usage`)).body.today;

function setBudget(thinker: Thinker, tokens: number, agent = 'thinker') {
  return thinker.put(`/api/agents/${agent}/budget`, { tokens_per_day: tokens });
}

const costOf = ({ provider }: Thinkers) =>
  provider.requests.reduce(
    (sum, { cost }) => sum + (cost === null ? 0 : cost.prompt + cost.completion),
    0,
  );

/** An agent whose calls reserve their whole answers: how long a model reasons depends on the limit. */
const reserving = { model_settings: { effort: 'low' } };

/** Accepts a run of `thinking/asks` with one request; its job's id. */
const ask = (thinker: Thinker, prompt: string, maxOutputTokens: number, agent = 'thinker') =>
  thinker.start(asks, { requests: [{ prompt, maxOutputTokens }] }, { 'x-agent-id': agent });

/** Texts, and the tokens of a byte that a provider counts for them. */
const scripts: readonly (readonly [string, string, number])[] = [
  ['Chinese', '客户询问从未到达的订单的退款情况。', 0.5],
  ['Arabic', 'سأل العميل عن استرداد ثمن طلب لم يصل أبدا. ', 0.5],
  ['emoji', '😀🎉🚀🔥💡🤖', 0.9],
  ['code', 'if x[i] == 0x1F: return {"key": i**2}\n', 0.5],
  ['base64', 'uZ5cVv8yG0bq3Jf9QmT1xKp7rLw2HdNs6AeXoIiYtB4kRgCzMjOUPa', 0.8],
];

test.each(scripts)(
  'the first prompts of a model, ten at once in %s, do not exceed a budget',
  async (_, text, ratio) => {
    const world = await startWorld();
    const thinker = await newThinker(world.platform);
    await setBudget(thinker, 100_000);
    const prompt = text.repeat(Math.ceil(30_000 / Buffer.byteLength(text)));
    const tokens = Math.round(Buffer.byteLength(prompt) * ratio);
    world.provider.script(answering('Yes.', { usage: { prompt: tokens, completion: 5 } }));

    const ids = await Promise.all(Array.from({ length: 10 }, () => ask(thinker, prompt, 50)));
    for (const id of ids) await thinker.jobIn(id, ...ended);

    const { used, reserved } = await todayOf(thinker);
    expect(reserved).toBe(0);
    expect(used).toBe(world.provider.requests.length * (tokens + 5));
    expect(used).toBeLessThanOrEqual(100_000);
    // What is left is less than the bound of a call that began before the answers told the model's ratio.
    expect(used).toBeGreaterThan(100_000 - (1.2 * tokens) / ratio);
  },
);

describe.each(databases)('on %s', (_, environment) => {
  // The first database starts the PostgreSQL of all tests, which takes most of a minute while the machine is busy.
  beforeAll(environment, 180_000);

  test('30 jobs at once never use more than their budgets, and leave less than a call', async () => {
    const shared = await environment();
    const world = await startWorld(shared);
    // Where several processes may share the database, they do.
    const second = 'DATABASE_URL' in shared ? await startWorld(elsewhere(world, shared)) : world;
    const thinker = await newThinker(world.platform);
    const agents = ['thinker', 'one', 'two'];
    for (const id of agents.slice(1)) await thinker.post('/api/agents', { id });
    for (const id of agents) await setBudget(thinker, 400, id);
    await world.platform.admin('PUT', `/admin/api-keys/${thinker.keyId}/budget`, {
      tokens_per_month: 1_000,
    });
    world.provider.script(costly());

    const ids = await Promise.all(
      Array.from({ length: 30 }, async (__, i) => {
        const { platform } = i % 2 === 0 ? world : second;
        const requests = [{ prompt: `Job ${i}`, maxOutputTokens: 100 }];
        const headers = { 'x-agent-id': agents[i % 3] as string };
        const answer = await platform.request('POST', `/api/${asks}`, {
          key: thinker.key,
          body: { requests },
          headers,
        });
        return answer.body.job_id as string;
      }),
    );
    const jobs = await Promise.all(ids.map((id) => thinker.jobIn(id, ...ended)));

    const codes = jobs.map(({ body }) => body.error?.code ?? body.status);
    expect(new Set(codes)).toEqual(new Set(['completed', 'budget_exceeded']));
    expect(new Set(jobs.map(({ body }) => body.attempt))).toEqual(new Set([1]));
    const cost = costOf(world);
    expect(cost).toBeLessThanOrEqual(1_000);
    const ofAgents = await Promise.all(agents.map((id) => todayOf(thinker, id)));
    for (const { used, reserved } of ofAgents) {
      expect(used).toBeLessThanOrEqual(400);
      expect(reserved).toBe(0);
    }
    const path = `/admin/api-keys/${thinker.keyId}/usage`;
    const { month, days } = (await world.platform.admin('GET', path)).body;
    expect(month).toMatchObject({ reserved: 0, limit: 1_000 });
    expect(month.used).toBe(ofAgents.reduce((sum, { used }) => sum + used, 0));
    expect(days[0].total_tokens + days[0].estimated_tokens).toBe(month.used);
    expect(month.used).toBeGreaterThanOrEqual(cost);
    // Of each agent or of the key: some job was refused for it.
    const left = [month.left, ...ofAgents.map((today) => today.left)];
    expect(Math.min(...left)).toBeLessThan(shortestCall);
    expect(days[0].calls).toBe(world.provider.requests.length);
  });

  test.each([
    ['answers', { text: 'Yes.', usage: { prompt: 10, completion: 5 } }],
    ['is refused', { fault: { status: 400 } }],
    ['breaks off', { text: 'a long answer, half of which is said', fault: 'cut' }],
  ] as [string, Reply][])(
    'a call waits for tokens that another one holds back, until that one %s',
    async (__, reply) => {
      const world = await startWorld(await environment());
      const thinker = await newThinker(world.platform);
      await setBudget(thinker, 500);
      const until = Promise.withResolvers<void>();
      world.provider.script(({ index }) =>
        index === 0 ? { ...reply, until: until.promise } : usual,
      );

      const first = await ask(thinker, 'first', 400);
      await world.provider.received(1);
      const waiting = await ask(thinker, 'second', 400);
      await waitsForBudget(thinker, waiting);
      expect(world.provider.requests).toHaveLength(1);
      until.resolve();
      await thinker.jobIn(first, ...ended);
      const { body } = await thinker.jobIn(waiting, ...ended);

      expect(body).toMatchObject({ status: 'completed', attempt: 1 });
      expect((await todayOf(thinker)).reserved).toBe(0);
    },
  );

  test('a call waits no longer when the one that holds back its tokens is cancelled', async () => {
    const world = await startWorld(await environment());
    const thinker = await newThinker(world.platform);
    await setBudget(thinker, 500);
    world.provider.script(({ index }) =>
      index === 0 ? { text: 'never', until: new Promise(() => {}) } : usual,
    );
    const first = await ask(thinker, 'first', 400);
    await world.provider.received(1);
    const waiting = await ask(thinker, 'second', 400);
    await waitsForBudget(thinker, waiting);

    await thinker.post(`/api/jobs/${first}/cancel`);

    expect((await thinker.jobIn(waiting, ...ended)).body.status).toBe('completed');
    expect((await thinker.jobIn(first, 'cancelled')).body.attempt).toBe(1);
    expect((await todayOf(thinker)).reserved).toBe(0);
  });
});

describe('a call that waits for tokens', () => {
  test('is cancelled at once, and its job has no step', async () => {
    const world = await startWorld();
    const thinker = await newThinker(world.platform);
    await setBudget(thinker, 500);
    const until = Promise.withResolvers<void>();
    world.provider.script(answering('Yes.', { until: until.promise }));
    const first = await ask(thinker, 'first', 400);
    await world.provider.received(1);
    const waiting = await ask(thinker, 'second', 400);
    await waitsForBudget(thinker, waiting);

    await thinker.post(`/api/jobs/${waiting}/cancel`);
    await thinker.jobIn(waiting, 'cancelled');

    expect(await thinker.steps(waiting)).toEqual([]);
    until.resolve();
    await thinker.jobIn(first, 'completed');
    const { days } = (await thinker.get('/api/agents/thinker/usage')).body;
    expect(days).toMatchObject([{ calls: 1 }]);
  });

  test('numbers its steps from 1 nevertheless', async () => {
    const world = await startWorld();
    const thinker = await newThinker(world.platform);
    await setBudget(thinker, 500);
    const until = Promise.withResolvers<void>();
    world.provider.script(({ index }) =>
      index === 0 ? { ...usual, until: until.promise } : usual,
    );
    const first = await ask(thinker, 'first', 400);
    await world.provider.received(1);
    const waiting = await ask(thinker, 'second', 400);
    await waitsForBudget(thinker, waiting);
    until.resolve();
    await thinker.jobIn(first, 'completed');
    await thinker.jobIn(waiting, 'completed');

    expect((await thinker.steps(waiting)).map(({ step }) => step)).toEqual([1]);
  });

  test('takes no place of those who have tokens', async () => {
    const world = await startWorld({ WORKER_CONCURRENCY: '2' });
    const [poor, rich] = [await newThinker(world.platform), await newThinker(world.platform)];
    await setBudget(poor, 500);
    const until = Promise.withResolvers<void>();
    world.provider.script(({ index }) =>
      index === 0 ? { ...usual, until: until.promise } : usual,
    );
    const first = await ask(poor, 'first', 400);
    await world.provider.received(1);
    const waiting = await Promise.all([1, 2, 3, 4].map((i) => ask(poor, `waits ${i}`, 400)));
    await Promise.all(waiting.map((id) => waitsForBudget(poor, id)));

    const job = await rich.asking([{ prompt: 'meanwhile' }]);

    expect(job.status).toBe('completed');
    until.resolve();
    for (const id of [first, ...waiting]) await poor.jobIn(id, 'completed');
  });

  test('resumes after a crash of its own process, as do the runs that held the reservations', async () => {
    const { provider } = await startWorld();
    const dataDir = directory();
    const environment = {
      ...environmentOf(provider),
      MODEL_OUTPUT_TOKENS: '30000',
      EXECUTORS: '1',
      RETRY_BACKOFF_MS: '10',
    };
    provider.script(answering('never', { until: new Promise(() => {}) }));
    const first = await startProcess(dataDir, environment);
    onTestFinished(() => first.signal('SIGKILL'));
    const tenant = await newTenant(first);
    await tenant.post('/api/agents', { id: 'thinker', ...reserving });
    await tenant.put('/api/agents/thinker/budget', { tokens_per_day: 100_000 });
    const named = { 'x-agent-id': 'thinker' };
    const ids = await Promise.all(
      Array.from({ length: 5 }, (_, i) => tenant.start(runTask, { task: `Task ${i}` }, named)),
    );
    await provider.received(3);
    for (const id of ids) await tenant.jobIn(id, 'active');
    const usage = '/api/agents/thinker/usage';
    const { reserved } = (await tenant.get(usage)).body.today;

    first.signal('SIGKILL');
    await first.exit;
    provider.script(() => usual);
    const second = await startProcess(dataDir, environment);
    onTestFinished(() => second.stop());
    const jobs = await Promise.all(ids.map((id) => second.jobIn(tenant.key, id, ...ended)));

    expect(new Set(jobs.map(({ body }) => body.status))).toEqual(new Set(['completed']));
    // What was under way is charged what its prompts were expected to have: nothing had been streamed.
    const { today, days } = (await second.request('GET', usage, { key: tenant.key })).body;
    expect(reserved).toBeGreaterThan(90_000);
    const [{ estimated_tokens: estimated }] = days;
    expect(estimated).toBeGreaterThan(3 * 100);
    expect(estimated).toBeLessThan(3 * 3_000);
    expect(today).toMatchObject({ reserved: 0, used: estimated + 5 * 15 });
    expect(days).toMatchObject([{ total_tokens: 5 * 15, calls: 8, unreported_calls: 3 }]);
  });

  test.skipIf(!hasPostgres)(
    'resumes when the process of the run with the reservation has died',
    async () => {
      const database = { DATABASE_URL: await migratedDatabase(), JOB_LEASE_MS: '6000' };
      const context = { MODEL_CONTEXT_TOKENS: '1000000' };
      const world = await startWorld({ ...database, ...context, MODEL_OUTPUT_TOKENS: '80000' });
      const thinker = await newThinker(world.platform, reserving);
      await setBudget(thinker, 100_000);
      world.provider.script(({ index }) =>
        index === 0 ? { text: 'never', until: new Promise(() => {}) } : usual,
      );
      const other = await startProcess(directory(), {
        ...environmentOf(world.provider),
        ...database,
        ...context,
        MODEL_OUTPUT_TOKENS: '30000',
        EXECUTORS: '1',
        RETRY_BACKOFF_MS: '10',
      });
      onTestFinished(() => other.signal('SIGKILL'));
      const { body } = await other.request('POST', '/api/agent/v1.0/run-task', {
        key: thinker.key,
        body: { task: 'first' },
        headers: thinker.named,
      });
      const [held] = await world.provider.received(1);
      expect(outputOf(held as ScriptedRequest)).toBe(30_000);
      const { reserved } = await todayOf(thinker);
      const waiting = await thinker.begin('second');
      await waitsForBudget(thinker, waiting);

      other.signal('SIGKILL');
      await other.exit;
      const jobs = await Promise.all(
        [body.job_id, waiting].map((id) => thinker.jobIn(id, ...ended)),
      );

      expect(jobs.map((job) => job.body.status)).toEqual(['completed', 'completed']);
      // The call of the dead process is charged for its prompt alone.
      const { today, days } = (await thinker.get('/api/agents/thinker/usage')).body;
      const [{ estimated_tokens: estimated }] = days;
      expect(reserved).toBeGreaterThan(30_000);
      expect(estimated).toBeLessThan(3_000);
      expect(today).toMatchObject({ reserved: 0, used: estimated + 2 * 15 });
      expect(days).toMatchObject([{ total_tokens: 30, calls: 3, unreported_calls: 1 }]);
    },
  );
});

const usual: Reply = { text: 'Yes.', usage: { prompt: 10, completion: 5 } };

/** A prompt of these tests with the shortest answer, in tokens. */
const shortestCall = 40;

/**
 * Every answer is as long as it may be, or half as long; some calls fail (once: a job whose call fails
 * again and again has another attempt), some are not reported. The provider never counts more for a
 * prompt than is estimated of a model that has reported nothing yet: a call that uses more than it
 * holds back may take its budget beyond the limit.
 */
function costly(): (request: ScriptedRequest) => Reply {
  const asked = new Set<string>();
  return (request) => {
    const output = outputOf(request);
    const prompt = String(request.messages.at(-1)?.content);
    const isAskedAgain = asked.has(prompt);
    asked.add(prompt);
    switch (request.index % 5) {
      case 0:
        return { text: 'All.', usage: { prompt: 8, completion: output } };
      case 1:
        return { text: 'x'.repeat(4 * output), usage: null };
      case 2:
        if (!isAskedAgain) {
          return { fault: { status: 500, headers: { 'retry-after-ms': '1' } } };
        }
    }
    const usage = { prompt: 8, completion: Math.ceil(output / 2) };
    return { text: 'Half.', usage, everyMs: 1 };
  };
}

/** What a second platform needs to share a database and a provider with the first. */
const elsewhere = ({ provider }: Thinkers, shared: Record<string, string>) => ({
  ...environmentOf(provider),
  ...shared,
});
