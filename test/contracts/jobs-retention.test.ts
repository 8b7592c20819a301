/** Retention: what is deleted after RETENTION_DAYS, and what never is. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { joinReader, readEvents } from '../../src/core/events/reader.ts';
import { readerCursor } from '../../src/core/events/reader-queries.ts';
import { deleteExpired } from '../../src/core/jobs/retention.ts';
import { removeApprovals } from '../../src/platform/approvals/approvals.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';

const day = 24 * 60 * 60 * 1000;
const keyed = (key: string) => ({ idempotency: { owner: 'a key', key, fingerprint: 'same' } });

/** Accepts so many jobs at once and runs them to their end. */
async function endedJobs({ submit, attempt }: JobsWorld, n: number): Promise<void> {
  const submitted = await Promise.all(Array.from({ length: n }, () => submit()));
  await Promise.all(submitted.map(({ id }) => attempt(id, completed())));
}

/** Whether a session of PostgreSQL waits for a lock in this database. */
async function someoneWaits({ database }: JobsWorld): Promise<boolean> {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  `.execute(database.read.kysely);
  return (rows[0]?.n ?? 0) > 0;
}

describe.each(await engines())('on $name', (engine) => {
  // Jobs are found by their ids, which tell the real time: the clock begins there.
  const present = () => jobsWorld(engine, { clock: manualClock(new Date().toISOString()) });
  type Readers = Partial<Pick<Parameters<typeof deleteExpired>[0], 'readTo'>>;
  const expire = (world: JobsWorld & Readers, days = 30) =>
    deleteExpired({ readTo: null, ...world, writer: 'first', removeOfJobs: removeApprovals }, days);
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

  test('keeps what a job goes on from, and its conversation, until it has ended', async () => {
    const world = await present();
    const { submit, attempt, clock, database, jobs, caller } = world;
    const other = await submit();
    await attempt(other.id, completed());
    const first = await submit();
    await attempt(first.id, failed({ retryable: false }));
    const { job: second } = await jobs.retry(caller, first.id, true);
    await attempt(second.id, failed({ retryable: false }));
    clock.advance(20 * day);
    const { job: resumed } = await jobs.retry(caller, second.id, true);
    clock.advance(20 * day);

    expect(await expire(world)).toBe(1);
    expect(await idsOf(world, 'jobs')).toEqual([first.id, second.id, resumed.id]);
    expect(await idsOf(world, 'conversations')).toEqual([first.conversation_id]);
    expect(await world.messages(first)).not.toEqual([]);
    await attempt(resumed.id, completed());
    expect(await expire(world)).toBe(2);
    expect(await idsOf(world, 'jobs')).toEqual([resumed.id]);
    clock.advance(40 * day);
    expect(await expire(world)).toBe(1);
    expect(await idsOf(world, 'conversations')).toEqual([]);
    await expectConsistent(database, clock.now() - 30 * day);
  });

  test('keeps a conversation in which a job is under way, though nothing is said in it any more', async () => {
    const world = await present();
    const { submit, attempt, clock, database } = world;
    const first = await submit();
    await attempt(first.id, failed({ retryable: false }));
    clock.advance(40 * day);
    const { job: retried } = await world.jobs.retry(world.caller, first.id, true);
    await database.write((tx) =>
      tx.kysely.updateTable('jobs').set({ resumes: null }).where('id', '=', retried.id).execute(),
    );

    expect(await expire(world)).toBe(1);
    expect(await idsOf(world, 'conversations')).toEqual([first.conversation_id]);
  });

  test('keeps a job that took long as many days after its end as any other', async () => {
    const world = await present();
    const { submit, attempt, clock } = world;
    const job = await submit();
    clock.advance(40 * day);
    await attempt(job.id, completed());

    expect(await expire(world)).toBe(0);
    clock.advance(29 * day);
    expect(await expire(world)).toBe(0);
    clock.advance(2 * day);
    expect(await expire(world)).toBe(1);
  });

  test('leaves the children of a parent, and the parent of a child, whichever goes first', async () => {
    const world = await present();
    const { attempt, clock, jobs, submit } = world;
    const parent = await submit();
    const inner = { jobId: parent.id, step: 1, depth: 0 };
    const early = await submit({ parent: inner });
    await attempt(early.id, completed());
    clock.advance(20 * day);
    const late = await submit({ parent: inner });
    clock.advance(11 * day);

    // The parent has not ended.
    expect(await expire(world)).toBe(1);
    expect(await idsOf(world, 'jobs')).toEqual([parent.id, late.id]);
    await attempt(parent.id, completed());
    clock.advance(31 * day);
    expect(await expire(world)).toBe(1);

    expect(await jobs.get('default', late.id)).toMatchObject({ parent_job_id: parent.id });
    await attempt(late.id, completed());
    expect(await world.row(late.id)).toMatchObject({ status: 'completed' });
    await expectConsistent(world.database, clock.now());
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
    // The creation of the default agent, and of the conversation.
    expect(await sizes()).toEqual({ keys: 1, events: 2 });
    clock.advance(1);
    await expire(world);
    expect(await sizes()).toEqual({ keys: 0, events: 2 });
    clock.advance(29 * day);
    await expire(world);
    // The newest one stays.
    expect(await sizes()).toEqual({ keys: 0, events: 1 });
    await submit();
    clock.advance(31 * day);
    await expire(world);
    expect(await sizes()).toEqual({ keys: 0, events: 1 });
  });

  test('keeps events that a reader has not read, however old they are', async () => {
    const world = await present();
    const { submit, clock, database, events } = world;
    // The reader begins behind the event of the default agent, once that can be read.
    await untilReadable(database);
    await database.write((tx) => joinReader(tx, 'a reader', async () => true));
    const readTo = async () => (await readerCursor(database.read, 'a reader')) ?? null;
    await submit();
    await submit();
    clock.advance(31 * day);

    await expire({ ...world, readTo: await readTo() });
    const unread = (await events()).length;
    await untilReadable(database);
    await database.write((tx) => readEvents(tx, 'a reader', 1, async () => 1));
    await expire({ ...world, readTo: await readTo() });

    expect(unread).toBe(2);
    expect(await events()).toHaveLength(1);
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

  /** How many rows of a job each table has. */
  const rowsOf = async ({ database }: JobsWorld, jobId: string) => {
    const tables = ['jobs', 'messages', 'job_steps'] as const;
    const counts = tables.map(async (table) => {
      const rows = await database.read.kysely
        .selectFrom(table)
        .select(table === 'jobs' ? 'id' : 'job_id as id')
        .execute();
      return [table, rows.filter(({ id }) => id === jobId).length] as const;
    });
    return Object.fromEntries(await Promise.all(counts));
  };

  const step = (jobId: string, n: number) => ({
    job_id: jobId,
    n,
    epoch: 1,
    generation: 'g',
    turn: n,
    kind: 'model' as const,
    name: 'openai/test',
    call_id: null,
    status: 'completed' as const,
    error: null,
    message_id: null,
    memory: null,
    prompt_tokens: 1,
    completion_tokens: 1,
    started_at: 0,
    finished_at: 0,
  });

  test('deletes the steps of a job with it, and no others', async () => {
    const world = await present();
    const job = await world.submit();
    await world.attempt(job.id, completed());
    const kept = await world.submit();
    await world.database.write((tx) =>
      tx.insert('job_steps', [step(job.id, 1), step(job.id, 2), step(kept.id, 1)]),
    );

    world.clock.advance(31 * day);
    expect(await expire(world)).toBe(1);

    expect(await rowsOf(world, job.id)).toEqual({ jobs: 0, messages: 0, job_steps: 0 });
    expect(await rowsOf(world, kept.id)).toEqual({ jobs: 1, messages: 1, job_steps: 1 });
  });

  test('deletes the messages of old jobs in a continued conversation', async () => {
    const world = await present();
    const { submit, attempt, clock, conversations } = world;
    const first = await submit();
    await attempt(first.id, completed());
    const active = await submit({ conversationId: first.conversation_id });

    clock.advance(31 * day);
    expect(await expire(world)).toBe(1);

    expect(await rowsOf(world, first.id)).toMatchObject({ jobs: 0, messages: 0 });
    expect(await world.messages(first)).toMatchObject([{ job_id: active.id, role: 'user' }]);
    const conversation = await conversations.get('default', first.conversation_id);
    expect(conversation.status).toBe('active');
    const page = { limit: 50, offset: 0 };
    expect((await conversations.list('default', { status: 'active' }, page)).total).toBe(1);

    await attempt(active.id, completed());
    clock.advance(31 * day);
    expect(await expire(world)).toBe(1);
    expect(await idsOf(world, 'conversations')).toEqual([]);
    expect((await conversations.list('default', {}, page)).total).toBe(0);
    expect(await idsOf(world, 'jobs')).toEqual([]);
  });

  test('deletes a conversation once, whose jobs are deleted together', async () => {
    const world = await present();
    const { submit, attempt, clock, conversations } = world;
    const first = await submit();
    await attempt(first.id, completed());
    for (let i = 0; i < 3; i += 1) {
      const next = await submit({ conversationId: first.conversation_id });
      await attempt(next.id, failed({ retryable: false }));
    }

    clock.advance(31 * day);
    expect(await expire(world)).toBe(4);

    expect(await idsOf(world, 'conversations')).toEqual([]);
    const page = { limit: 50, offset: 0 };
    for (const status of ['active', 'completed', 'failed'] as const) {
      expect((await conversations.list('default', { status }, page)).total).toBe(0);
    }
  });

  test('never deletes a conversation that a job is about to continue', async () => {
    const world = await present();
    const { submit, attempt, clock, database, conversations, accept, request } = world;
    const olds = await Promise.all(Array.from({ length: 20 }, () => submit()));
    await Promise.all(olds.map(({ id }) => attempt(id, completed())));
    clock.advance(31 * day);

    const [, ...answers] = await Promise.all([
      expire(world),
      ...olds.map(async ({ conversation_id: conversationId }) => {
        try {
          return await accept(request({ conversationId }));
        } catch (error) {
          expect(error).toMatchObject({ code: 'not_found' });
          return null;
        }
      }),
    ]);

    const jobs = await database.read.kysely.selectFrom('jobs').selectAll().execute();
    expect(jobs).toHaveLength(answers.filter((answer) => answer !== null).length);
    for (const { conversation_id } of jobs) {
      expect((await conversations.get('default', conversation_id)).status).toBe('active');
    }
    const page = { limit: 50, offset: 0 };
    expect((await conversations.list('default', {}, page)).total).toBe(jobs.length);
    expect(await idsOf(world, 'conversations')).toHaveLength(jobs.length);
  });

  test('leaves a conversation that was continued after the deletion began', async () => {
    const world = await present();
    const { submit, attempt, clock, database, conversations, accept, request } = world;
    const { id, conversation_id: conversationId } = await submit();
    await attempt(id, completed());
    clock.advance(31 * day);
    // SQLite has one writer at a time, so there the one simply comes before the other.
    const isHeld = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const going =
      engine.name === 'SQLite'
        ? accept(request({ conversationId }))
        : database.write(async (tx) => {
            await world.acceptor.acceptWithin(tx, [request({ conversationId })]);
            isHeld.resolve();
            await gate.promise;
          });
    if (engine.name === 'PostgreSQL') await isHeld.promise;

    const expired = expire(world);
    if (engine.name === 'PostgreSQL') {
      await waitFor(() => someoneWaits(world), { describe: 'the deletion waits' });
    }
    gate.resolve();
    await Promise.all([going, expired]);

    expect((await conversations.get('default', conversationId)).status).toBe('active');
    expect(await world.messages({ conversation_id: conversationId })).toHaveLength(1);
  });

  test('does not affect concurrent work', async () => {
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
