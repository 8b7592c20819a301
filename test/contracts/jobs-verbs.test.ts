/** Cancel, retry and wait: what clients do with jobs (docs/decisions/jobs.md). */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { beginning, jobStream } from '../../src/core/jobs/stream.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import { waitFor } from '../support/wait-for.ts';
import { anyWriter } from '../support/writers.ts';

const org = 'default';
const noSignal = new AbortController().signal;

afterEach(() => {
  vi.useRealTimers();
});

/** Job verbs whose next write waits until `between` has happened. */
function interrupted({ database, jobsOn }: JobsWorld, between: () => Promise<unknown>) {
  let isFirst = true;
  const write: Database['write'] = async (unit) => {
    if (isFirst) {
      isFirst = false;
      await between();
    }
    return database.write(unit);
  };
  return jobsOn({ ...database, write });
}

describe.each(await engines())('on $name', (engine) => {
  describe('cancelling', () => {
    test('ends a queued job at once, with error.code cancelled and a failed conversation', async () => {
      const { submit, jobs, clock, conversations, database, events } = await jobsWorld(engine);
      const job = await submit();
      clock.advance(40);

      const answer = await jobs.cancel(org, job.id);

      expect(answer).toMatchObject({
        job_id: job.id,
        status: 'cancelled',
        error: { code: 'cancelled', message: 'The job was cancelled' },
        output: null,
        attempt: 0,
        started_at: null,
        finished_at: new Date(clock.now()).toISOString(),
        duration_ms: null,
      });
      expect((await conversations.get(org, job.conversation_id)).status).toBe('failed');
      expect((await events(job)).map(({ type }) => type)).toEqual(['conversation.created']);
      await expectConsistent(database);
    });

    test('ends a job that waits for its next attempt', async () => {
      const { submit, attempt, jobs, perform, pool, clock, database } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, failed());

      await jobs.cancel(org, job.id);
      clock.advance(60_000);
      await perform(job.id);

      expect(pool.runs).toHaveLength(1);
      expect(await jobs.get(org, job.id)).toMatchObject({ status: 'cancelled', attempt: 1 });
      await expectConsistent(database);
    });

    test('tells an active run to stop, and ends its job when it has', async () => {
      const { submit, begin, jobs, database } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);

      expect((await jobs.cancel(org, job.id)).status).toBe('active');
      expect(run.aborted).toBe('the job was cancelled');
      run.end({ kind: 'aborted' });
      await ended;

      expect(await jobs.get(org, job.id)).toMatchObject({
        status: 'cancelled',
        error: { code: 'cancelled' },
      });
      await expectConsistent(database);
    });

    test.each([
      ['completes', completed()],
      ['fails and could be tried again', failed()],
      ['fails for good', failed({ retryable: false })],
      ['is displaced', { kind: 'displaced', suspect: true }],
    ] as const)('wins over a run that %s meanwhile', async (_, outcome) => {
      const { submit, worker, jobs, events, messages, database } = await jobsWorld(engine);
      const job = await submit();
      // In another process, which does not hear of the cancellation before its run has ended.
      const { run, ended } = await worker('elsewhere').begin(job.id);

      await jobs.cancel(org, job.id);
      run.end(outcome);
      await ended;

      expect(await jobs.get(org, job.id)).toMatchObject({ status: 'cancelled', output: null });
      expect((await events(job)).map(({ type }) => type)).toEqual(['conversation.created']);
      expect(await messages(job)).toHaveLength(1);
      await expectConsistent(database);
    });

    test('reaches a run in another process at its next renewal', async () => {
      const { submit, worker, jobs } = await jobsWorld(engine);
      const job = await submit();
      const elsewhere = worker('elsewhere');
      const { run, ended } = await elsewhere.begin(job.id);
      await jobs.cancel(org, job.id);
      expect(run.aborted).toBeNull();

      await elsewhere.running.renewLeases();

      expect(run.aborted).toBe('the job was cancelled');
      run.end({ kind: 'aborted' });
      await ended;
      expect((await jobs.get(org, job.id)).status).toBe('cancelled');
    });

    test('holds when the process of the run dies: the job ends as cancelled, not worker_lost', async () => {
      const { submit, worker, jobs, recovery, clock, database } = await jobsWorld(engine);
      const job = await submit();
      await worker('dies').begin(job.id);
      await jobs.cancel(org, job.id);

      clock.advance(leaseMs);
      await recovery.sweep();

      expect(await jobs.get(org, job.id)).toMatchObject({
        status: 'cancelled',
        error: { code: 'cancelled' },
      });
      await expectConsistent(database);
    });

    test('a cancelled job answers with the job again', async () => {
      const { submit, jobs } = await jobsWorld(engine);
      const job = await submit();
      const first = await jobs.cancel(org, job.id);

      expect(await jobs.cancel(org, job.id)).toEqual(first);
    });

    test('twenty times at once is one cancellation, and every answer is the job', async () => {
      const { submit, jobs, database } = await jobsWorld(engine);
      const job = await submit();

      const answers = await Promise.all(Array.from({ length: 20 }, () => jobs.cancel(org, job.id)));

      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['cancelled']));
      await expectConsistent(database);
    });

    test.each([
      ['completed', completed()],
      ['failed', failed({ retryable: false })],
    ])('a job that has %s is job_not_cancellable', async (status, outcome) => {
      const { submit, attempt, jobs } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, outcome);

      await expect(jobs.cancel(org, job.id)).rejects.toMatchObject({
        code: 'job_not_cancellable',
        message: `The job has already ended: ${status}`,
      });
      expect((await jobs.get(org, job.id)).status).toBe(status);
    });

    test('a job that completes between the look and the write is job_not_cancellable', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();
      const jobs = interrupted(world, () => world.attempt(job.id, completed()));

      await expect(jobs.cancel(org, job.id)).rejects.toMatchObject({ code: 'job_not_cancellable' });
      await expectConsistent(world.database);
    });

    test('a job whose attempt begins and ends between the read and the write is cancelled, and the response says so', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();
      const told: unknown[] = [];
      const listening = (async () => {
        for await (const { type, data } of world.stream(job.id)) {
          told.push(type === 'status' ? data.status : type);
        }
      })();
      await waitFor(() => told.length === 1, { describe: 'the stream has begun' });
      const jobs = interrupted(world, () => world.attempt(job.id, failed()));

      expect((await jobs.cancel(org, job.id)).status).toBe('cancelled');

      await listening;
      expect(told).toEqual(['queued', 'active', 'queued', 'cancelled']);
      await expectConsistent(world.database);
    });

    test('while runs begin and end leaves no job in between', async () => {
      const { submit, perform, pool, jobs, row, database } = await jobsWorld(engine);
      const submitted = await Promise.all(Array.from({ length: 60 }, () => submit()));

      const performing = submitted.map(({ id }) => perform(id));
      const cancelling = submitted.map(({ id }) => jobs.cancel(org, id).catch(({ code }) => code));
      const ending = submitted.map(async ({ id }, i) => {
        const run = await pool.begun(id, performing[i] ?? Promise.resolve());
        run?.end(i % 2 === 0 ? completed() : failed());
      });
      await Promise.all([...performing, ...cancelling, ...ending]);

      const statuses = await Promise.all(submitted.map(async ({ id }) => (await row(id)).status));
      expect(statuses.filter((status) => status !== 'cancelled' && status !== 'completed')).toEqual(
        [],
      );
      await expectConsistent(database);
    });
  });

  describe('a retry', () => {
    async function ended(outcome: 'failed' | 'cancelled' | 'completed', skill = 'echo') {
      const world = await jobsWorld(engine);
      const job = await world.submit({
        input: '{"again":[1]}',
        userId: 'ann',
        skill: { category: 'test', name: skill, version: 'v1.0' },
        triggerType: 'webhook',
      });
      if (outcome === 'cancelled') await world.jobs.cancel(org, job.id);
      else {
        await world.attempt(
          job.id,
          outcome === 'completed' ? completed() : failed({ retryable: false }),
        );
      }
      return { ...world, job };
    }

    test.each(['failed', 'cancelled'] as const)(
      'of a %s job is a new job with the same input that names the old one',
      async (outcome) => {
        const { jobs, job, caller, row, hints, database } = await ended(outcome);
        const before = await row(job.id);

        const { job: again } = await jobs.retry(caller, job.id);

        expect(again.id).not.toBe(job.id);
        expect(again.conversation_id).not.toBe(job.conversation_id);
        expect(await jobs.get(org, again.id)).toMatchObject({
          status: 'queued',
          retry_of: job.id,
          input: { again: [1] },
          user_id: 'ann',
          attempt: 0,
          max_attempts: 3,
        });
        expect(await row(job.id)).toEqual(before);
        expect(hints.at(-1)).toMatchObject({ id: again.id, generation: 0 });
        await expectConsistent(database);
      },
    );

    test('of a job that completed is job_not_retryable', async () => {
      const { jobs, job, caller } = await ended('completed');

      await expect(jobs.retry(caller, job.id)).rejects.toMatchObject({ code: 'job_not_retryable' });
    });

    test('of a job that is queued or active is job_not_retryable', async () => {
      const { submit, begin, jobs, caller } = await jobsWorld(engine);
      const job = await submit();

      await expect(jobs.retry(caller, job.id)).rejects.toMatchObject({ code: 'job_not_retryable' });
      await begin(job.id);
      await expect(jobs.retry(caller, job.id)).rejects.toMatchObject({ code: 'job_not_retryable' });
    });

    test('needs every scope of the skill', async () => {
      const { jobs, job, callerOf } = await ended('failed', 'guarded');

      await expect(jobs.retry(await callerOf(org, ['test']), job.id)).rejects.toMatchObject({
        code: 'insufficient_scope',
      });
      await jobs.retry(await callerOf(org, ['secret', 'test']), job.id);
    });

    test('of a version that was deprecated is skill_not_found', async () => {
      const { jobs, job, caller, skills, clock } = await ended('failed');
      clock.advance(1);
      await skills.setDeprecated('test', 'v1.0', 'echo', true);

      await expect(jobs.retry(caller, job.id)).rejects.toMatchObject({ code: 'skill_not_found' });
    });

    test('at a paused agent is agent_paused', async () => {
      const { jobs, job, caller, agents } = await ended('failed');
      await agents.update(anyWriter(org), 'default', { status: 'paused' });

      await expect(jobs.retry(caller, job.id)).rejects.toMatchObject({ code: 'agent_paused' });
    });
  });

  describe('waiting for the end of a job', () => {
    test('answers with a job that has ended at once', async () => {
      const { submit, attempt, jobs } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, completed(1));

      const answer = await jobs.awaitEnd(org, job.id, 60_000, noSignal);

      expect(answer).toEqual(await jobs.get(org, job.id));
    });

    test.each([
      ['completes', completed(), 'completed'],
      ['fails', failed({ retryable: false }), 'failed'],
    ] as const)('answers when it %s', async (_, outcome, status) => {
      const { submit, attempt, jobs, feed } = await jobsWorld(engine);
      const job = await submit();
      const waiting = jobs.awaitEnd(org, job.id, 60_000, noSignal);

      await attempt(job.id, outcome);

      expect((await waiting)?.status).toBe(status);
      expect(feed.hasListeners(job.id)).toBe(false);
    });

    test('answers when it is cancelled', async () => {
      const { submit, jobs } = await jobsWorld(engine);
      const job = await submit();
      const waiting = jobs.awaitEnd(org, job.id, 60_000, noSignal);

      await jobs.cancel(org, job.id);

      expect((await waiting)?.status).toBe('cancelled');
    });

    test('goes on over attempts that fail', async () => {
      const { submit, attempt, jobs, clock } = await jobsWorld(engine);
      const job = await submit();
      const waiting = jobs.awaitEnd(org, job.id, 60_000, noSignal);

      await attempt(job.id, failed());
      clock.advance(10_000);
      await attempt(job.id, completed());

      expect(await waiting).toMatchObject({ status: 'completed', attempt: 2 });
    });

    test('ends after its time: the result is null and no listener is left', async () => {
      const { submit, jobs, feed } = await jobsWorld(engine);
      const job = await submit();
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });

      const waiting = jobs.awaitEnd(org, job.id, 5_000, noSignal);
      await vi.advanceTimersByTimeAsync(4_999);
      expect(feed.hasListeners(job.id)).toBe(true);
      await vi.advanceTimersByTimeAsync(1);

      expect(await waiting).toBeNull();
      expect(feed.hasListeners(job.id)).toBe(false);
    });

    test.each([
      ['goes', false],
      ['has gone already', true],
    ])('is over when the client %s', async (_, isGone) => {
      const { submit, jobs, feed } = await jobsWorld(engine);
      const job = await submit();
      const gone = new AbortController();
      if (isGone) gone.abort();

      const waiting = jobs.awaitEnd(org, job.id, 60_000, gone.signal);
      gone.abort();

      expect(await waiting).toBeNull();
      expect(feed.hasListeners(job.id)).toBe(false);
    });

    test('misses no end, whenever it comes', async () => {
      const { submit, attempt, jobs } = await jobsWorld(engine);
      const submitted = await Promise.all(Array.from({ length: 30 }, () => submit()));

      const answers = await Promise.all(
        submitted.flatMap(({ id }) => [
          jobs.awaitEnd(org, id, 60_000, noSignal),
          attempt(id, completed()).then(() => jobs.awaitEnd(org, id, 60_000, noSignal)),
        ]),
      );

      expect(answers.map((answer) => answer?.status)).toEqual(Array(60).fill('completed'));
    });
  });

  describe("another organization's job", () => {
    test('behaves as one that does not exist, in the same words', async () => {
      const { submit, attempt, jobs, callerOf } = await jobsWorld(engine);
      const stranger = await callerOf('acme');
      const job = await submit();
      await attempt(job.id, failed({ retryable: false }));

      for (const id of [job.id, '0191f3b0-0000-7000-8000-000000000000', 'no id', '']) {
        const refused = { code: 'not_found', message: 'Job not found' };
        await expect(jobs.get('acme', id)).rejects.toMatchObject(refused);
        await expect(jobs.cancel('acme', id)).rejects.toMatchObject(refused);
        await expect(jobs.retry(stranger, id)).rejects.toMatchObject(refused);
        await expect(jobs.awaitEnd('acme', id, 60_000, noSignal)).rejects.toMatchObject(refused);
      }
    });

    test('has no events', async () => {
      const { submit, database, feed } = await jobsWorld(engine);
      const job = await submit();
      const gone = new AbortController();

      const events = jobStream({ database, feed }, 'acme', job.id, beginning, gone.signal);
      const first = events.next();
      gone.abort();

      expect(await first).toEqual({ done: true, value: undefined });
    });
  });
});
