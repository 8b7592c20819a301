/**
 * Jobs that wait for a provider, while their process is killed: they go on at their moment, in another process, and nothing is
 * charged or called twice. And a provider that takes few calls, which two processes share.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters } from '../support/cluster-load.ts';
import { expectServed, limitedTo } from '../support/limited-provider.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { environmentOf, runTask } from '../support/thinkers.ts';
import { followingPlans, inputOf, ledgerSkills, planState } from '../support/thinking-plans.ts';
import { thinkingProcess } from '../support/thinking-process.ts';
import { waitFor } from '../support/wait-for.ts';

/** One run is unloaded while it waits, and the other one is not. */
const waitSeconds = { chat: 13, messages: 5 };
type Agent = keyof typeof waitSeconds;
const agents = Object.keys(waitSeconds) as Agent[];

/** Refuses the second turn of each plan once. Returns when that was. */
function refuseSecondTurns(provider: ScriptedProvider): Map<string, number> {
  const refusedAt = new Map<string, number>();
  provider.script(
    followingPlans(({ plan: { id }, turn }, { at }) => {
      if (turn !== 1 || refusedAt.has(id)) return {};
      refusedAt.set(id, at);
      const after = String(waitSeconds[id as Agent]);
      return { fault: { status: 429, headers: { 'retry-after': after } } };
    }),
  );
  return refusedAt;
}

/** Submits a task to each agent, has the process killed while they wait, and looks at what comes of them. */
async function expectToGoOn(
  provider: ScriptedProvider,
  { get, jobIn }: Pick<Tenant, 'get' | 'jobIn'>,
  submit: (agent: Agent) => Promise<string>,
  replaceProcess: () => Promise<void>,
): Promise<void> {
  const refusedAt = refuseSecondTurns(provider);
  const ids = await Promise.all(agents.map(submit));
  const waiting = (await jobIn(ids[0] ?? '', 'waiting')).body;
  expect(waiting.waiting_for).toMatch(/^openai: rate limit, next try at /);
  await waitFor(() => refusedAt.size === 2, { describe: 'both are refused' });

  await replaceProcess();
  expect((await get(`/api/jobs/${ids[0]}`)).body).toMatchObject({
    status: 'waiting',
    attempt: 1,
    waiting_for: waiting.waiting_for,
  });
  const jobs = await Promise.all(
    ids.map((id) =>
      waitFor(
        async () => {
          const { body } = await get(`/api/jobs/${id}`);
          return body.finished_at === null ? null : body;
        },
        { describe: 'it ends', deadlineMs: 90_000, everyMs: 200 },
      ),
    ),
  );

  expect(jobs).toMatchObject([{ status: 'completed', attempt: 1 }, { status: 'completed' }]);
  // Only the one that was loaded had an attempt that the process died of.
  expect(jobs[1].attempt).toBeLessThanOrEqual(2);
  for (const id of agents) {
    const own = provider.requests.filter((request) => planState(request).plan.id === id);
    expect(own.map((request) => planState(request).turn)).toEqual([0, 1, 1]);
    const heldMs = (own[2]?.at ?? 0) - (refusedAt.get(id) ?? 0);
    expect(heldMs).toBeGreaterThanOrEqual(1_000 * waitSeconds[id]);
  }
  const steps = (await get(`/api/jobs/${ids[0]}/steps`)).body.data;
  expect(steps).toMatchObject([
    { kind: 'model', status: 'completed' },
    { kind: 'tool', status: 'completed' },
    { kind: 'model', status: 'failed', error: { code: 'upstream_unavailable' } },
    { kind: 'provider', name: 'openai: rate limit', status: 'completed' },
    { kind: 'model', status: 'completed' },
  ]);
}

const planOf = (id: Agent) => ({ id, turns: [[{ remember: `of ${id}` }]] });

test('jobs that wait for a provider go on after kill -9 and a start on the same data', {
  timeout: 180_000,
}, async () => {
  const own = await thinkingProcess();
  onTestFinished(() => own.close());
  await own.start();

  await expectToGoOn(
    own.provider,
    own,
    (agent) => own.submit(agent, planOf(agent)),
    async () => {
      await own.kill();
      await own.start();
    },
  );
});

