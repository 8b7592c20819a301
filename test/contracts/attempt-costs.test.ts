/** What an attempt costs: one test for each row of the table in docs/decisions/jobs.md. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { type ClaimedJob, lockJobs } from '../../src/core/jobs/jobs.store.ts';
import { beginningsMax, idleClaimsMax } from '../../src/core/jobs/states.ts';
import { insertSteps } from '../../src/core/journal/step-queries.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import { waitFor } from '../support/wait-for.ts';

/** A job whose code has begun; how its process dies. */
async function begun(world: JobsWorld, id: string): Promise<() => Promise<void>> {
  await world.begin(id);
  return async () => {
    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
  };
}

async function untilDue({ row, clock }: JobsWorld, id: string): Promise<void> {
  clock.advance(Math.max(0, (await row(id)).run_at - clock.now()));
}

/** A job that was claimed as it was accepted, and whose process dies before its code begins. */
async function diesBeforeItBegins(maxAttempts: number, world: JobsWorld): Promise<string> {
  const { id } = await world.submit({ maxAttempts });
  expect(await world.row(id)).toMatchObject({ status: 'active', attempt: 1 });
  world.clock.advance(leaseMs + 1);
  await world.recovery.sweep();
  return id;
}

/** Records that a claim has had the answer of a model. */
async function recordTurn(
  { database, clock }: JobsWorld,
  job: ClaimedJob,
  n: number,
  generation = 'g',
) {
  const at = { started_at: clock.now(), finished_at: clock.now() };
  const turn = generation === 'g' ? n : 1;
  const step = { kind: 'model', generation, parent: null, turn, name: 'a/model' } as const;
  await database.write((tx) =>
    insertSteps(tx, [{ job_id: job.id, n, epoch: job.epoch, status: 'completed', ...step, ...at }]),
  );
}

/** Its process dies; `n` is the number of the turn that the claim recorded before, if any. */
async function losesItsProcess(world: JobsWorld, id: string, n?: number): Promise<void> {
  await untilDue(world, id);
  const die = await begun(world, id);
  if (n !== undefined) await recordTurn(world, (await world.row(id)) as ClaimedJob, n);
  await die();
}

