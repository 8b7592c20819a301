/** A person approves the calls of a model's tools (docs/agents.md). */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { manualClock } from '../support/manual-clock.ts';
import { embeddedTest } from '../support/platform.ts';
import { callingTools, inTurn } from '../support/scripted-provider.ts';
import { dataDirectory, gate, linesFile } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import {
  newThinker,
  startThinkers,
  startWatchedThinkers,
  type Thinker,
  toolNamed,
  type WatchedThinkers,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';
import { newWebhook } from '../support/webhooks.ts';

const effect = 'staged/v1.0/effect';
const sum = 'staged/v1.0/sum';
const effected = toolNamed(effect);
const summed = toolNamed(sum);
const kibibytes64 = 65_536;

let world: WatchedThinkers;
beforeAll(async () => {
  world = await startWatchedThinkers();
});
afterAll(() => world.stop());

/** An agent whose calls of `staged/effect` need an approval. */
const newAsker = (platform = world.platform, approvals = [effect]) =>
  newThinker(platform, { skills: ['staged/*', 'text/*'], approvals });

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

const soFar = () => world.provider.requests.length;
const since = (before: number) => world.provider.requests.slice(before);

/** The pending approvals of a job, the oldest first, once there are so many. */
function pendingOf({ get }: Pick<Tenant, 'get'>, jobId: string, n = 1): Promise<Body[]> {
  return waitFor(
    async () => {
      const { body } = await get(`/api/approvals?status=pending&job_id=${jobId}`);
      return body.data.length === n ? body.data.toReversed() : null;
    },
    { describe: () => `${n} pending approvals of the job` },
  );
}

/** Runs that wait are told from others by their job: it holds no executor. */
const unloaded = ({ jobIn }: Pick<Tenant, 'jobIn'>, jobId: string) => jobIn(jobId, 'waiting');

/** What the effects of a test have written so far. */
const linesOf = (log: string) =>
  existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];

const decide = (
  { post }: Pick<Tenant, 'post'>,
  { approval_id }: { approval_id: string },
  verb: 'approve' | 'reject',
  reason?: string,
) => post(`/api/approvals/${approval_id}/${verb}`, reason === undefined ? {} : { reason });

/** A job whose model has called the effect once, and which waits for the approval. */
async function asked(thinker: Thinker, more: object = {}) {
  const log = linesFile();
  const input = { log, ...more };
  const before = soFar();
  world.provider.script(callingTools([{ name: effected, input }], 'Done.'));
  const jobId = await thinker.begin('Have an effect');
  const [approval] = await pendingOf(thinker, jobId);
  return { log, input, jobId, approval, before };
}