test('a job whose process is killed in a short wait waits unloaded from then on', {
  timeout: 180_000,
}, async () => {
  const own = await thinkingProcess();
  onTestFinished(() => own.close());
  await own.start();
  own.provider.script(() => ({ fault: { status: 429, headers: { 'retry-after': '9' } } }));
  const id = await own.submit('chat', planOf('chat'));
  await waitFor(() => own.provider.requests.length === 1, { describe: 'it is refused' });
  expect((await own.get(`/api/jobs/${id}`)).body.status).toBe('active');
  await own.kill();
  await own.start();

  const waiting = (await own.jobIn(id, 'waiting')).body;
  expect(waiting.waiting_for).toMatch(/^openai: rate limit, next try at /);
  expect(own.provider.requests.length).toBeLessThanOrEqual(2);
  const { attempt } = waiting;
  await own.kill();
  await own.start();
  expect((await own.get(`/api/jobs/${id}`)).body.attempt).toBe(attempt);
});

test('jobs whose process was killed use each moment of a limited provider', {
  timeout: 180_000,
}, async () => {
  const own = await thinkingProcess();
  onTestFinished(() => own.close());
  await own.start();
  own.provider.script(() => ({ text: '', hold: { after: 0, until: new Promise(() => {}) } }));
  const ids = await Promise.all(
    Array.from({ length: 12 }, () => own.submit('chat', planOf('chat'))),
  );
  await waitFor(() => own.provider.requests.length === 12, { describe: 'all are called' });
  await own.kill();
  own.provider.script(() => ({ text: 'Fine.' }));
  await own.start({ OPENAI_CALLS_PER_MINUTE: '60' });

  for (const id of ids) {
    const { body } = await own.jobIn(id, 'completed', 'failed');
    expect(body).toMatchObject({ status: 'completed', attempt: 2 });
  }
  expect(own.provider.requests).toHaveLength(24);
});

describe.skipIf(!(await canRunClusters()))('in a cluster', () => {
  async function clusterWith(workers: number, environment: Record<string, string> = {}) {
    const provider = await startScriptedProvider();
    onTestFinished(() => provider.close());
    const cluster = await startCluster({
      workers,
      api: 0,
      schedulers: 0,
      also: ['api,scheduler'],
      skillsDir: ledgerSkills,
      environment: { ...environmentOf(provider), ...environment },
    });
    onTestFinished(() => cluster.close());
    const tenant = await newTenant(apiOf(cluster).client);
    await waitFor(async () => (await tenant.get(`/api/skills/${runTask}`)).status === 200, {
      describe: 'the API knows what its workers have loaded',
    });
    const agent = async (id: string, model: string) =>
      expect((await tenant.post('/api/agents', { id, model, memory: 'read_write' })).status).toBe(
        201,
      );
    return { provider, cluster, tenant, agent };
  }

  test('jobs that wait for a provider go on in another process after kill -9', {
    timeout: 180_000,
  }, async () => {
    const { provider, cluster, tenant, agent } = await clusterWith(1, {
      JOB_LEASE_MS: '3000',
    });
    await agent('chat', 'openai/test-model');
    await agent('messages', 'anthropic/test-model');

    await expectToGoOn(
      provider,
      tenant,
      (id) => tenant.start(runTask, inputOf(planOf(id)), { 'x-agent-id': id }),
      async () => {
        const [worker] = cluster.of('worker');
        await worker?.kill();
        await cluster.add('worker');
      },
    );
  });

  /** `MEASURE=1` makes 60 tasks of 4 turns, and prints. */
  const [tasks, turns] = process.env['MEASURE'] ? [60, 4] : [12, 3];

  test('two processes share what a provider takes, with few refusals', {
    timeout: 180_000,
  }, async () => {
    const { provider, tenant, agent } = await clusterWith(2);
    const limit = limitedTo(8, followingPlans());
    provider.script(limit.script);
    await agent('many', 'openai/test-model');
    const plans = Array.from({ length: tasks }, (_, n) => ({
      id: `task-${n}`,
      turns: Array.from({ length: turns - 1 }, (_, turn) => [{ remember: `${turn} of ${n}` }]),
    }));

    await expectServed(limit, tenant, () =>
      Promise.all(
        plans.map((plan) => tenant.start(runTask, inputOf(plan), { 'x-agent-id': 'many' })),
      ),
    );

    expect(provider.requests).toHaveLength(tasks * turns + limit.refusals());
  });
});
