/** What the end of a job means to its family: to the parent that waits for it, to the jobs below it. */
import { describe, expect, test } from 'vitest';
import { endUnendedOfKey } from '../../src/core/jobs/revoked-key.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import {
  activeParent,
  numberOf,
  startChild,
  statusOf,
  waiting,
  waitingParent,
} from '../support/families.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';

const broken = failed({ retryable: false });

const stepOf = async ({ database }: JobsWorld, jobId: string, nth = 1) => {
  const { status, result, error } = await database.read.kysely
    .selectFrom('job_steps')
    .select(['status', 'result', 'error'])
    .where('job_id', '=', jobId)
    .where('n', '=', numberOf(nth))
    .executeTakeFirstOrThrow();
  return {
    status,
    value: result === null ? undefined : JSON.parse(result).value,
    error: error === null ? null : JSON.parse(error),
  };
};

const isDue = async (world: JobsWorld, id: string) => {
  const { status, due_at } = await world.row(id);
  return status === 'waiting' && due_at !== null && due_at <= world.clock.now();
};

describe.each(await engines())('on $name', (engine) => {
  describe('the end of a child', () => {
    test('gives its output to the parent that waits, which is due at once', async () => {
      const world = await jobsWorld(engine);
      const { id, child } = await waitingParent(world);
      expect(await isDue(world, id)).toBe(false);

      await world.attempt(child, completed({ text: 'Dear Ada' }));

      expect(await stepOf(world, id)).toMatchObject({
        status: 'completed',
        value: { text: 'Dear Ada' },
      });
      expect(await isDue(world, id)).toBe(true);
      expect(world.hints.at(-1)).toMatchObject({ id, delayMs: 0 });
      await expectConsistent(world.database);
    });

    test('gives its code and message to the parent, which would not fix them by a retry', async () => {
      const world = await jobsWorld(engine);
      const { id, child } = await waitingParent(world);

      await world.attempt(child, broken);

      expect(await stepOf(world, id)).toMatchObject({
        status: 'failed',
        error: { code: 'skill_execution_failed', message: 'it broke', retryable: false },
      });
      expect(await isDue(world, id)).toBe(true);
    });

    test('means nothing to the parent while the child has attempts left', async () => {
      const world = await jobsWorld(engine);
      const { id, child } = await waitingParent(world);

      await world.attempt(child, failed());

      expect(await statusOf(world, child)).toBe('queued');
      expect(await stepOf(world, id)).toMatchObject({ status: 'waiting' });
      expect(await isDue(world, id)).toBe(false);
    });

    test('by a cancellation gives the parent the code cancelled', async () => {
      const world = await jobsWorld(engine);
      const { id, children } = await waitingParent(world, 2);
      const [queued = '', active = ''] = children;
      const { run, ended } = await world.begin(active);

      await world.jobs.cancel('default', queued);
      await world.jobs.cancel('default', active);
      run.end({ kind: 'aborted' });
      await ended;

      const error = { code: 'cancelled', message: 'The job was cancelled', retryable: false };
      expect(await stepOf(world, id, 1)).toMatchObject({ status: 'failed', error });
      expect(await stepOf(world, id, 2)).toMatchObject({ status: 'failed', error });
      expect(await isDue(world, id)).toBe(true);
    });

    test('while the parent is active ends the step alone', async () => {
      const world = await jobsWorld(engine);
      const { id, run, ended, child } = await activeParent(world);

      await world.attempt(child, completed(1));

      expect(await stepOf(world, id)).toMatchObject({ status: 'completed', value: 1 });
      expect(await statusOf(world, id)).toBe('active');
      run.end(completed());
      await ended;
      expect(await statusOf(world, id)).toBe('completed');
    });

    test('while the parent is being unloaded makes it due at once', async () => {
      const world = await jobsWorld(engine);
      for (let round = 0; round < 5; round++) {
        const { id, run, ended, child } = await activeParent(world);
        const { run: inner, ended: innerEnded } = await world.begin(child);

        run.end(waiting);
        inner.end(completed(round));
        await Promise.all([ended, innerEnded]);

        expect(await stepOf(world, id)).toMatchObject({ status: 'completed', value: round });
        expect(await isDue(world, id)).toBe(true);
      }
    });

    test('of two hundred children at once gives the parent each result once', async () => {
      const world = await jobsWorld(engine);
      const { id, children } = await waitingParent(world, 200);
      const begun = await Promise.all(children.map((child) => world.begin(child)));

      for (const [i, { run }] of begun.entries()) run.end(i % 2 === 0 ? completed(i) : broken);
      await Promise.all(begun.map(({ ended }) => ended));

      expect(await stepOf(world, id, 1)).toMatchObject({ status: 'completed', value: 0 });
      expect(await stepOf(world, id, 199)).toMatchObject({ status: 'completed', value: 198 });
      expect(await stepOf(world, id, 200)).toMatchObject({ status: 'failed' });
      const left = await world.database.read.kysely
        .selectFrom('job_steps')
        .selectAll()
        .where('job_id', '=', id)
        .where('status', '=', 'waiting')
        .execute();
      expect(left).toEqual([]);
      expect(await isDue(world, id)).toBe(true);
      await expectConsistent(world.database);
    }, 60_000);

    test('of an attempt whose worker died reaches the parent when its lease is over', async () => {
      const world = await jobsWorld(engine);
      const { id, child } = await waitingParent(world);
      for (let attempt = 1; attempt <= 3; attempt++) {
        world.clock.advance(3_600_000);
        await world.worker(`w${attempt}`).begin(child);
        world.clock.advance(leaseMs + 1);
        await world.recovery.sweep();
      }

      expect(await stepOf(world, id)).toMatchObject({
        status: 'failed',
        error: { code: 'worker_lost' },
      });
      expect(await isDue(world, id)).toBe(true);
    });
  });

  describe('a parent that is cancelled', () => {
    test('while it waits cancels all jobs below it: queued and waiting ones at once', async () => {
      const world = await jobsWorld(engine);
      const { id, children } = await waitingParent(world, 3);
      const [queued = '', middle = '', active = ''] = children;
      const { children: below } = await waitingParent(world, 2, middle);
      const { run, ended } = await world.begin(active);

      await world.jobs.cancel('default', id);

      for (const one of [id, queued, middle, ...below]) {
        expect(await statusOf(world, one)).toBe('cancelled');
      }
      expect(JSON.parse((await world.row(queued)).error ?? '')).toEqual({
        code: 'cancelled',
        message: 'The job that started this one has failed or was cancelled',
      });
      expect(run.aborted).toBe('the job was cancelled');
      run.end({ kind: 'aborted' });
      await ended;
      expect(await statusOf(world, active)).toBe('cancelled');
      expect(await stepOf(world, id)).toMatchObject({ status: 'interrupted' });
      await expectConsistent(world.database);
    });

    test('while it is active cancels them before its run has stopped', async () => {
      const world = await jobsWorld(engine);
      const { id, run, ended, children } = await activeParent(world, 2);
      const [queued = '', active = ''] = children;
      const child = await world.begin(active);

      await world.jobs.cancel('default', id);

      expect(await statusOf(world, id)).toBe('active');
      expect(await statusOf(world, queued)).toBe('cancelled');
      expect(child.run.aborted).toBe('the job was cancelled');
      // Its run is not told: it might act on that before it is stopped.
      expect(await stepOf(world, id)).toMatchObject({ status: 'waiting' });
      child.run.end({ kind: 'aborted' });
      run.end({ kind: 'aborted' });
      await Promise.all([ended, child.ended]);
      expect(await statusOf(world, id)).toBe('cancelled');
      expect(await statusOf(world, active)).toBe('cancelled');
      await expectConsistent(world.database);
    });

    test('while its attempt waits to be repeated cancels those of the earlier attempt', async () => {
      const world = await jobsWorld(engine);
      const { id, run, ended, child } = await activeParent(world);
      run.end(failed());
      await ended;
      expect(await statusOf(world, id)).toBe('queued');
      expect(await statusOf(world, child)).toBe('queued');

      await world.jobs.cancel('default', id);

      expect(await statusOf(world, child)).toBe('cancelled');
    });

    test('at the moment at which its child ends leaves both ended, in either order', async () => {
      const world = await jobsWorld(engine);
      for (let round = 0; round < 6; round++) {
        const { id, child } = await waitingParent(world);
        const { run, ended } = await world.begin(child);

        if (round % 2 === 0) run.end(completed());
        const cancelled = world.jobs.cancel('default', id);
        run.end(completed());
        await Promise.all([cancelled, ended]);

        expect(await statusOf(world, id)).toBe('cancelled');
        expect(await statusOf(world, child)).toMatch(/completed|cancelled/);
      }
      await expectConsistent(world.database);
    });

    test('leaves alone what a completed child has left running', async () => {
      const world = await jobsWorld(engine);
      const { id, child } = await waitingParent(world);
      const { run, ended, child: detached } = await activeParent(world, 1, child);
      run.end(completed());
      await ended;

      await world.jobs.cancel('default', id);

      expect(await statusOf(world, detached)).toBe('queued');
    });

    test('cancels nothing of other families', async () => {
      const world = await jobsWorld(engine);
      const { id } = await waitingParent(world, 2);
      const other = await waitingParent(world, 2);

      await world.jobs.cancel('default', id);

      expect(await statusOf(world, other.id)).toBe('waiting');
      expect(await statusOf(world, other.child)).toBe('queued');
    });
  });

  describe('a parent that ends by itself', () => {
    test('and failed cancels the jobs below it', async () => {
      const world = await jobsWorld(engine);
      const { run, ended, children } = await activeParent(world, 2);
      const [queued = '', active = ''] = children;
      const child = await world.begin(active);

      run.end(broken);
      await ended;

      expect(await statusOf(world, queued)).toBe('cancelled');
      expect(child.run.aborted).toBe('the job was cancelled');
      child.run.end(completed());
      await child.ended;
      expect(await statusOf(world, active)).toBe('cancelled');
      await expectConsistent(world.database);
    });

    test('and completed leaves them, and their ends mean nothing to it', async () => {
      const world = await jobsWorld(engine);
      const { id, run, ended, child } = await activeParent(world);

      run.end(completed());
      await ended;
      expect(await statusOf(world, child)).toBe('queued');
      await world.attempt(child, completed());

      expect(await statusOf(world, child)).toBe('completed');
      expect(await stepOf(world, id)).toMatchObject({ status: 'interrupted' });
      expect(await statusOf(world, id)).toBe('completed');
    });

    test('and is tried again leaves them to the next attempt', async () => {
      const world = await jobsWorld(engine);
      const { id, run, ended, child } = await activeParent(world);

      run.end(failed());
      await ended;
      await world.attempt(child, completed('done'));

      expect(await statusOf(world, id)).toBe('queued');
      expect(await stepOf(world, id)).toMatchObject({ status: 'completed', value: 'done' });
    });

    test('and lost all its workers cancels them', async () => {
      const world = await jobsWorld(engine);
      const parent = await world.submit({ maxAttempts: 1 });
      const elsewhere = world.worker('elsewhere');
      await elsewhere.begin(parent.id);
      const child = await startChild(world, parent.id);
      world.clock.advance(leaseMs + 1);

      await world.recovery.sweep();

      expect(await statusOf(world, parent.id)).toBe('failed');
      expect(await statusOf(world, child)).toBe('cancelled');
    });
  });

  test('a revoked key ends parents and children that are not active, with the reason', async () => {
    const world = await jobsWorld(engine);
    const { keyId } = await world.callerOf('default');
    const { id: parent } = await world.submit({ apiKeyId: keyId });
    const { id, child } = await waitingParent(world, 1, parent);

    await endUnendedOfKey(world.context, world, keyId, { cancelActive: false });

    expect(await statusOf(world, id)).toBe('cancelled');
    expect(await statusOf(world, child)).toBe('cancelled');
    await expectConsistent(world.database);
  });

  test('families that end crosswise in several processes never wait in a circle', async () => {
    const place = await engine.place();
    const database = await place.open();
    const world = await jobsWorld(engine, { database });
    const other = world.worker('other');
    const families = await Promise.all(Array.from({ length: 8 }, () => waitingParent(world, 4)));
    const begun = await Promise.all(
      families.flatMap(({ children }, i) =>
        children.slice(0, 2).map((child) => (i % 2 === 0 ? world : other).begin(child)),
      ),
    );

    const ends = begun.map(async ({ run, ended }) => {
      run.end(completed());
      await ended;
    });
    const cancelled = families
      .toReversed()
      .flatMap(({ id, children: [, , third = ''] }) => [
        world.jobs.cancel('default', third).catch(() => {}),
        world.jobs.cancel('default', id),
      ]);
    await Promise.all([...ends, ...cancelled]);

    for (const { id, children } of families) {
      expect(await statusOf(world, id)).toBe('cancelled');
      for (const child of children) {
        expect(await statusOf(world, child)).toMatch(/completed|cancelled/);
      }
    }
    await expectConsistent(database);
    await database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});
