/** Jobs that begin later, or expire before they begin (docs/decisions/jobs.md). */
import { describe, expect, test } from 'vitest';
import { Execution } from '../../src/core/jobs/execute.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, jobsWorld } from '../support/jobs-world.ts';

const org = 'default';
const hour = 60 * 60 * 1_000;
const day = 24 * hour;
/** Beyond the longest delay of a timer, 2^31 ms. */
const far = 300 * day;

describe.each(await engines())('on $name', (engine) => {
  describe('a job that begins later', () => {
    test('is queued without a hint and not claimed before its moment', async () => {
      const world = await jobsWorld(engine, { freeSlots: () => 10 });
      const { submit, clock, recovery, perform, pool, hints, begun, row } = world;
      const job = await submit({ timing: { delayMs: far } });

      expect(begun).toEqual([]);
      expect(await row(job.id)).toMatchObject({ status: 'queued', run_at: clock.now() + far });
      clock.advance(far - 1);
      await perform(job.id);
      await recovery.sweep();

      expect(pool.runs).toEqual([]);
      expect((await row(job.id)).status).toBe('queued');
      expect(hints).toEqual([expect.objectContaining({ id: job.id, delayMs: 1 })]);
    });

    test('is announced shortly before its moment, once, and then begins', async () => {
      const { submit, clock, recovery, attempt, hints, row, database } = await jobsWorld(engine);
      const job = await submit({ timing: { runAt: clock.now() + hour } });

      clock.advance(hour - 6_000);
      await recovery.sweep();
      expect(hints).toEqual([]);
      for (let second = 0; second < 5; second += 1) {
        clock.advance(1_000);
        await recovery.sweep();
      }
      expect(hints.map(({ id, delayMs }) => [id, delayMs])).toEqual([[job.id, 5_000]]);
      clock.advance(1_000);

      expect(await attempt(job.id, completed())).toBe(true);
      const ended = await row(job.id);
      expect(ended).toMatchObject({ status: 'completed', run_at: ended.started_at });
      await expectConsistent(database);
    });

    test('whose announcement was lost has a hint of the sweep once it is due', async () => {
      const { submit, clock, recovery, hints } = await jobsWorld(engine);
      const job = await submit({ timing: { delayMs: hour } });

      clock.advance(hour);
      await recovery.sweep();

      expect(hints).toEqual([expect.objectContaining({ id: job.id, delayMs: 0 })]);
    });

    test('is cancelled at once', async () => {
      const { submit, jobs, clock, perform, pool, database } = await jobsWorld(engine);
      const job = await submit({ timing: { delayMs: hour } });

      expect(await jobs.cancel(org, job.id)).toMatchObject({ status: 'cancelled' });
      clock.advance(hour);
      await perform(job.id);

      expect(pool.runs).toEqual([]);
      await expectConsistent(database);
    });

    test('keeps its moment when the clock is set back, and one of a retry comes forward', async () => {
      const { submit, attempt, clock, recovery, row } = await jobsWorld(engine);
      const moment = clock.now() + 3 * day;
      const named = await submit({ timing: { runAt: moment } });
      const tried = await submit();
      await attempt(tried.id, failed());
      await recovery.sweep();

      clock.jumpTo(clock.now() - day);
      await recovery.sweep();

      expect((await row(named.id)).run_at).toBe(moment);
      expect((await row(tried.id)).run_at).toBeLessThan(clock.now() + hour);
    });
  });

  test('a repeat with its Idempotency-Key gets the job, also once its x-run-at has passed', async () => {
    const world = await jobsWorld(engine);
    const { context, skills, agents, conversations, acceptor, files, caller, clock } = world;
    const execution = new Execution(context, { skills, agents, conversations, acceptor, files });
    const path = { category: 'test', version: 'v1.0', skillName: 'echo' };
    const target = await execution.findTarget(caller, path, () => ({}));
    const timing = { runAt: clock.now() + hour };
    const send = (input: unknown, key: string) =>
      execution.execute(caller, target, input, {
        ...{ userId: 'ada', triggerType: 'api', timing },
        idempotency: { owner: caller.keyId, key },
      });
    const { job } = await send({ a: 1 }, 'one');

    clock.advance(hour);

    expect(await send({ a: 1 }, 'one')).toMatchObject({ job: { id: job.id }, isReplay: true });
    await expect(send({ a: 2 }, 'one')).rejects.toMatchObject({ code: 'idempotency_key_reused' });
    await expect(send({ a: 1 }, 'two')).rejects.toMatchObject({ code: 'validation_error' });
  });

  describe('the moment of a queued job', () => {
    test('moves, sooner with a hint of its own', async () => {
      const { submit, jobs, clock, attempt, hints, row } = await jobsWorld(engine);
      const job = await submit({ timing: { delayMs: hour } });
      const sooner = new Date(clock.now() + 2_000).toISOString();

      expect(await jobs.change(org, job.id, { run_at: sooner })).toMatchObject({ run_at: sooner });
      expect(hints).toEqual([expect.objectContaining({ id: job.id, delayMs: 2_000 })]);
      await jobs.change(org, job.id, { run_at: null });
      expect(hints.at(-1)).toMatchObject({ id: job.id, delayMs: 0 });
      expect(new Set(hints.map(({ generation }) => generation)).size).toBe(2);

      expect(await attempt(job.id, completed())).toBe(true);
      expect((await row(job.id)).status).toBe('completed');
    });

    test('moves for one that waits for its next attempt', async () => {
      const { submit, jobs, attempt, clock, row, database } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, failed());

      await jobs.change(org, job.id, { run_at: new Date(clock.now() + day).toISOString() });
      clock.advance(hour);
      expect(await attempt(job.id, completed())).toBe(false);
      clock.advance(day);

      expect(await attempt(job.id, completed())).toBe(true);
      expect(await row(job.id)).toMatchObject({ status: 'completed', attempt: 2 });
      await expectConsistent(database);
    });

    test('does not move once the job has begun', async () => {
      const { submit, jobs, begin, row } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);

      await expect(jobs.change(org, job.id, { run_at: null })).rejects.toMatchObject({
        code: 'conflict',
      });
      run.end(completed());
      await ended;
      expect((await row(job.id)).status).toBe('completed');
    });

    test('moves behind its expiry once it has begun', async () => {
      const { submit, jobs, clock, attempt, row } = await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });
      await attempt(job.id, failed());
      const late = clock.now() + 2 * hour;

      await jobs.change(org, job.id, { run_at: new Date(late).toISOString() });

      expect((await row(job.id)).run_at).toBe(late);
    });

    test('does not move behind its expiry', async () => {
      const { submit, jobs, clock } = await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });
      const late = new Date(clock.now() + hour).toISOString();

      await expect(jobs.change(org, job.id, { run_at: late })).rejects.toMatchObject({
        code: 'validation_error',
      });
    });
  });

  describe('a job that expires', () => {
    test('before it has begun ends as cancelled with the code expired', async () => {
      const world = await jobsWorld(engine);
      const { submit, jobs, clock, recovery, events, database, stream } = world;
      const [job, other] = [await submit({ timing: { expiresInMs: hour } }), await submit()];

      clock.advance(hour - 1);
      await recovery.sweep();
      expect((await jobs.get(org, job.id)).status).toBe('queued');
      clock.advance(1);
      await recovery.sweep();

      const expired = await jobs.get(org, job.id);
      expect(expired).toMatchObject({
        status: 'cancelled',
        error: { code: 'expired' },
        started_at: null,
        expires_at: new Date(clock.now()).toISOString(),
      });
      expect((await jobs.list(org, { status: 'cancelled' }, { limit: 9, offset: 0 })).total).toBe(
        1,
      );
      expect((await jobs.get(org, other.id)).status).toBe('queued');
      expect((await events(job)).map(({ type }) => type)).toEqual(['conversation.created']);
      const last = (await Array.fromAsync(stream(job.id))).at(-1);
      expect(last?.data).toMatchObject({ status: 'cancelled', error: { code: 'expired' } });
      await expectConsistent(database);
    });

    test('is not claimed any more, also before the sweep has ended it', async () => {
      const { submit, clock, attempt, recovery, row } = await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });

      clock.advance(hour);
      expect(await attempt(job.id, completed())).toBe(false);
      await recovery.sweep();

      expect(await row(job.id)).toMatchObject({ status: 'cancelled', attempt: 0 });
    });

    test('goes on once it has begun, through all of its attempts', async () => {
      const { submit, clock, attempt, recovery, row } = await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });
      await attempt(job.id, failed());

      clock.advance(2 * hour);
      await recovery.sweep();

      expect(await attempt(job.id, completed())).toBe(true);
      expect((await row(job.id)).status).toBe('completed');
    });

    test('goes on once a run that had begun was handed back, whatever became of later claims', async () => {
      const { submit, clock, attempt, worker, recovery, row } = await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });
      await attempt(job.id, { kind: 'aborted' });
      expect(await row(job.id)).toMatchObject({ status: 'queued', attempt: 0 });
      await worker('without', { canRun: () => false }).perform(job.id);

      clock.advance(2 * hour);
      await recovery.sweep();

      expect(await attempt(job.id, completed())).toBe(true);
      expect((await row(job.id)).status).toBe('completed');
    });

    test('goes on once a run that had begun has waited, whatever became of later claims', async () => {
      const { submit, clock, admission, database, settle, attempt, recovery, row } =
        await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });
      for (const outcome of [{ kind: 'waiting' }, { kind: 'deferred', afterMs: 1 }] as const) {
        const [claimed] = await database.write((tx) => admission.claim(tx, [job.id]));
        if (!claimed) throw new Error('It was not claimed.');
        await settle({ job: claimed, outcome, messages: [] });
        clock.advance(1_000);
      }
      expect((await row(job.id)).started_at).not.toBeNull();

      clock.advance(2 * hour);
      await recovery.sweep();

      expect(await attempt(job.id, completed())).toBe(true);
    });

    test('has not begun where its claim ended before its code began', async () => {
      const { submit, clock, worker, recovery, row } = await jobsWorld(engine);
      const job = await submit({ timing: { expiresInMs: hour } });
      // This worker cannot run the skill, and puts the job back.
      await worker('without', { canRun: () => false }).perform(job.id);
      expect(await row(job.id)).toMatchObject({ status: 'queued', attempt: 0, started_at: null });

      clock.advance(hour);
      await recovery.sweep();

      expect(await row(job.id)).toMatchObject({ status: 'cancelled', attempt: 0 });
    });

    test('among many at once is ended with all of them, by two sweepers together', async () => {
      const world = await jobsWorld(engine);
      const { submit, clock, recovery, ownRecovery, database } = world;
      await Promise.all(
        Array.from({ length: 450 }, () => submit({ timing: { expiresInMs: hour } })),
      );

      clock.advance(hour);
      await Promise.all([recovery.sweep(), ownRecovery.sweep()]);

      const rows = await database.read.kysely.selectFrom('jobs').select('error').execute();
      expect(new Set(rows.map(({ error }) => JSON.parse(error ?? '{}').code))).toEqual(
        new Set(['expired']),
      );
      await expectConsistent(database);
    });
  });
});
