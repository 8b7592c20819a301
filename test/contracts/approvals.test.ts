/** Approvals: questions of runs to a person, each decided once (docs/decisions/runs-that-wait.md). */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { deleteExpired } from '../../src/core/jobs/retention.ts';
import { insertSteps } from '../../src/core/journal/step-queries.ts';
import { activeStep } from '../../src/core/journal/step-rows.ts';
import { endWaitingSteps } from '../../src/core/journal/wait-queries.ts';
import { newId } from '../../src/kernel/ids.ts';
import { approvalWaits } from '../../src/platform/approvals/approval-waits.ts';
import {
  type ApprovalFilters,
  listApprovals,
} from '../../src/platform/approvals/approvals.store.ts';
import {
  Approvals,
  type Decision,
  removeApprovals,
} from '../../src/platform/approvals/approvals.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { completed, type JobsWorld, jobsWorld, waitEndsOf } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { plansOf, recording, rowsOf } from '../support/query-plans.ts';
import { anyWriter } from '../support/writers.ts';

const day = 24 * 60 * 60 * 1000;
const page = { limit: 50, offset: 0 };
const approved: Decision = {
  status: 'approved',
  by: { kind: 'api_key', id: '0198c0de-0000-7000-8000-000000000001' },
  reason: 'Checked.',
};
const rejected: Decision = {
  status: 'rejected',
  by: { kind: 'console', id: '0198c0de-0000-7000-8000-000000000002' },
  reason: null,
};
const question = { title: 'Ship order 7?', details: { total: 129 }, timeoutMs: 7 * day };

