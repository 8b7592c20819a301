/** Many jobs, cancelled or run again by filters (docs/decisions/jobs.md). */
import { describe, expect, test } from 'vitest';
import type { RequestHits } from '../../src/adapters/http/request-hits.ts';
import { findManyJobs } from '../../src/core/jobs/many-jobs/many-jobs.store.ts';
import { newId } from '../../src/kernel/ids.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';

const org = 'default';
const other = { category: 'test', name: 'other', version: 'v1.0' };
const guarded = { category: 'test', name: 'guarded', version: 'v1.0' };
const command = (filters: object, more: object = {}) => ({ filters, isDryRun: false, ...more });

/** A request whose key has so many hits left. */
function hits(left = Number.POSITIVE_INFINITY): RequestHits {
  let counted = 0;
  return { countNext: async () => ++counted <= left } as RequestHits;
}

async function idsIn({ database }: JobsWorld) {
  const { kysely } = database.read;
  const rows = await kysely.selectFrom('jobs').select('id').orderBy('id').execute();
  return rows.map(({ id }) => id);
}

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
  test('runs no job again whose place a later one of its key has taken', async () => {
    const world = await jobsWorld(engine);
    const { submit, jobs, caller, clock } = world;
    const jobKey = { key: 'orders', mode: 'replace' } as const;
    await submit({ jobKey });
    const cancelled = await submit({ jobKey });
    await jobs.cancel(org, cancelled.id);
    clock.advance(1);

    const done = await jobs.retryMany(caller, command({ status: 'cancelled' }), hits());

    expect(done).toMatchObject({ done: true, retried: 1 });
    expect(await countsIn(world)).toEqual({ queued: 1, cancelled: 2 });
  });

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

  test('counts no further than 10,000', async () => {
    const world = await jobsWorld(engine);
    const row = await world.row((await world.submit()).id);
    const rows = Array.from({ length: 10_001 }, () => ({ ...row, id: newId() }));
    await world.database.write(async (tx) => {
      for (let i = 0; i < rows.length; i += 500) await tx.insert('jobs', rows.slice(i, i + 500));
    });

    const dry = await world.jobs.cancelMany(org, command({ status: 'queued' }, { isDryRun: true }));

    expect(dry).toMatchObject({ done: false, remaining: 10_000 });
  });

  test('reads a bounded number of rows at a time, however few of them are meant', async () => {
    const world = await jobsWorld(engine);
    for (let i = 0; i < 9; i++) await world.submit(i === 7 ? { skill: other } : {});
    const ids = await idsIn(world);
    const acceptedBy = world.clock.now();
    const filters = { skill_name: 'other' };
    const find = (after: string) =>
      findManyJobs(
        world.database.read,
        { kind: 'open', organizationId: org, filters, acceptedBy },
        after,
        4,
      );

    expect(await find('')).toEqual({ ids: [], next: ids[3] });
    expect(await find(ids[3] ?? '')).toEqual({ ids: [ids[7]], next: ids[7] });
    expect(await find(ids[7] ?? '')).toEqual({ ids: [], next: null });
  });

  test.each([
    ['a batch', { batch_id: 'some' }],
    ['a parent', { parent_job_id: 'some' }],
    ['a user', { user_id: 'some' }],
    ['a moment', { created_before: 1 }],
  ])('finds the jobs of %s by whatever else filters name', async (_, filters) => {
    const world = await jobsWorld(engine);
    const row = await world.row((await world.submit()).id);
    const own = {
      batch_id: 'some',
      parent_job_id: 'some',
      user_id: 'some',
      for_user: 1,
      created_at: 0,
    };
    const jobOf = (more: object) => ({ ...row, id: newId(), ...own, ...more });
    const meant = jobOf({});
    const others = [
      jobOf({ organization_id: 'acme' }),
      jobOf({ skill_name: 'other' }),
      jobOf({ status: 'failed', due_at: null }),
    ];
    await world.database.write((tx) => tx.insert('jobs', [meant, ...others]));
    const asked = {
      organizationId: org,
      acceptedBy: 5,
      filters: { ...filters, skill_name: 'echo' },
    };
    const { read } = world.database;

    const open = await findManyJobs(
      read,
      { ...asked, kind: 'open', acceptedBy: world.clock.now() },
      '',
      9,
    );
    const failed = {
      ...asked,
      acceptedBy: world.clock.now(),
      filters: { ...asked.filters, status: 'failed' as const },
    };
    const retryable = await findManyJobs(read, { ...failed, kind: 'retryable' }, '', 9);

    expect(open.ids).toEqual([meant.id]);
    expect(retryable.ids).toEqual([others[2]?.id]);
  });

  test('runs as many failed jobs again as the limit of the key allows, and the others next time', async () => {
    const world = await jobsWorld(engine);
    const { jobs, attempt, caller, clock } = world;
    for (const job of await submitMany(world, 30)) {
      await attempt(job.id, failed({ retryable: false }));
    }
    clock.advance(1);
    const filters = { agent_id: 'default' };

    const first = await jobs.retryMany(caller, command(filters), hits(23));
    expect(first).toMatchObject({ retried: 23, remaining: 7, done: false });
    const none = await jobs.retryMany(caller, command(filters, { after: first.next }), hits(0));
    expect(none).toMatchObject({ retried: 0, remaining: 7, done: false, next: first.next });
    const rest = await jobs.retryMany(caller, command(filters, { after: none.next }), hits(7));

    expect(rest).toMatchObject({ retried: 7, remaining: 0, done: true });
    expect(await countsIn(world)).toEqual({ failed: 30, queued: 30 });
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

    const dry = await jobs.retryMany(caller, command(filters, { isDryRun: true }), hits(0));
    expect(dry).toMatchObject({ remaining: 30, retried: 0 });
    const both = await Promise.all(
      [1, 2].map(() => jobs.retryMany(caller, command(filters), hits())),
    );
    const again = await jobs.retryMany(caller, command(filters), hits());

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
    const first = jobs.retryMany(caller, command(filters), hits());
    // Its time is over after the first 20.
    clock.advance(5_000);
    const { retried, remaining, next } = await first;
    expect({ retried, remaining }).toEqual({ retried: 20, remaining: 10 });
    const { kysely } = database.read;
    const made = await kysely.selectFrom('jobs').select('id').where('retry_of', 'is not', null);
    for (const { id } of await made.execute()) await attempt(id, failed({ retryable: false }));

    const second = await jobs.retryMany(caller, command(filters, { after: next }), hits());

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

    const answer = await jobs.retryMany(narrow, command({ skill_category: 'test' }), hits());

    expect(answer).toMatchObject({ done: true, retried: 1, refused: { insufficient_scope: 1 } });
  });
});