describe('a tool whose skill is among the approvals of the agent', () => {
  test('waits, and runs once a person has approved exactly this call', async () => {
    const thinker = await newAsker();
    const { log, input, jobId, approval, before } = await asked(thinker);

    await unloaded(thinker, jobId);
    expect(approval).toMatchObject({
      job_id: jobId,
      agent_id: 'thinker',
      step: effect,
      title: `Call ${effect}?`,
      details: input,
      status: 'pending',
    });
    const days = (Date.parse(approval.expires_at) - Date.parse(approval.requested_at)) / 86_400_000;
    expect(days).toBe(7);
    expect(linesOf(log)).toEqual([]);

    await decide(thinker, approval, 'approve');
    const { body: job } = await thinker.jobIn(jobId, 'completed');

    expect(job.output).toMatchObject({ answer: 'Done.' });
    expect(linesOf(log)).toHaveLength(2);
    // The recorded turn is not asked for again.
    expect(since(before)).toHaveLength(2);
    expect(since(before)[1]?.toolResults).toEqual(['{"attempt":1}']);
    expect(await thinker.steps(jobId)).toMatchObject([
      { step: 1, kind: 'model', turn: 1, status: 'completed' },
      { step: 2, kind: 'tool', name: effect, status: 'completed' },
      { step: 3, kind: 'approval', name: effect, parent_step_id: 2, status: 'completed' },
      { step: 4, kind: 'model', turn: 2, status: 'completed' },
    ]);
    expect(job.attempts ?? job.attempt).toBe(1);
  });

  test('sends no person to a page that the model names', async () => {
    const link = { url: 'https://evil.example/' };
    const { approval, input } = await asked(await newAsker(), { link });
    expect(approval).toMatchObject({ details: { input }, link: null });
  });

  test('is refused with the reason, which the model is told', async () => {
    const thinker = await newAsker();
    const { log, jobId, approval, before } = await asked(thinker);

    await decide(thinker, approval, 'reject', 'Not on a Friday');
    const { body: job } = await thinker.jobIn(jobId, 'completed');

    expect(job.output).toMatchObject({ answer: 'Done.' });
    expect(linesOf(log)).toEqual([]);
    expect(since(before)[1]?.toolResults).toEqual([
      `A person rejected the call of ${effect}, with the reason: Not on a Friday`,
    ]);
    const steps = await thinker.steps(jobId);
    expect(steps[1]).toMatchObject({
      kind: 'tool',
      status: 'failed',
      error: { code: 'approval_rejected' },
    });
  });

  test('holds back no tokens of the budget while it waits', async () => {
    const thinker = await newAsker();
    const { jobId, approval } = await asked(thinker);
    await unloaded(thinker, jobId);

    expect(await reservedTokens(thinker)).toEqual([]);

    await decide(thinker, approval, 'reject');
    await thinker.jobIn(jobId, 'completed');
  });

  test('two calls in one turn are two questions, each decided for itself', async () => {
    const thinker = await newAsker();
    const logs = [linesFile(), linesFile()] as const;
    const before = soFar();
    const calls = logs.map((log) => ({ name: effected, input: { log } }));
    world.provider.script(callingTools(calls, 'Done.'));
    const jobId = await thinker.begin('Have two effects');
    const approvals = await pendingOf(thinker, jobId, 2);
    await unloaded(thinker, jobId);
    const of = (log: string) => approvals.find((one) => one.details.log === log);

    await decide(thinker, of(logs[1]), 'approve');
    await waitFor(() => (linesOf(logs[1]).length === 2 ? true : null), {
      describe: 'the effect of the second call',
    });
    await unloaded(thinker, jobId);
    expect(await pendingOf(thinker, jobId)).toEqual([of(logs[0])]);
    await decide(thinker, of(logs[0]), 'reject', 'No');
    await thinker.jobIn(jobId, 'completed');

    expect(linesOf(logs[0])).toEqual([]);
    expect(linesOf(logs[1])).toHaveLength(2);
    expect(since(before)).toHaveLength(2);
    // The recorded result comes first.
    expect(since(before)[1]?.toolResults).toEqual([
      '{"attempt":1}',
      expect.stringContaining('with the reason: No'),
    ]);
  });

  test('a tool that needs no approval runs meanwhile, once', async () => {
    const thinker = await newAsker();
    const log = linesFile();
    const before = soFar();
    const calls = [
      { name: summed, input: { input: [1, 2] } },
      { name: effected, input: { log } },
    ];
    world.provider.script(callingTools(calls, 'Done.'));
    const jobId = await thinker.begin('Add, and have an effect');
    const [approval] = await pendingOf(thinker, jobId);
    await unloaded(thinker, jobId);
    const tools = async () =>
      (await thinker.steps(jobId)).filter(({ kind }: Body) => kind === 'tool');
    expect(await tools()).toMatchObject([
      { name: sum, status: 'completed' },
      { name: effect, status: 'active' },
    ]);
    const [{ started_at }] = await tools();

    await decide(thinker, approval, 'approve');
    await thinker.jobIn(jobId, 'completed');

    expect((await tools())[0].started_at).toBe(started_at);
    expect(since(before)[1]?.toolResults).toHaveLength(2);
    expect(linesOf(log)).toHaveLength(2);
  });

  test('the same call twice is asked about twice', async () => {
    const thinker = await newAsker();
    const log = linesFile();
    const call = { toolCalls: [{ name: effected, input: { log } }] };
    world.provider.script(inTurn(call, call, { text: 'Done twice.' }));
    const jobId = await thinker.begin('Have the effect twice');

    const [first] = await pendingOf(thinker, jobId);
    await decide(thinker, first, 'approve');
    const [second] = await waitFor(
      async () => {
        const found = await pendingOf(thinker, jobId);
        return found[0].approval_id === first.approval_id ? null : found;
      },
      { describe: 'the second question' },
    );
    expect(linesOf(log)).toHaveLength(2);
    expect(second.digest).toBe(first.digest);
    await decide(thinker, second, 'reject');
    await thinker.jobIn(jobId, 'completed');

    expect(linesOf(log)).toHaveLength(2);
    const { body } = await thinker.get(`/api/approvals?job_id=${jobId}`);
    expect(body.data.map(({ status }: Body) => status)).toEqual(['rejected', 'approved']);
  });

  test('is cancelled with its job, and can then not be approved', async () => {
    const thinker = await newAsker();
    const { log, jobId, approval } = await asked(thinker);
    await unloaded(thinker, jobId);

    await thinker.post(`/api/jobs/${jobId}/cancel`);

    const late = await decide(thinker, approval, 'approve');
    expect(late).toMatchObject({ status: 409, body: { error: 'conflict' } });
    const { body } = await thinker.get(`/api/approvals/${approval.approval_id}`);
    expect(body.status).toBe('cancelled');
    expect((await thinker.jobIn(jobId, 'cancelled')).body.status).toBe('cancelled');
    expect(linesOf(log)).toEqual([]);
  });

  test('of a decision and a cancellation at once, the approval tells which was first', async () => {
    const thinker = await newAsker();
    for (let i = 0; i < 5; i++) {
      const { log, jobId, approval } = await asked(thinker);
      await unloaded(thinker, jobId);

      const [cancelled, decided] = await Promise.all([
        thinker.post(`/api/jobs/${jobId}/cancel`),
        decide(thinker, approval, 'reject'),
      ]);

      const { body } = await thinker.get(`/api/approvals/${approval.approval_id}`);
      expect(body.status).toBe(decided.status === 200 ? 'rejected' : 'cancelled');
      expect([200, 202, 422]).toContain(cancelled.status);
      await thinker.jobIn(jobId, 'cancelled', 'completed');
      expect(linesOf(log)).toEqual([]);
    }
  });

  test('a call with more arguments than a person can be shown is refused to the model', async () => {
    const thinker = await newAsker();
    const log = linesFile();
    const before = soFar();
    const input = { log, padding: 'x'.repeat(kibibytes64) };
    world.provider.script(callingTools([{ name: effected, input }], 'Too long.'));

    const job = await thinker.task('Have a long effect');

    expect(job).toMatchObject({ status: 'completed' });
    expect(since(before)[1]?.toolResults[0]).toContain('64 KiB');
    expect(linesOf(log)).toEqual([]);
  });

  test('other tools of the agent need no approval', async () => {
    const thinker = await newAsker(world.platform, ['text/*']);
    const log = linesFile();
    world.provider.script(callingTools([{ name: effected, input: { log } }], 'Done.'));

    const job = await thinker.task('Have an effect');

    expect(job).toMatchObject({ status: 'completed' });
    expect((await thinker.get(`/api/approvals?job_id=${job.job_id}`)).body.total).toBe(0);
    expect(linesOf(log)).toHaveLength(2);
  });

  test('a question stays to be answered when the agent asks for no approvals any more', async () => {
    const thinker = await newAsker();
    const { log, jobId, approval } = await asked(thinker);
    await unloaded(thinker, jobId);
    await thinker.put('/api/agents/thinker', { approvals: [] });

    await decide(thinker, approval, 'reject');
    await thinker.jobIn(jobId, 'completed');

    expect(linesOf(log)).toEqual([]);
  });

  test('an approved tool that waits itself goes on afterwards, without a further question about its call', async () => {
    const asksPerson = 'staged/v1.0/asks-person';
    const thinker = await newAsker(world.platform, [asksPerson]);
    const log = linesFile();
    const before = soFar();
    const input = { log, asks: { title: 'And this?' } };
    world.provider.script(callingTools([{ name: toolNamed(asksPerson), input }], 'Done.'));
    const jobId = await thinker.begin('Ask');
    const [ofCall] = await pendingOf(thinker, jobId);
    await decide(thinker, ofCall, 'approve');

    const inner = await waitFor(
      async () => (await pendingOf(thinker, jobId)).find(({ title }) => title === 'And this?'),
      { describe: 'the question of the tool' },
    );
    await unloaded(thinker, jobId);
    await decide(thinker, inner, 'reject', 'Not this');
    await thinker.jobIn(jobId, 'completed');

    expect(since(before)).toHaveLength(2);
    expect(JSON.parse(since(before)[1]?.toolResults[0] ?? '')).toMatchObject({
      approved: false,
      reason: 'Not this',
    });
    expect((await thinker.get(`/api/approvals?job_id=${jobId}`)).body.total).toBe(2);
    // Its code begins again after its wait.
    expect(linesOf(log)).toHaveLength(2);
  });

  test('does not run once its skill is deprecated, also with an approval', async () => {
    const own = await startThinkers();
    onTestFinished(() => own.stop());
    const thinker = await newAsker(own.platform);
    const log = linesFile();
    own.provider.script(callingTools([{ name: effected, input: { log } }], 'Done.'));
    const jobId = await thinker.begin('Have an effect');
    const [approval] = await pendingOf(thinker, jobId);
    await unloaded(thinker, jobId);
    await own.platform.admin('POST', `/admin/skills/${effect}/deprecate`);

    await decide(thinker, approval, 'approve');
    await thinker.jobIn(jobId, 'completed', 'failed');

    expect(linesOf(log)).toEqual([]);
  });

  test('fails with its run once the agent is deleted', async () => {
    const thinker = await newAsker();
    const { log, jobId, approval } = await asked(thinker);
    await unloaded(thinker, jobId);
    expect((await thinker.delete('/api/agents/thinker')).status).toBe(204);

    await decide(thinker, approval, 'approve');
    const { body: job } = await thinker.jobIn(jobId, 'failed');

    expect(job.error.message).toContain('not found');
    expect(linesOf(log)).toEqual([]);
  });

  test('webhooks are told of the question and of the decision', async () => {
    const thinker = await newAsker();
    const events = ['approval.requested', 'approval.decided'];
    await newWebhook(thinker, world.receiver.origin, { agent_id: 'thinker', events });
    const before = world.receiver.requests.length;
    const { jobId, approval } = await asked(thinker);
    await decide(thinker, approval, 'reject', 'No');
    await thinker.jobIn(jobId, 'completed');

    const requests = (await world.receiver.received(before + 2)).slice(before);

    const bodies = requests.map(({ body }) => JSON.parse(`${body}`));
    const { approval_id, conversation_id, digest, expires_at, title } = approval;
    const ids = { id: approval_id, approval_id, job_id: jobId, conversation_id };
    const asking = { ...ids, step: effect, title, digest };
    expect(bodies.find(({ event }) => event === 'approval.requested')).toMatchObject({
      agent_id: 'thinker',
      data: { ...asking, expires_at },
    });
    expect(bodies.find(({ event }) => event === 'approval.decided')).toMatchObject({
      data: {
        ...asking,
        status: 'rejected',
        decided_by: { kind: 'api_key', id: thinker.keyId },
        reason: 'No',
      },
    });
  });
});