describe.each(await engines())('on $name', (engine) => {
  async function approvalsWorld(more: { database?: Database } = {}) {
    const clock = manualClock(new Date().toISOString());
    const world = await jobsWorld(engine, { clock, ...more });
    const waitEnds = waitEndsOf();
    const approvals = new Approvals(contextOf(world), waitEnds);
    return { ...world, approvals };
  }
  type World = Awaited<ReturnType<typeof approvalsWorld>>;

  /** A job whose run is under way and has asked a question with its first step. */
  async function asked(world: World, payload: Record<string, unknown> = {}, fields = {}) {
    const { id } = await world.submit(fields);
    const { run, ended } = await world.begin(id);
    const job = await world.row(id);
    await ask(world, job, 1, payload);
    const { data } = await world.approvals.list(job.organization_id, { job_id: id }, page);
    return { job, run, ended, approval: data[0] as NonNullable<(typeof data)[number]> };
  }

  async function ask(
    { database, clock }: JobsWorld,
    job: Awaited<ReturnType<JobsWorld['row']>>,
    n: number,
    payload: Record<string, unknown>,
  ) {
    const now = clock.now();
    const wait = approvalWaits.read({ ...question, ...payload }, job, now);
    await database.write(async (tx) => {
      const step = { n, kind: 'approval', generation: `step ${n}`, parent: null, turn: 1 } as const;
      const row = { ...step, name: 'ship', started_at: now, due_at: wait.dueAt };
      await insertSteps(tx, [{ ...activeStep(job, row), status: 'waiting' }]);
      await approvalWaits.begin(tx, { job, n, name: 'ship', ...wait }, now);
    });
  }

  /** The deadline, as the sweep meets it: by compare-and-set on the step. */
  async function expire({ database, clock }: JobsWorld, job: { id: string }): Promise<boolean> {
    return await database.write(async (tx) => {
      const result = { value: null };
      const [ended] = await endWaitingSteps(tx, [{ job_id: job.id, n: 1, result }], clock.now());
      const wait = { job: job as never, n: 1, name: 'ship' };
      if (ended) await approvalWaits.expire(tx, wait, clock.now());
      return ended === true;
    });
  }

  async function stepOf({ database }: JobsWorld, jobId: string) {
    return await database.read.kysely
      .selectFrom('job_steps')
      .select(['status', 'result'])
      .where('job_id', '=', jobId)
      .executeTakeFirstOrThrow();
  }

  const eventsOf = async (world: World, job: { id: string; conversation_id: string }) =>
    (await world.events(job))
      .filter(({ type }) => type.startsWith('approval.'))
      .map(({ type, data }) => ({ type, ...JSON.parse(data) }));

  test('a question is pending, with what is asked and until when', async () => {
    const world = await approvalsWorld();
    const { job, approval } = await asked(world);

    expect(approval).toEqual({
      id: expect.any(String),
      approval_id: expect.any(String),
      job_id: job.id,
      agent_id: 'default',
      conversation_id: job.conversation_id,
      step: 'ship',
      user_id: expect.any(String),
      title: 'Ship order 7?',
      details: { total: 129 },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      status: 'pending',
      requested_at: new Date(world.clock.now()).toISOString(),
      expires_at: new Date(world.clock.now() + 7 * day).toISOString(),
      decided_at: null,
      decided_by: null,
      reason: null,
      fields: null,
      link: null,
      answer: null,
    });
    expect(await world.approvals.get('default', approval.approval_id)).toEqual(approval);
    const { approval_id, title, digest, expires_at } = approval;
    const asking = {
      ...{ id: approval_id, approval_id },
      ...{ job_id: job.id, conversation_id: job.conversation_id },
    };
    expect(await eventsOf(world, job)).toEqual([
      { type: 'approval.requested', ...asking, step: 'ship', title, digest, expires_at },
    ]);
  });

  test('the digest is that of title and details, whatever the order of the fields and the deadline', async () => {
    const world = await approvalsWorld();
    const digestOf = async (payload: Record<string, unknown>) =>
      (await asked(world, payload)).approval.digest;

    const first = await digestOf({ details: { a: 1, b: { c: 2, d: 3 } } });

    expect(await digestOf({ details: { b: { d: 3, c: 2 }, a: 1 }, timeoutMs: day })).toBe(first);
    expect(await digestOf({ details: { a: 1, b: { c: 2, d: 4 } } })).not.toBe(first);
    expect(await digestOf({ title: 'Else?', details: { a: 1, b: { c: 2, d: 3 } } })).not.toBe(
      first,
    );
  });

  test.each([
    ['approves', approved, true],
    ['rejects', rejected, false],
  ] as const)(
    'a decision that %s ends the step, and is told to webhooks',
    async (_, decision, yes) => {
      const world = await approvalsWorld();
      const { job, approval } = await asked(world);
      world.clock.advance(5_000);

      const body = await world.approvals.decide('default', approval.approval_id, decision);

      const { status, by, reason } = decision;
      const decided_at = new Date(world.clock.now()).toISOString();
      const decided = { status, decided_at, decided_by: by, reason };
      // No such key is stored.
      expect(body).toEqual({ ...approval, ...decided, decided_by: { ...by, name: null } });
      expect(await world.approvals.get('default', approval.approval_id)).toEqual(body);
      const { status: ended, result } = await stepOf(world, job.id);
      expect(ended).toBe('completed');
      expect(JSON.parse(result ?? '')).toEqual({ value: { approved: yes, by, reason } });
      expect((await eventsOf(world, job))[1]).toMatchObject({
        type: 'approval.decided',
        ...decided,
      });
    },
  );

  test('of twenty decisions at once one counts; the others are 409 and name it', async () => {
    const world = await approvalsWorld();
    const { job, approval } = await asked(world);

    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        world.approvals.decide('default', approval.approval_id, i % 2 ? approved : rejected),
      ),
    );

    const [first, ...more] = results.filter(({ status }) => status === 'fulfilled');
    expect(more).toEqual([]);
    const { status, decided_by } = (first as PromiseFulfilledResult<typeof approval>).value;
    const at = new Date(world.clock.now()).toISOString();
    const refused = results.filter((one) => one.status === 'rejected');
    expect(refused).toHaveLength(19);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ code: 'conflict' });
      expect(reason.message).toContain(`was ${status} at ${at}`);
      expect(reason.message).toContain(decided_by?.id);
    }
    expect(await eventsOf(world, job)).toHaveLength(2);
    expect(JSON.parse((await stepOf(world, job.id)).result ?? '')).toMatchObject({
      value: { approved: status === 'approved' },
    });
  });

  test('of a decision and the deadline at the same moment exactly one counts', async () => {
    const world = await approvalsWorld();
    const questions = await Promise.all(Array.from({ length: 10 }, () => asked(world)));
    world.clock.advance(7 * day - 1);

    for (const { job, approval } of questions) {
      const [expired, decision] = await Promise.all([
        expire(world, job),
        world.approvals.decide('default', approval.approval_id, approved).then(
          () => true,
          (error: { code: string }) => error.code,
        ),
      ]);

      const { status } = await world.approvals.get('default', approval.approval_id);
      expect([expired, decision, status]).toEqual(
        expired ? [true, 'conflict', 'expired'] : [false, true, 'approved'],
      );
      expect(await eventsOf(world, job)).toHaveLength(2);
    }
  });

  test('a decision after the deadline is 409, also before the deadline was noticed', async () => {
    const world = await approvalsWorld();
    const { job, approval } = await asked(world, { timeoutMs: day });
    const decide = () => world.approvals.decide('default', approval.approval_id, approved);
    const refusal = { code: 'conflict', message: `This expired at ${approval.expires_at}` };
    world.clock.advance(day);

    await expect(decide()).rejects.toMatchObject(refusal);
    expect((await stepOf(world, job.id)).status).toBe('waiting');
    expect(await expire(world, job)).toBe(true);
    await expect(decide()).rejects.toMatchObject(refusal);

    expect(await world.approvals.get('default', approval.approval_id)).toMatchObject({
      status: 'expired',
      decided_by: null,
      reason: null,
    });
    expect((await eventsOf(world, job))[1]).toMatchObject({
      type: 'approval.decided',
      status: 'expired',
      decided_by: null,
    });
  });

  test('a form is asked with the question, and its answer is recorded and given to the run', async () => {
    const world = await approvalsWorld();
    const fields = {
      type: 'object' as const,
      properties: {
        carrier: { type: 'string', enum: ['post', 'rail'] },
        weight: { type: 'number' },
      },
      required: ['carrier'],
    };
    const { job, approval } = await asked(world, { fields });
    const plain = await asked(world);
    expect(approval).toMatchObject({ fields, answer: null });
    expect(approval.digest).not.toBe(plain.approval.digest);
    const decide = (more: Partial<Decision>) =>
      world.approvals.decide('default', approval.approval_id, { ...approved, ...more });

    await expect(decide({})).rejects.toMatchObject({
      extras: { details: [{ field: 'answer.carrier', issue: 'is required' }] },
    });
    await expect(decide({ answer: { carrier: 'air', other: 1 } })).rejects.toMatchObject({
      code: 'validation_error',
    });
    const rejecting = decide({ ...rejected, answer: { carrier: 'post' } });
    await expect(rejecting).rejects.toMatchObject({ code: 'validation_error' });
    const answer = { carrier: 'rail', weight: 2.5 };
    expect(await decide({ answer })).toMatchObject({ status: 'approved', answer });

    const { by, reason } = approved;
    const step = await stepOf(world, job.id);
    expect(JSON.parse(step.result ?? '')).toEqual({
      value: { approved: true, by, reason, answer },
    });
    const unasked = world.approvals.decide('default', plain.approval.approval_id, {
      ...approved,
      answer,
    });
    await expect(unasked).rejects.toMatchObject({ code: 'validation_error' });
  });

  test('a run gets no for an answer at the deadline', async () => {
    const world = await approvalsWorld();
    const { job } = await asked(world);

    const result = await world.database.write((tx) =>
      approvalWaits.expire(tx, { job, n: 1, name: 'ship' }, world.clock.now()),
    );

    expect(result).toEqual({ value: { approved: false, by: null, reason: 'expired' } });
  });

  test('the questions of jobs that ended are cancelled, and cannot be decided', async () => {
    const world = await approvalsWorld();
    const { job, approval } = await asked(world);
    const other = await asked(world);
    const decided = await asked(world);
    await world.approvals.decide('default', decided.approval.approval_id, rejected);
    const ids = [job.id, decided.job.id];

    await world.database.write(async (tx) => {
      const ends = ids.map((job_id) => ({ job_id, n: 1, result: { value: null } }));
      await endWaitingSteps(tx, ends, world.clock.now());
      await approvalWaits.abandon(tx, ids, world.clock.now());
    });

    const statusOf = async (one: typeof approval) =>
      (await world.approvals.get('default', one.approval_id)).status;
    expect(await statusOf(approval)).toBe('cancelled');
    expect(await statusOf(other.approval)).toBe('pending');
    expect(await statusOf(decided.approval)).toBe('rejected');
    expect((await eventsOf(world, job))[1]).toMatchObject({
      type: 'approval.decided',
      status: 'cancelled',
      decided_by: null,
    });
    const deciding = world.approvals.decide('default', approval.approval_id, approved);
    await expect(deciding).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('because its job ended'),
    });
  });

  test('an approval of another organization, or of no id, is not found', async () => {
    const world = await approvalsWorld();
    const { approval } = await asked(world);
    await world.callerOf('acme');

    for (const [organization, id] of [
      ['acme', approval.approval_id],
      ['default', newId()],
      ['default', 'x'],
    ] as const) {
      const refusal = { code: 'not_found' };
      await expect(world.approvals.get(organization, id)).rejects.toMatchObject(refusal);
      await expect(world.approvals.decide(organization, id, approved)).rejects.toMatchObject(
        refusal,
      );
    }
    expect((await world.approvals.list('acme', {}, page)).total).toBe(0);
  });

  test('lists are newest first, by status, job and agent, in pages', async () => {
    const world = await approvalsWorld();
    await world.agents.create(anyWriter(), { id: 'other' });
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      const { approval } = await asked(world, {}, i === 4 ? { agentId: 'other' } : {});
      ids.unshift(approval.approval_id);
    }
    const [other, last, ...older] = ids as [string, string, ...string[]];
    await world.approvals.decide('default', last, rejected);
    const list = async (filters: object, asked = page) => {
      const { data, total } = await world.approvals.list('default', filters, asked);
      return { ids: data.map((one) => one.approval_id), total };
    };
    const { job_id } = await world.approvals.get('default', last);

    expect(await list({})).toEqual({ ids, total: 5 });
    expect(await list({ status: 'pending' })).toEqual({ ids: [other, ...older], total: 4 });
    expect(await list({ status: 'rejected' })).toEqual({ ids: [last], total: 1 });
    expect(await list({ status: 'approved' })).toEqual({ ids: [], total: 0 });
    expect(await list({ job_id })).toEqual({ ids: [last], total: 1 });
    expect(await list({ job_id, status: 'pending' })).toEqual({ ids: [], total: 0 });
    expect(await list({ agent_id: 'other' })).toEqual({ ids: [other], total: 1 });
    expect(await list({}, { limit: 2, offset: 1 })).toEqual({ ids: ids.slice(1, 3), total: 5 });
    expect(await list({}, { limit: 2, offset: 5 })).toEqual({ ids: [], total: 5 });
  });

  test('approvals are deleted with their job', async () => {
    const world = await approvalsWorld();
    const { approval, run, ended } = await asked(world);
    await world.approvals.decide('default', approval.approval_id, approved);
    run.end(completed());
    await ended;
    world.clock.advance(31 * day);

    const { database, clock } = world;
    const parts = { database, clock, writer: 'first', removeOfJobs: removeApprovals };
    expect(await deleteExpired({ ...parts, readTo: null }, 30)).toBe(1);

    expect((await world.approvals.list('default', {}, page)).total).toBe(0);
  });

  const kibibytes64 = 65_536;
  test.each([
    ['no title', { title: undefined }, 'title'],
    ['an empty title', { title: '' }, 'title'],
    ['a title that is no text', { title: 7 }, 'title'],
    ['a title of 201 characters', { title: '🏔'.repeat(201) }, 'title'],
    ['a title with NUL', { title: 'a\0b' }, 'title'],
    ['details that are a list', { details: [] }, 'details'],
    ['details above 64 KiB', { details: { a: 'x'.repeat(kibibytes64) } }, 'details'],
    ['details with a lone surrogate', { details: { a: '\ud800' } }, 'details'],
    ['no time', { timeoutMs: undefined }, 'time'],
    ['a negative time', { timeoutMs: -1 }, 'time'],
    ['more than 365 days', { timeoutMs: 366 * day }, '365 days'],
  ])('a question with %s is refused for good', (_, payload, named) => {
    const read = () => approvalWaits.read({ ...question, ...payload }, {} as never, 0);

    expect(read).toThrow(named);
    expect(read).toThrow(expect.objectContaining({ retryable: false }));
  });

  test('the longest question is asked as it is', async () => {
    const world = await approvalsWorld();
    const title = '🏔'.repeat(200);
    const details = { a: 'x'.repeat(kibibytes64 - '{"a":""}'.length) };

    const { approval } = await asked(world, { title, details, timeoutMs: 365 * day });

    expect(approval).toMatchObject({ title, details });
  });

  test('a list reads and counts only the approvals that it has, of however many', async () => {
    const database = await engine.fresh();
    const world = await approvalsWorld({ database });
    const { approval } = await asked(world);
    const row = await database.read.kysely
      .selectFrom('approvals')
      .selectAll()
      .where('id', '=', approval.approval_id)
      .executeTakeFirstOrThrow();
    const copies = Array.from({ length: 5_000 }, (_, i) => ({
      ...row,
      id: `${row.id.slice(0, -6)}${String(i).padStart(6, '0')}`,
      job_id: `${row.job_id.slice(0, -6)}${String(i).padStart(6, '0')}`,
      ...({ status: 'approved', agent_id: 'busy' } as const),
    }));
    await database.write((tx) => tx.insert('approvals', copies));
    if (engine.name === 'PostgreSQL') await sql`analyze approvals`.execute(database.read.kysely);
    const ofJob = '(job_id=?)';
    const ofAgent = 'organization_id=? AND agent_id=?';
    const lists: [filters: ApprovalFilters, keys: string][] = [
      [{ job_ids: [row.job_id] }, ofJob],
      [{ job_ids: [row.job_id], status: 'approved' }, ofJob],
      [{ job_ids: [row.job_id], agent_id: 'busy' }, ofJob],
      [{ agent_id: row.agent_id }, `(${ofAgent})`],
      [{ agent_id: 'busy', status: 'pending' }, `(${ofAgent} AND status=?)`],
      [{ status: 'pending' }, '(organization_id=? AND status=?)'],
      [{ status: 'rejected' }, '(organization_id=? AND status=?)'],
    ];

    for (const [filters, keys] of lists) {
      const { handle, asked: queries } = recording(database);
      const { total } = await listApprovals(handle, 'default', filters, page);
      const about = JSON.stringify(filters);

      expect(total, about).toBeLessThan(2);
      for (const [i, query] of queries.entries()) {
        if (engine.name === 'PostgreSQL') {
          expect(await rowsOf(database, query), about).toBeLessThan(10);
        } else {
          const [plan] = await plansOf(database, 'approvals', query);
          expect(plan, about).toContain(i < 2 ? keys : '(id=?)');
        }
      }
    }
  });
});