describe.each(await engines())('on $name', (engine) => {
  const ownFaults: [string, RunOutcome][] = [
    ['threw', failed()],
    ['timed out', { kind: 'timeout', message: 'It took too long' }],
    ['ended its process', failed({ message: 'It ended its process' })],
    ['alone used up the memory, or blocked', { kind: 'lost', message: 'It used up the memory' }],
  ];
  test.each(ownFaults)('code that %s is charged', async (_, outcome) => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 2 });

    await world.attempt(id, outcome);
    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 1 });
    await untilDue(world, id);
    await world.attempt(id, outcome);

    expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 2 });
    await expectConsistent(world.database);
  });

  test('an output that breaks the schema is charged, and is final', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 2 });

    await world.attempt(id, {
      ...failed({ retryable: false }),
      code: 'output_invalid',
    } as RunOutcome);

    expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 1 });
  });

  test('the death of its executor by another fault is charged to no one, and after two it runs alone', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 1 });

    for (let deaths = 1; deaths <= 2; deaths++) {
      await world.attempt(id, { kind: 'displaced', suspect: true }, (run) =>
        expect(run.request.alone).not.toBe(true),
      );
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0, deaths });
    }
    await world.attempt(id, { kind: 'lost', message: 'It died' }, (run) =>
      expect(run.request.alone).toBe(true),
    );

    expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 1 });
    await expectConsistent(world.database);
  });

  test('the death of its process after its code began is charged, and ends the last attempt', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 2 });

    await losesItsProcess(world, id);
    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 1 });
    await losesItsProcess(world, id);

    const { error, ...job } = await world.row(id);
    expect(job).toMatchObject({ status: 'failed', attempt: 2 });
    expect(error).toContain('worker_lost');
    await expectConsistent(world.database);
  });

  test('the death of its process before its code began is not charged to the last attempt', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 1 });

    const id = await diesBeforeItBegins(1, world);

    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0, error: null });
    await world.attempt(id, completed());
    expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
    expect(world.pool.runs).toHaveLength(1);
    await expectConsistent(world.database);
  });

  test('a stop before its code begins gives the claim back, whatever the number of attempts', async () => {
    for (const maxAttempts of [1, 2]) {
      const world = await jobsWorld(engine, { freeSlots: () => 1 });
      const { id } = await world.submit({ maxAttempts });
      const claimed = world.begun.find((job) => job.id === id) as ClaimedJob;

      const ended = world.performer.performAccepted(claimed);
      world.running.handBack();
      // A run without permission to begin has ended; the other is in an executor.
      if (maxAttempts > 1) (await world.pool.begun(id)).end({ kind: 'aborted' });
      await ended;

      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0, error: null });
      expect(world.pool.runs).toHaveLength(maxAttempts - 1);
      await expectConsistent(world.database);
    }
  });

  test('a run that goes on after a wait, and whose process dies before its code does, is not charged', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 1 });
    await world.attempt(id, { kind: 'waiting' });
    expect(await world.row(id)).toMatchObject({ status: 'waiting', attempt: 1 });
    // The claim of a process that dies with it.
    const [claimed] = await world.database.write((tx) => world.admission.claim(tx, [id]));
    expect(claimed).toMatchObject({ attempt: 1, epoch: 2 });
    world.clock.advance(leaseMs + 1);

    await world.recovery.sweep();

    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0, error: null });
    await world.attempt(id, completed());
    expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
    await expectConsistent(world.database);
  });

  test('a claim of an earlier version, which records no beginning, counts as begun', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 1 });
    await world.database.write((tx) =>
      tx.kysely
        .updateTable('jobs')
        .set({ status: 'active', attempt: 1, epoch: 1, due_at: world.clock.now() })
        .where('id', '=', id)
        .execute(),
    );
    world.clock.advance(1);

    await world.recovery.sweep();

    expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 1 });
  });

  test('a claim that lost its job before its code began does not begin', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 1 });
    const id = await diesBeforeItBegins(1, world);
    const late = world.begun.find((job) => job.id === id) as ClaimedJob;

    await world.performer.performAccepted(late);

    expect(world.pool.runs).toHaveLength(0);
    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0 });
  });

  test('a claim whose code had not begun is given back, and is no lost attempt', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 1 });
    const { recovery, warnings } = world.worker('another');
    const { id } = await world.submit({ maxAttempts: 1 });
    world.clock.advance(leaseMs + 1);

    await recovery.sweep();

    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0 });
    expect(warnings).toEqual([]);
  });

  test('a run that is handed back at a stop, or waits, is not charged', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ maxAttempts: 1 });

    await world.attempt(id, { kind: 'aborted' });
    expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0 });
    await world.attempt(id, { kind: 'waiting' });
    expect(await world.row(id)).toMatchObject({ status: 'waiting', attempt: 1 });
    await world.attempt(id, completed());

    expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
    await expectConsistent(world.database);
  });

  describe('of a run of a model', () => {
    test('the count of attempts begins anew with a death after a turn', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit({ maxAttempts: 2 });

      await losesItsProcess(world, id);
      await losesItsProcess(world, id, 1);
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 2, max_attempts: 4 });
      await losesItsProcess(world, id, 2);
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 3, max_attempts: 5 });
      await losesItsProcess(world, id);
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 4 });
      await losesItsProcess(world, id);

      expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 5 });
      await expectConsistent(world.database);
    });

    test('failures of code that asks for something else in each attempt are bounded', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit({ maxAttempts: 2 });
      let turns = 0;
      const fail = async (generation: string) => {
        await untilDue(world, id);
        await world.attempt(id, failed(), async () => {
          turns += 1;
          await recordTurn(world, (await world.row(id)) as ClaimedJob, turns, generation);
        });
      };

      for (let n = 1; n <= beginningsMax; n++) await fail(`another-${n}`);
      expect(await world.row(id)).toMatchObject({
        status: 'queued',
        attempt: beginningsMax,
        max_attempts: beginningsMax + 2,
      });
      await fail('another');
      // One that goes on where an earlier attempt was has advanced.
      await fail('another');
      expect(await world.row(id)).toMatchObject({
        status: 'queued',
        attempt: beginningsMax + 2,
        max_attempts: beginningsMax + 4,
      });
      await fail('one more');
      await fail('the last');

      expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: beginningsMax + 4 });
      await expectConsistent(world.database);
    });

    test('the count of attempts begins anew with a failure after a turn that goes on, however often', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit({ maxAttempts: 2 });
      const fail = async (n?: number) => {
        await untilDue(world, id);
        await world.attempt(id, failed(), async () => {
          if (n !== undefined) await recordTurn(world, (await world.row(id)) as ClaimedJob, n);
        });
      };

      await fail();
      for (let n = 2; n <= 6; n++) {
        await fail(n);
        expect(await world.row(id)).toMatchObject({
          status: 'queued',
          attempt: n,
          max_attempts: n + 2,
          // The backoff does not grow with what has advanced.
          run_at: expect.toSatisfy((at: number) => at - world.clock.now() < 4_000),
        });
      }
      // A failure without a new turn is bounded, as it is without a model.
      await fail();
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 7 });
      await fail();

      expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 8 });
      await expectConsistent(world.database);
    });

    test('a failure that is not retryable is final after a turn, too', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit({ maxAttempts: 3 });

      await world.attempt(id, failed({ retryable: false }), async () =>
        recordTurn(world, (await world.row(id)) as ClaimedJob, 1),
      );

      expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 1, max_attempts: 3 });
    });

    test('a failure of its own code after a turn is charged to a skill with one attempt', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit({ maxAttempts: 1 });

      await world.attempt(id, failed(), async () =>
        recordTurn(world, (await world.row(id)) as ClaimedJob, 1),
      );

      expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 1, max_attempts: 1 });
    });

    test(`${idleClaimsMax} claims in a row without a new turn end it`, async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const interrupt = () => world.attempt(id, { kind: 'aborted' });
      await world.attempt(id, { kind: 'aborted' }, async () =>
        recordTurn(world, (await world.row(id)) as ClaimedJob, 1),
      );
      for (let i = 1; i < idleClaimsMax; i++) await interrupt();
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0 });
      // A claim that ends in a wait has gone on.
      await world.attempt(id, { kind: 'waiting' });
      for (let i = 1; i < idleClaimsMax; i++) await interrupt();
      expect(await world.row(id)).toMatchObject({ status: 'queued' });

      await interrupt();

      const { status, error } = await world.row(id);
      expect(status).toBe('failed');
      expect(error).toContain('without a new turn');
      await expectConsistent(world.database);
    });

    test('a claim with a new turn that fails begins the row of them anew', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const turn = (n: number) => async () =>
        recordTurn(world, (await world.row(id)) as ClaimedJob, n);
      await world.attempt(id, { kind: 'aborted' }, turn(1));
      for (let i = 1; i < idleClaimsMax; i++) await world.attempt(id, { kind: 'aborted' });

      await world.attempt(id, failed(), turn(2));
      await untilDue(world, id);
      await world.attempt(id, { kind: 'aborted' });

      expect(await world.row(id)).toMatchObject({ status: 'queued', idle_claims: 1 });
      // One without a turn leaves it as it is.
      await world.attempt(id, failed());
      expect(await world.row(id)).toMatchObject({ status: 'queued', idle_claims: 1 });
    });

    test.runIf(engine.name === 'PostgreSQL')(
      'a child that is stuck ends under the lock of its family, parents first',
      async () => {
        const world = await jobsWorld(engine);
        const { database } = world;
        const parent = await world.submit();
        const child = await world.submit();
        const ofParent = { parent_job_id: parent.id, parent_step: 1 };
        await database.write(async (tx) => {
          const update = tx.kysely.updateTable('jobs').set(ofParent);
          await update.where('id', '=', child.id).execute();
        });
        await world.attempt(child.id, { kind: 'aborted' }, async () =>
          recordTurn(world, (await world.row(child.id)) as ClaimedJob, 1),
        );
        for (let i = 1; i < idleClaimsMax; i++) await world.attempt(child.id, { kind: 'aborted' });
        const { run, ended } = await world.begin(child.id);
        const waitsForLock = async () => {
          const { rows } = await sql`select 1 from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(
            database.read.kysely,
          );
          return rows.length > 0;
        };

        await database.write(async (tx) => {
          await lockJobs(tx, [parent.id]);
          run.end({ kind: 'aborted' });
          await waitFor(waitsForLock, { describe: 'the settlement waits for the parent' });
          // Not locked yet: its parent comes first.
          await sql`select 1 from jobs where id = ${child.id} for update nowait`.execute(tx.kysely);
        });
        await ended;

        expect(await world.row(child.id)).toMatchObject({ status: 'failed' });
      },
    );
  });
});
