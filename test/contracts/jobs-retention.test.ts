/** Retention: what is deleted after RETENTION_DAYS, and what never is. */
import { describe, expect, test } from 'vitest';
import { deleteExpired } from '../../src/jobs/retention.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';

const day = 24 * 60 * 60 * 1000;
const keyed = (key: string) => ({ idempotency: { owner: 'a key', key, fingerprint: 'same' } });

/** Accepts so many jobs at once and runs them to their end. */
async function endedJobs({ submit, attempt }: JobsWorld, n: number): Promise<void> {
  const submitted = await Promise.all(Array.from({ length: n }, () => submit()));
  await Promise.all(submitted.map(({ id }) => attempt(id, completed())));
}

describe.each(await engines())('on $name', (engine) => {
  // Jobs are found by their ids, which tell the real time: the clock begins there.
  const present = () => jobsWorld(engine, { clock: manualClock(new Date().toISOString()) });
  const expire = (world: JobsWorld, days = 30) =>
    deleteExpired({ ...world, writer: 'first' }, days);
  const idsOf = async ({ database }: JobsWorld, table: 'jobs' | 'conversations') => {
    const rows = await database.read.kysely.selectFrom(table).select('id').orderBy('id').execute();
    return rows.map(({ id }) => id);
  };

  test('deletes an ended job with its conversation, its messages and its events', async () => {
    const world = await present();
    const { submit, attempt, clock, database } = world;
    const job = await submit(keyed('k'));
    await attempt(job.id, completed(), (run) => {
      run.report({ type: 'log', message: 'x', at: 0 });
      run.report({ type: 'message', role: 'tool', content: 'y' });
    });

    clock.advance(30 * day - 60_000);
    expect(await expire(world)).toBe(0);
    clock.advance(2 * 60_000);
    expect(await expire(world)).toBe(1);

    const tables = ['jobs', 'conversations', 'messages', 'job_events', 'idempotency_keys'] as const;
    for (const table of tables) {
      const rows = await database.read.kysely.selectFrom(table).selectAll().execute();
      expect(rows, table).toEqual([]);
    }
    await expect(world.jobs.get('default', job.id)).rejects.toMatchObject({ code: 'not_found' });
    await expectConsistent(database, clock.now() - 30 * day);
  });

  test('never touches a job that has not ended, however old it is', async () => {
    const world = await present();
    const { submit, attempt, begin, clock, jobs } = world;
    const queued = await submit();
    const active = await submit();
    const retrying = await submit();
    await begin(active.id);
    await attempt(retrying.id, failed());
    const ended = [await submit(), await submit(), await submit()];
    await attempt(ended[0]!.id, completed());
    await attempt(ended[1]!.id, failed({ retryable: false }));
    await jobs.cancel('default', ended[2]!.id);

    clock.advance(1_000 * day);
    expect(await expire(world)).toBe(3);

    const kept = [queued, active, retrying];
    expect(await idsOf(world, 'jobs')).toEqual(kept.map(({ id }) => id).toSorted());
    expect(await idsOf(world, 'conversations')).toEqual(
      kept.map(({ conversation_id }) => conversation_id).toSorted(),
    );
    for (const { id } of kept) expect((await jobs.get('default', id)).job_id).toBe(id);
  });

  test('keeps the counts right, of every organization', async () => {
    const world = await present();
    const { submit, attempt, clock, database, callerOf, jobs, conversations } = world;
    const stranger = await callerOf('acme');
    const theirs = { organizationId: 'acme', apiKeyId: stranger.keyId };
    for (let i = 0; i < 12; i++) {
      const job = await submit(i % 2 === 0 ? theirs : {});
      if (i % 3 > 0)
        await attempt(job.id, i % 3 === 1 ? completed() : failed({ retryable: false }));
    }

    clock.advance(31 * day);
    expect(await expire(world)).toBe(8);

    for (const organization of ['default', 'acme']) {
      const page = { limit: 50, offset: 0 };
      const listed = await jobs.list(organization, {}, page);
      expect(listed).toMatchObject({
        total: 2,
        jobs: [{ status: 'queued' }, { status: 'queued' }],
      });
      expect((await jobs.list(organization, { status: 'completed' }, page)).total).toBe(0);
      expect((await conversations.list(organization, {}, page)).total).toBe(2);
    }
    await expectConsistent(database, clock.now() - 30 * day);
  });

  test('deletes more than it takes at a time', async () => {
    const world = await present();
    const { clock, database } = world;
    await endedJobs(world, 250);

    clock.advance(31 * day);

    expect(await expire(world)).toBe(250);
    expect(await idsOf(world, 'jobs')).toEqual([]);
    await expectConsistent(database, clock.now() - 30 * day);
  });

  test('by several processes at once counts each job once', async () => {
    const world = await present();
    const { submit, jobs, clock, database } = world;
    await endedJobs(world, 250);
    await submit();
    clock.advance(31 * day);

    const deleted = await Promise.all([1, 2, 3, 4].map(() => expire(world)));

    expect(deleted.reduce((sum, n) => sum + n)).toBe(250);
    const page = { limit: 50, offset: 0 };
    expect((await jobs.list('default', {}, page)).total).toBe(1);
    await expectConsistent(database, clock.now() - 30 * day);
  });

  test('forgets idempotency keys after a day and events of the outbox with the jobs', async () => {
    const world = await present();
    const { submit, clock, database } = world;
    await submit(keyed('k'));
    const sizes = async () => {
      const keys = await database.read.kysely.selectFrom('idempotency_keys').selectAll().execute();
      const events = await database.read.kysely.selectFrom('events').selectAll().execute();
      return { keys: keys.length, events: events.length };
    };

    clock.advance(day);
    await expire(world);
    expect(await sizes()).toEqual({ keys: 1, events: 1 });
    clock.advance(1);
    await expire(world);
    expect(await sizes()).toEqual({ keys: 0, events: 1 });
    clock.advance(29 * day);
    await expire(world);
    // The newest one stays.
    expect(await sizes()).toEqual({ keys: 0, events: 1 });
    await submit();
    clock.advance(31 * day);
    await expire(world);
    expect(await sizes()).toEqual({ keys: 0, events: 1 });
  });

  test('never gives the number of a deleted event to a new one', async () => {
    const world = await present();
    const { submit, clock, events } = world;
    await submit();
    await submit();
    const numbers = (await events()).map(({ seq }) => seq);
    clock.advance(31 * day);
    await expire(world);

    const fresh = await submit();

    const [event] = await events(fresh);
    expect(event?.seq).toBeGreaterThan(Math.max(...numbers));
  });

  test('while work goes on harms none of it', async () => {
    const world = await present();
    const { submit, attempt, clock, database } = world;
    await endedJobs(world, 100);
    clock.advance(31 * day);

    // Ids tell the real time, so what is accepted now is as old as the rest; it has not ended.
    const [deleted, ...fresh] = await Promise.all([
      expire(world),
      ...Array.from({ length: 30 }, async () => {
        const job = await submit();
        await attempt(job.id, failed());
        return job;
      }),
    ]);

    expect(deleted).toBe(100);
    expect(await idsOf(world, 'jobs')).toEqual(fresh.map(({ id }) => id).toSorted());
    await expectConsistent(database, clock.now() - 30 * day);
  });
});