describe('after a restart of the platform', () => {
  /** A platform that can be stopped and started on what it left. */
  async function restartable() {
    const environment = { DATA_DIR: dataDirectory(), SHUTDOWN_GRACE_MS: '200' };
    let own = await startThinkers({ environment });
    onTestFinished(() => own.stop());
    const thinker = await newAsker(own.platform);
    return {
      thinker,
      script: (...script: Parameters<typeof own.provider.script>) => own.provider.script(...script),
      async restart(): Promise<Tenant> {
        await own.stop();
        own = await startThinkers({ environment });
        return await newTenant(own.platform, { organization_id: thinker.organization });
      },
    };
  }

  test('the question waits as before, and the approved call is made', async () => {
    const { thinker, script, restart } = await restartable();
    const log = linesFile();
    script(callingTools([{ name: effected, input: { log } }], 'Done.'));
    const jobId = await thinker.begin('Have an effect');
    const [approval] = await pendingOf(thinker, jobId);
    await unloaded(thinker, jobId);

    const tenant = await restart();
    expect(await pendingOf(tenant, jobId)).toEqual([approval]);
    await decide(tenant, approval, 'approve');
    const { body: job } = await tenant.jobIn(jobId, 'completed');

    expect(job.output).toMatchObject({ answer: 'Hello.' });
    expect(linesOf(log)).toHaveLength(2);
    expect((await tenant.get(`/api/approvals?job_id=${jobId}`)).body.total).toBe(1);
  });

  test('an approved call that had started is not made again, and the model is told so', async () => {
    const { thinker, script, restart } = await restartable();
    const log = linesFile();
    const held = gate();
    const input = { log, until: [held.path] };
    script(callingTools([{ name: effected, input }], 'Done.'));
    const jobId = await thinker.begin('Have an effect');
    const [approval] = await pendingOf(thinker, jobId);
    await decide(thinker, approval, 'approve');
    await waitFor(() => (linesOf(log).length === 1 ? true : null), { describe: 'the start' });

    const tenant = await restart();
    await tenant.jobIn(jobId, 'completed');

    expect(linesOf(log).filter((line) => line.startsWith('begin'))).toHaveLength(1);
    const { body } = await tenant.get(`/api/jobs/${jobId}/steps`);
    expect(body.data[1]).toMatchObject({
      kind: 'tool',
      status: 'failed',
      error: { code: 'approval_used' },
    });
    expect((await tenant.get(`/api/approvals?job_id=${jobId}`)).body.total).toBe(1);
  });
});

