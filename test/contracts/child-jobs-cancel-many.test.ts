/** The cancellation of a family with more jobs than one transaction cancels. */
import { describe, expect, test } from 'vitest';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { lockedInTurn } from '../support/deadlocks.ts';
import { activeParent, startChildren, statusOf, waitingParent } from '../support/families.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { mortal } from '../support/mortal-database.ts';

/** Jobs that one transaction cancels. */
const together = 200;

/** So many children more of a job. */
function moreChildren(world: JobsWorld, id: string, count: number): Promise<string[]> {
  return startChildren(
    world,
    id,
    Array.from({ length: count }, (_, i) => 100 + i),
  );
}

/** How many jobs below have each status. */
async function statusesBelow({ database }: JobsWorld, ...parents: string[]) {
  const rows = await database.read.kysely
    .selectFrom('jobs')
    .select(({ fn }) => ['status', fn.countAll<number>().as('n')])
    .where('parent_job_id', 'in', parents)
    .groupBy('status')
    .execute();
  return Object.fromEntries(rows.map(({ status, n }) => [status, Number(n)]));
}

describe.each(await engines())('on $name', (engine) => {
  test('ends the first jobs at once, and the sweep ends the others', async () => {
    const world = await jobsWorld(engine);
    const { id } = await waitingParent(world, 1);
    await moreChildren(world, id, 2 * together + 50);

    const { status } = await world.jobs.cancel('default', id);
    const atOnce = await statusesBelow(world, id);
    await world.recovery.sweep();

    expect(status).toBe('cancelled');
    expect(atOnce).toEqual({ cancelled: together, queued: together + 51 });
    expect(await statusesBelow(world, id)).toEqual({ cancelled: 2 * together + 51 });
    expect(await left(world)).toEqual([]);
    await expectConsistent(world.database);
  }, 60_000);

  test('is finished by another process where the first dies between two transactions', async () => {
    const life = mortal(await engine.fresh());
    const world = await jobsWorld(engine, { database: life.database });
    const { id } = await waitingParent(world, 1);
    await moreChildren(world, id, 3 * together);

    life.dieAfter(1);
    await world.jobs.cancel('default', id);
    await expect(world.recovery.sweep()).rejects.toThrow('has died');
    const afterOne = await statusesBelow(world, id);
    life.dieAfter(2);
    await expect(world.recovery.sweep()).rejects.toThrow('has died');
    const afterThree = await statusesBelow(world, id);
    life.dieAfter(100);
    await world.recovery.sweep();

    expect(await statusOf(world, id)).toBe('cancelled');
    expect(afterOne['cancelled']).toBe(together);
    expect(afterThree['cancelled']).toBeGreaterThan(together);
    expect(await statusesBelow(world, id)).toEqual({ cancelled: 3 * together + 1 });
    expect(await left(world)).toEqual([]);
    await expectConsistent(world.database);
  }, 60_000);

  test('reaches the jobs below children, and stops those that are active', async () => {
    const world = await jobsWorld(engine);
    const { id, children } = await waitingParent(world, 2);
    const [middle = '', busy = ''] = children;
    await waitingParent(world, 1, middle);
    await moreChildren(world, middle, together);
    const { run, ended } = await activeParent(world, 1, busy);
    await moreChildren(world, busy, together);

    await world.jobs.cancel('default', id);
    await world.recovery.sweep();

    expect(await statusOf(world, middle)).toBe('cancelled');
    expect(await statusesBelow(world, middle, busy)).toEqual({ cancelled: 2 * together + 2 });
    expect(run.aborted).toBe('the job was cancelled');
    run.end({ kind: 'aborted' });
    await ended;
    await world.recovery.sweep();
    expect(await statusOf(world, busy)).toBe('cancelled');
    expect(await left(world)).toEqual([]);
    await expectConsistent(world.database);
  }, 60_000);

  test('is the same where the parent fails', async () => {
    const world = await jobsWorld(engine);
    const { id, run, ended } = await activeParent(world);
    await moreChildren(world, id, together + 10);

    run.end(failed({ retryable: false }));
    await ended;
    await world.recovery.sweep();

    expect(await statusOf(world, id)).toBe('failed');
    expect(await statusesBelow(world, id)).toEqual({ cancelled: together + 11 });
    await expectConsistent(world.database);
  }, 60_000);

  test('leaves alone those that end by themselves meanwhile', async () => {
    const world = await jobsWorld(engine);
    const { id, children } = await waitingParent(world, 2);
    await moreChildren(world, id, together + 10);
    const [first = ''] = children;
    const { run, ended } = await world.begin(first);

    const cancelled = world.jobs.cancel('default', id);
    run.end(completed());
    await Promise.all([cancelled, ended]);
    await world.recovery.sweep();

    expect(await statusOf(world, first)).toMatch(/completed|cancelled/);
    const { completed: done = 0, cancelled: stopped } = await statusesBelow(world, id);
    expect(done + (stopped ?? 0)).toBe(together + 12);
    await expectConsistent(world.database);
  }, 60_000);

  test('goes on with a thousand jobs a pass, so that other work of the sweep does not wait', async () => {
    const world = await jobsWorld(engine);
    const { id, child } = await waitingParent(world, 1);
    await waitingParent(world, 1, child);
    await moreChildren(world, id, 4 * together);
    await moreChildren(world, child, 2 * together + 10);
    await world.jobs.cancel('default', id);

    await world.recovery.sweep();
    const afterOne = await statusesBelow(world, id, child);
    await world.recovery.sweep();

    expect(afterOne).toEqual({ cancelled: 6 * together, queued: 12 });
    expect(await statusesBelow(world, id, child)).toEqual({ cancelled: 6 * together + 12 });
    expect(await left(world)).toEqual([]);
  }, 60_000);

  test.runIf(engine.name === 'PostgreSQL')(
    'locks the jobs before what it records of them, as the settlement of the parent does',
    async () => {
      const world = await jobsWorld(engine);
      const { id } = await waitingParent(world, 1);
      await moreChildren(world, id, together + 10);
      await world.jobs.cancel('default', id);

      await lockedInTurn(
        world.database,
        (tx) =>
          tx.kysely.selectFrom('jobs').where('id', '=', id).select('id').forUpdate().execute(),
        () => world.recovery.sweep(),
        (tx) =>
          tx.kysely
            .selectFrom('family_cancellations')
            .selectAll()
            .forUpdate()
            .noWait()
            .executeTakeFirstOrThrow(),
      );

      expect(await statusesBelow(world, id)).toEqual({ cancelled: together + 11 });
      expect(await left(world)).toEqual([]);
    },
    60_000,
  );
});

/** Jobs below which others are left to be cancelled. */
async function left({ database }: JobsWorld): Promise<string[]> {
  const rows = await database.read.kysely
    .selectFrom('family_cancellations')
    .select('job_id')
    .execute();
  return rows.map(({ job_id }) => job_id);
}
