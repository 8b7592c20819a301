/** Many jobs, cancelled or run again by filters (docs/decisions/jobs.md). */
import { describe, expect, test } from 'vitest';
import { countOf, openOnes } from '../../src/core/jobs/many-jobs.store.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';

const org = 'default';
const other = { category: 'test', name: 'other', version: 'v1.0' };
const guarded = { category: 'test', name: 'guarded', version: 'v1.0' };
const command = (filters: object, more: object = {}) => ({ filters, isDryRun: false, ...more });

async function submitMany({ submit }: JobsWorld, n: number, fields = {}) {
  return Promise.all(Array.from({ length: n }, () => submit(fields)));
}

async function countsIn({ database }: JobsWorld) {
  const rows = await database.read.kysely.selectFrom('jobs').select(['status']).execute();
  return Object.fromEntries(
    [...Map.groupBy(rows, ({ status }) => status)].map(([status, jobs]) => [status, jobs.length]),
  );
}

describe.each(await engines())('on $name', (engine) => {
  test('cancels queued jobs, stops active ones, and leaves out what the filters do not name', async () => {
    const world = await jobsWorld(engine);
    const { jobs, begin, submit, database, clock } = world;
    const active = await submit();
    const { run, ended } = await begin(active.id);
    await submitMany(world, 120);
    await submitMany(world, 3, { skill: other });
    clock.advance(1);

    const dry = await jobs.cancelMany(org, command({ skill_name: 'echo' }, { isDryRun: true }));
    expect(dry).toMatchObject({ done: false, remaining: 121, cancelled: 0, next: null });
    expect(await countsIn(world)).toEqual({ queued: 123, active: 1 });
    const done = await jobs.cancelMany(org, command({ skill_name: 'echo' }));

    expect(done).toEqual({ done: true, remaining: 0, next: null, cancelled: 120, stopping: 1 });
    expect(run.aborted).toBe('the job was cancelled');
    run.end({ kind: 'aborted' });
    await ended;
    expect(await countsIn(world)).toEqual({ queued: 3, cancelled: 121 });
    await expectConsistent(database);
  });

  test('counts no further than a bound', async () => {
    const world = await jobsWorld(engine);
    await submitMany(world, 5);
    const { read } = world.database;
    const asked = { organizationId: org, filters: {}, after: '', acceptedBy: world.clock.now() };

    expect(await countOf(read, openOnes(read, asked), 4)).toBe(4);
    expect(await countOf(read, openOnes(read, asked), 9)).toBe(5);
  });

  test('goes on after the job where an earlier request stopped', async () => {
    const world = await jobsWorld(engine);
    const submitted = await submitMany(world, 10);
    world.clock.advance(1);
    const after = submitted.map(({ id }) => id).sort()[3];

    const { cancelled } = await world.jobs.cancelMany(
      org,
      command({ status: 'queued' }, { after }),
    );

    expect(cancelled).toBe(6);
  });

  test('touches no other organization', async () => {
    const world = await jobsWorld(engine);
    await world.callerOf('acme');
    await submitMany(world, 2);
    world.clock.advance(1);

    const { cancelled } = await world.jobs.cancelMany('acme', command({ agent_id: 'default' }));

    expect(cancelled).toBe(0);
    expect(await countsIn(world)).toEqual({ queued: 2 });
  });

  test('runs failed jobs again once, however often and at once it is repeated', async () => {
    const world = await jobsWorld(engine);
    const { jobs, attempt, caller, clock, database } = world;
    for (const job of await submitMany(world, 30)) {
      await attempt(job.id, failed({ retryable: false }));
    }
    clock.advance(1);
    const filters = { agent_id: 'default' };

    const dry = await jobs.retryMany(caller, command(filters, { isDryRun: true }));
    expect(dry).toMatchObject({ remaining: 30, retried: 0 });
    const both = await Promise.all([1, 2].map(() => jobs.retryMany(caller, command(filters))));
    const again = await jobs.retryMany(caller, command(filters));

    expect((both[0]?.retried ?? 0) + (both[1]?.retried ?? 0)).toBe(30);
    expect(again).toMatchObject({ retried: 0, remaining: 0, done: true });
    expect(await countsIn(world)).toEqual({ failed: 30, queued: 30 });
    await expectConsistent(database);
  });

  test('goes on without the retries that the first request made', async () => {
    const world = await jobsWorld(engine);
    const { jobs, attempt, caller, clock, database } = world;
    for (const job of await submitMany(world, 30)) {
      await attempt(job.id, failed({ retryable: false }));
    }
    clock.advance(1);
    const filters = { agent_id: 'default' };
    const first = jobs.retryMany(caller, command(filters));
    // Its time is over after the first 20.
    clock.advance(5_000);
    const { retried, remaining, next } = await first;
    expect({ retried, remaining }).toEqual({ retried: 20, remaining: 10 });
    const { kysely } = database.read;
    const made = await kysely.selectFrom('jobs').select('id').where('retry_of', 'is not', null);
    for (const { id } of await made.execute()) await attempt(id, failed({ retryable: false }));

    const second = await jobs.retryMany(caller, command(filters, { after: next }));

    expect(second).toMatchObject({ retried: 10, done: true });
    expect(await countsIn(world)).toEqual({ failed: 50, queued: 10 });
  });

  test('does not run again what the key may not run, and says how many', async () => {
    const world = await jobsWorld(engine);
    const { jobs, attempt, callerOf, clock } = world;
    const narrow = await callerOf(org, ['test']);
    for (const skill of [guarded, other]) {
      const [job] = await submitMany(world, 1, { skill });
      await attempt(job?.id ?? '', failed({ retryable: false }));
    }
    clock.advance(1);

    const answer = await jobs.retryMany(narrow, command({ skill_category: 'test' }));

    expect(answer).toMatchObject({ done: true, retried: 1, refused: { insufficient_scope: 1 } });
  });
});