embeddedTest('without a decision within seven days the model is told so', async () => {
  const clock = manualClock();
  const own = await startThinkers({ clock });
  onTestFinished(() => own.stop());
  const thinker = await newAsker(own.platform);
  const log = linesFile();
  own.provider.script(callingTools([{ name: effected, input: { log } }], 'Never mind.'));
  const jobId = await thinker.begin('Have an effect');
  const [approval] = await pendingOf(thinker, jobId);
  await unloaded(thinker, jobId);

  clock.advance(7 * 86_400_000);
  const { body: job } = await thinker.jobIn(jobId, 'completed');

  expect(job.output).toMatchObject({ answer: 'Never mind.' });
  expect(linesOf(log)).toEqual([]);
  const { body } = await thinker.get(`/api/approvals/${approval.approval_id}`);
  expect(body).toMatchObject({ status: 'expired', decided_by: null, reason: null });
  expect((await thinker.steps(jobId))[1]).toMatchObject({
    kind: 'tool',
    status: 'failed',
    error: { code: 'approval_expired', message: expect.stringContaining('within 7 days') },
  });
});

/** The rows of the ledger that hold tokens back for the organization. */
function reservedTokens({ organization }: Tenant): Promise<unknown[]> {
  return world.platform.database.read.kysely
    .selectFrom('token_usage')
    .selectAll()
    .where('organization_id', '=', organization)
    .where('reserved_tokens', '>', 0)
    .execute();
}
