/** Leases, the sweep, and what follows when a process stops or dies (docs/decisions/jobs.md). */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import { requestCancellation } from '../../src/core/jobs/jobs.store.ts';
import { RunningJobs } from '../../src/core/jobs/runs/running-jobs.ts';
import { JobRecovery } from '../../src/core/jobs/turns/recover.ts';
import { PlatformError } from '../../src/kernel/errors.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import { waitFor } from '../support/wait-for.ts';

const day = 24 * 60 * 60 * 1_000;

describe.each(await engines())('on $name', (engine) => {
  describe('a cancellation whose message was lost', () => {
    test('stops its run, among many others that are being stopped in other processes', async () => {
      const { submit, begin, worker, database, running, row } = await jobsWorld(engine);
      const elsewhere = await submit();
      await worker('elsewhere').begin(elsewhere.id);
      const other = await row(elsewhere.id);
      await database.write((tx) =>
        tx.insert(
          'jobs',
          Array.from({ length: 1_500 }, () => ({ ...other, id: newId(), cancel_requested_at: 1 })),
        ),
      );
      const [mine, spared] = [await submit(), await submit()];
      const [run, sparedRun] = [await begin(mine.id), await begin(spared.id)];
      await database.write((tx) => requestCancellation(tx, { id: mine.id, now: 1 }));

      await running.findCancelled();

      expect(run.run.aborted).toBe('the job was cancelled');
      expect(sparedRun.run.aborted).toBeNull();
    });
  });

  describe('a lease', () => {
    test('is renewed while the run goes on, so that no other worker claims the job', async () => {
      const { submit, begin, running, recovery, clock, row } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);

      for (let i = 0; i < 10; i++) {
        clock.advance(leaseMs - 1);
        await running.renewLeases();
        await recovery.sweep();
      }
      run.end(completed());
      await ended;

      expect(await row(job.id)).toMatchObject({ status: 'completed', attempt: 1, epoch: 1 });
    });

    test('that expires gives the job back; the attempt is used up', async () => {
      const { submit, begin, recovery, clock, row, hints, database } = await jobsWorld(engine);
      const job = await submit();
      await begin(job.id);

      clock.advance(leaseMs - 1);
      await recovery.sweep();
      expect((await row(job.id)).status).toBe('active');
      clock.advance(1);
      await recovery.sweep();

      const { status, attempt, run_at } = await row(job.id);
      expect({ status, attempt }).toEqual({ status: 'queued', attempt: 1 });
      expect(run_at).toBeGreaterThan(clock.now());
      expect(hints.at(-1)).toMatchObject({ id: job.id, generation: 1 });
      await expectConsistent(database);
    });

    test('that expires at the last attempt ends the job as worker_lost', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit({ maxAttempts: 2 });

      for (let i = 0; i < 2; i++) {
        await world.worker(`dead ${i}`).begin(job.id);
        world.clock.advance(leaseMs);
        await world.recovery.sweep();
        world.clock.advance(60_000);
      }

      expect(await world.row(job.id)).toMatchObject({ status: 'failed', attempt: 2 });
      expect((await world.jobs.get('default', job.id)).error?.code).toBe('worker_lost');
      expect((await world.events(job)).map(({ type }) => type)).toEqual([
        'conversation.created',
        'skill.failed',
      ]);
    });

    test.each([
      ['before another worker claims it', false],
      ['after another worker claimed it', true],
    ])('that was lost makes a late result count for nothing: %s', async (_, isClaimed) => {
      const world = await jobsWorld(engine);
      const { submit, recovery, clock, row, messages, events, database } = world;
      const job = await submit();
      const slow = world.worker('slow');
      const late = await slow.begin(job.id);
      clock.advance(leaseMs);
      await recovery.sweep();
      clock.advance(5_000);
      const next = isClaimed ? await world.begin(job.id) : null;

      late.run.end(completed('late'));
      await late.ended;

      expect(await row(job.id)).toMatchObject({
        status: isClaimed ? 'active' : 'queued',
        output: null,
      });
      expect(slow.warnings).toEqual([expect.stringContaining('late result was dropped')]);
      if (next === null) await world.attempt(job.id, completed('in time'));
      else {
        next.run.end(completed('in time'));
        await next.ended;
      }
      expect(await row(job.id)).toMatchObject({ status: 'completed', output: '"in time"' });
      expect((await messages(job)).map(({ content }) => content)).toEqual(['{"a":1}', 'in time']);
      expect((await events(job)).filter(({ type }) => type === 'skill.completed')).toHaveLength(1);
      await expectConsistent(database);
    });

    test('that was lost aborts the run at the next renewal, and its end changes nothing', async () => {
      const { submit, worker, recovery, clock, row, begin } = await jobsWorld(engine);
      const job = await submit();
      const slow = worker('slow');
      const late = await slow.begin(job.id);
      clock.advance(leaseMs);
      await recovery.sweep();
      clock.advance(5_000);
      await begin(job.id);

      await slow.running.renewLeases();

      expect(late.run.aborted).not.toBeNull();
      late.run.end({ kind: 'aborted' });
      await late.ended;
      expect(await row(job.id)).toMatchObject({ status: 'active', epoch: 2 });
    });

    test('that was lost to a later run in the same process does not affect that run', async () => {
      const { submit, begin, recovery, running, clock, row, jobs } = await jobsWorld(engine);
      const job = await submit();
      // The machine slept: the wall clock is far ahead before anything could be renewed.
      const first = await begin(job.id);
      clock.advance(leaseMs);
      await recovery.sweep();
      clock.advance(5_000);
      const second = await begin(job.id);

      await running.renewLeases();
      expect(first.run.aborted).not.toBeNull();
      expect(second.run.aborted).toBeNull();
      first.run.end({ kind: 'aborted' });
      await first.ended;

      expect(running.count()).toBe(1);
      clock.advance(leaseMs - 1);
      await running.renewLeases();
      clock.advance(leaseMs - 1);
      await recovery.sweep();
      expect(await row(job.id)).toMatchObject({ status: 'active', epoch: 2 });
      await jobs.cancel('default', job.id);
      expect(second.run.aborted).not.toBeNull();
    });

    test('of an own run is renewed by a sweep that finds it expired, as after a sleep of the machine', async () => {
      const { submit, begin, ownRecovery, clock, row } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);

      clock.advance(leaseMs * 3);
      await ownRecovery.sweep();

      expect(run.aborted).toBeNull();
      expect(await row(job.id)).toMatchObject({ status: 'active', epoch: 1, attempt: 1 });
      run.end(completed('awake'));
      await ended;
      expect(await row(job.id)).toMatchObject({ status: 'completed', attempt: 1 });
    });

    test('is no longer than a lease after the clock was set back by a day', async () => {
      const { submit, worker, recovery, clock, row } = await jobsWorld(engine);
      const job = await submit();
      await worker('dead').begin(job.id);
      await recovery.sweep();
      clock.jumpTo(clock.now() - day);

      await recovery.sweep();
      clock.advance(leaseMs + 1_000);
      await recovery.sweep();

      expect((await row(job.id)).status).toBe('queued');
    });

    test('that expired while the database was away is first left to the workers that may renew it', async () => {
      const world = await jobsWorld(engine);
      const { clock, database, settler, running } = world;
      const log = createLogger('silent');
      const queue = new MemoryQueue(log);
      onTestFinished(() => queue.close());
      const context = { ...world.context, database, queue, clock, log };
      const { places } = settler.parts;
      const ofScheduler = { settler, running: new RunningJobs(context), places };
      const scheduler = new JobRecovery(context, ofScheduler, { graceMs: 3_000 });
      const [held, lost] = [await world.submit(), await world.submit()];
      await world.begin(held.id);
      await world.worker('dead').begin(lost.id);

      clock.advance(leaseMs * 2);
      await scheduler.sweep();
      expect(await world.row(held.id)).toMatchObject({ status: 'active', epoch: 1 });
      await running.renewLeases();
      clock.advance(3_000);
      await scheduler.sweep();

      expect(await world.row(held.id)).toMatchObject({ status: 'active', epoch: 1 });
      expect(await world.row(lost.id)).toMatchObject({ status: 'queued', attempt: 1 });
    });

    test('is renewed only by the worker that holds it', async () => {
      const { submit, worker, recovery, clock, row, begin } = await jobsWorld(engine);
      const job = await submit();
      const slow = worker('slow');
      await slow.begin(job.id);
      clock.advance(leaseMs);
      await recovery.sweep();
      clock.advance(5_000);
      await begin(job.id);
      const { due_at } = await row(job.id);

      // A process that was suspended may have an old time, too.
      clock.jumpTo(clock.now() - 60_000);
      await slow.running.renewLeases();

      expect(await row(job.id)).toMatchObject({ status: 'active', epoch: 2, due_at });
    });

    test('of a process that was killed is ended at the start of the only process', async () => {
      const { submit, begin, recovery, row, database } = await jobsWorld(engine);
      const submitted = await Promise.all([submit(), submit({ maxAttempts: 1 }), submit()]);
      await begin(submitted[0]!.id);
      await begin(submitted[1]!.id);

      expect(await recovery.endOrphans()).toBe(2);

      const statuses = await Promise.all(submitted.map(async ({ id }) => (await row(id)).status));
      expect(statuses).toEqual(['queued', 'failed', 'queued']);
      expect(await recovery.endOrphans()).toBe(0);
      await expectConsistent(database);
    });
  });

  describe('a process that stops', () => {
    test('hands its runs back at no cost, and they are claimed again', async () => {
      const { submit, begin, running, row, worker, database } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);

      running.handBack();
      expect(run.aborted).toBe('the platform is stopping');
      run.end({ kind: 'aborted' });
      await ended;

      expect(await row(job.id)).toMatchObject({ status: 'queued', attempt: 0, deaths: 0 });
      await worker('next').attempt(job.id, completed());
      expect(await row(job.id)).toMatchObject({ status: 'completed', attempt: 1 });
      await expectConsistent(database);
    });

    test('records a run that ended before the stop reached it', async () => {
      const { submit, begin, running, row } = await jobsWorld(engine);
      const [done, broken] = [await submit(), await submit()];
      const runs = [await begin(done.id), await begin(broken.id)];

      running.handBack();
      runs[0]?.run.end(completed());
      runs[1]?.run.end(failed());
      await Promise.all(runs.map(({ ended }) => ended));

      expect((await row(done.id)).status).toBe('completed');
      // Attempts are left, so a stop is no reason to give up on it.
      expect(await row(broken.id)).toMatchObject({ status: 'queued', attempt: 1 });
    });
  });

  describe('a database that cannot be used when a run ends', () => {
    async function interruptible() {
      const real = await engine.fresh();
      const state = { isDown: false };
      const write: Database['write'] = (unit) =>
        state.isDown
          ? Promise.reject(new PlatformError('service_unavailable', 'down', { retryAfter: 1 }))
          : real.write(unit);
      return { ...(await jobsWorld(engine, { database: { ...real, write } })), state };
    }

    test('is waited for: the result is recorded when it is back, and the run is not repeated', async () => {
      const { submit, begin, state, warnings, running, row, database } = await interruptible();
      const job = await submit();
      const { run, ended } = await begin(job.id);

      state.isDown = true;
      run.end(completed('kept'));
      await waitFor(() => warnings.length > 0, { describe: 'the result waits' });
      // It counts as running, so that its lease is renewed.
      expect(running.count()).toBe(1);
      state.isDown = false;
      await ended;

      expect(await row(job.id)).toMatchObject({
        status: 'completed',
        output: '"kept"',
        attempt: 1,
        epoch: 1,
      });
      await expectConsistent(database);
    });

    test('does not hold up a stop: the next start runs the job again', async () => {
      const world = await interruptible();
      const { submit, begin, state, warnings, running, row, recovery } = world;
      const left: unknown[] = [];
      world.context.observers.add({ left: ({ id }, how) => left.push([id, how]) });
      const job = await submit();
      const { run, ended } = await begin(job.id);
      state.isDown = true;
      run.end(completed());
      await waitFor(() => warnings.length > 0, { describe: 'the result waits' });

      running.handBack();
      await ended;

      expect(running.count()).toBe(0);
      expect(left).toEqual([[job.id, 'unrecorded']]);
      state.isDown = false;
      expect((await row(job.id)).status).toBe('active');
      expect(await recovery.endOrphans()).toBe(1);
      expect((await row(job.id)).status).toBe('queued');
    });
  });

  describe('the sweep', () => {
    test('sends hints for organizations with due jobs and for no others', async () => {
      const { submit, attempt, begin, recovery, hints, clock } = await jobsWorld(engine);
      const waiting = await submit();
      await attempt((await submit()).id, completed());
      await begin((await submit()).id);
      const retried = await submit({ triggerType: 'scheduled', maxAttempts: 4 });
      await attempt(retried.id, failed());
      hints.length = 0;

      await recovery.sweep();
      expect(hints.map(({ id }) => id)).toEqual([waiting.id]);

      hints.length = 0;
      clock.advance(1_000);
      await recovery.sweep();
      const due = { organizationId: 'default', delayMs: 0 };
      expect(hints).toMatchObject([
        { ...due, queue: 'skill-execution', id: waiting.id },
        { ...due, queue: 'scheduled-jobs', id: retried.id },
      ]);
    });

    test('sends one hint for an organization, however many of its jobs wait, also behind those that are not due', async () => {
      const { submit, attempt, callerOf, recovery, hints } = await jobsWorld(engine);
      const { organizationId, keyId: apiKeyId } = await callerOf('acme');
      await submit();
      await attempt((await submit({ organizationId, apiKeyId })).id, failed());
      for (let i = 0; i < 5; i++) await submit({ organizationId, apiKeyId, priority: 2 });
      hints.length = 0;

      await recovery.sweep();

      expect(hints.map((hint) => hint.organizationId)).toEqual(['acme', 'default']);
    });

    test('by many processes at once ends a lost attempt once', async () => {
      const { submit, begin, recovery, clock, row, observed, database } = await jobsWorld(engine);
      const submitted = await Promise.all(Array.from({ length: 10 }, () => submit()));
      for (const { id } of submitted) await begin(id);
      clock.advance(leaseMs);

      await Promise.all(Array.from({ length: 5 }, () => recovery.sweep()));

      expect(observed).toHaveLength(10);
      for (const { id } of submitted) {
        expect(await row(id)).toMatchObject({ status: 'queued', attempt: 1 });
      }
      await expectConsistent(database);
    });

    test('ends more lost attempts than it takes at a time', async () => {
      const { submit, pool, perform, recovery, clock, observed, database } =
        await jobsWorld(engine);
      const submitted = await Promise.all(Array.from({ length: 1_200 }, () => submit()));
      for (const { id } of submitted) perform(id).catch(() => {});
      await Promise.all(submitted.map(({ id }) => pool.begun(id)));
      clock.advance(leaseMs);

      await recovery.sweep();

      expect(observed).toHaveLength(1_200);
      await expectConsistent(database);
    });
  });

  describe('a clock that is set back by a day', () => {
    test('holds no job that waits, and no retry for longer than its delay', async () => {
      const { submit, attempt, recovery, clock, row } = await jobsWorld(engine);
      const waiting = await submit();
      const failing = await submit();
      await attempt(failing.id, failed());
      const delayMs = (await row(failing.id)).run_at - clock.now();
      await recovery.sweep();
      clock.jumpTo(clock.now() - day);

      await recovery.sweep();

      expect((await row(waiting.id)).run_at).toBe(clock.now());
      const due = await row(failing.id);
      expect(due.run_at).toBe(clock.now() + delayMs);
      expect(due.due_at).toBe(due.run_at);
      clock.advance(delayMs);
      await recovery.sweep();
      expect(await attempt(waiting.id, completed())).toBe(true);
      expect(await attempt(failing.id, completed())).toBe(true);
    });

    test('is noticed after a restart, too', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, failed());
      world.clock.jumpTo(world.clock.now() - day);

      await world.recovery.sweep();

      expect((await world.row(id)).run_at).toBeLessThanOrEqual(world.clock.now() + 1_000);
    });

    test('makes no duration negative: it is what the process has measured', async () => {
      const { submit, begin, clock, jobs, events, observed } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);
      clock.advance(1_500);
      clock.jumpTo(clock.now() - day);

      run.end(completed());
      await ended;

      expect((await jobs.get('default', job.id)).duration_ms).toBe(1_500);
      expect(JSON.parse((await events(job)).at(-1)?.data ?? '')).toMatchObject({
        duration_ms: 1_500,
      });
      expect(observed.at(-1)?.tookMs).toBe(1_500);
    });
  });
});
