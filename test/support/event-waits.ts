/** Jobs that wait for events, as the runs that ask for it leave them, without a run. */
import { sql } from 'kysely';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import type { JournalJob } from '../../src/core/journal/step-rows.ts';
import { eventWaits } from '../../src/platform/run-events/event-waits.ts';
import { deleteOldEvents } from '../../src/platform/run-events/retention.ts';
import { RunEvents } from '../../src/platform/run-events/run-events.ts';
import { removeUntakeable } from '../../src/platform/run-events/untakeable.ts';
import { contextOf } from './context.ts';
import type { Engine } from './databases.ts';
import { jobsWorld, waitEndsOf } from './jobs-world.ts';

interface Wanted {
  readonly event?: string;
  readonly key?: string | null;
  readonly timeoutMs?: number;
}

const hour = 3_600_000;

export type EventsWorld = Awaited<ReturnType<typeof eventsWorld>>;

export async function eventsWorld(engine: Engine, options: { database?: Database } = {}) {
  const world = await jobsWorld(engine, options);
  const { database, clock, caller } = world;
  const woken: string[] = [];
  const queue = {
    sendHints: (_: string, hints: readonly { id: string }[]) =>
      void woken.push(...hints.map(({ id }) => id)),
  };
  const waitEnds = waitEndsOf(queue);
  const eventsOn = (on: Database) => new RunEvents(contextOf({ database: on, clock }), waitEnds);
  const runEvents = eventsOn(database);

  /** Begins to wait as step `n`, in the caller's transaction; the result, or null where it waits. */
  async function wait(
    tx: Transaction,
    { id }: { id: string },
    n: number,
    { event = 'order.paid', key = null, timeoutMs = hour }: Wanted = {},
  ) {
    const query = tx.kysely.selectFrom('jobs').selectAll().where('id', '=', id);
    const locked = tx.dialect === 'postgres' ? query.forUpdate() : query;
    const job: JournalJob = await locked.executeTakeFirstOrThrow();
    const now = clock.now();
    const read = eventWaits.read({ event, key, timeoutMs }, job, now);
    const result = await eventWaits.begin(tx, { job, n, name: 'paid', ...read }, now);
    const step = { kind: 'event', generation: `k${n}`, turn: 1, name: 'paid', epoch: 1 } as const;
    const ended =
      result === null
        ? ({ status: 'waiting' } as const)
        : ({ status: 'completed', result: JSON.stringify(result) } as const);
    await tx.insert('job_steps', [
      { job_id: id, n, ...step, ...ended, due_at: read.dueAt, started_at: now },
    ]);
    return result;
  }

  return {
    ...world,
    waitEnds,
    eventsOn,
    runEvents,
    /** Jobs that were hinted to go on. */
    woken,
    waitWithin: wait,
    wait: (job: { id: string }, n: number, wanted?: Wanted) =>
      database.write((tx) => wait(tx, job, n, wanted)),
    /** The deadline of a wait passes; whether it ended the wait. */
    async expire(job: { id: string }, n: number): Promise<boolean> {
      const row = await world.row(job.id);
      return database.write(async (tx) => {
        const result = { value: null };
        const [isEnd] = await waitEnds.endWaits(tx, [{ job_id: job.id, n, result }], clock.now());
        if (isEnd) await eventWaits.expire(tx, { job: row, n, name: 'paid' }, clock.now());
        return isEnd === true;
      });
    },
    /** Sends an event; what its sender is told. */
    send(
      fields: {
        event?: string;
        key?: string | null;
        jobId?: string | null;
        data?: unknown;
        idempotencyKey?: string;
        organizationId?: string;
      } = {},
      on = runEvents,
    ) {
      const { event = 'order.paid', key = null, jobId = null, data = null } = fields;
      const { organizationId = 'default', idempotencyKey } = fields;
      const sender = { organizationId, owner: caller.keyId, idempotencyKey };
      return on.send(sender, { event, key, jobId, data });
    },
    /** What the background tasks delete. */
    async deleteOld() {
      await removeUntakeable(database);
      await deleteOldEvents(database, clock);
    },
    /** What is counted of the stored events, and what there is. */
    async totals() {
      const { rows } = await sql<Record<'events' | 'bytes' | 'rows' | 'length', number>>`select
        (select coalesce(sum(events), 0) from event_totals) as events,
        (select coalesce(sum(bytes), 0) from event_totals) as bytes,
        (select count(*) from received_events) as rows,
        (select coalesce(sum(octet_length(data)), 0) from received_events) as length`.execute(
        database.read.kysely,
      );
      const { events, bytes, rows: stored, length } = rows[0] ?? {};
      return { counted: [Number(events), Number(bytes)], stored: [Number(stored), Number(length)] };
    },
    /** The ids of the events that are stored, oldest first. */
    async stored() {
      const rows = await database.read.kysely.selectFrom('received_events').select('id').execute();
      return rows.map(({ id }) => id).toSorted();
    },
    waits: () => database.read.kysely.selectFrom('event_waits').selectAll().execute(),
    /** What the steps of a job resulted in, in their order; undefined for one that waits. */
    async results({ id }: { id: string }) {
      const rows = await database.read.kysely
        .selectFrom('job_steps')
        .select(['result', 'status'])
        .where('job_id', '=', id)
        .orderBy('n')
        .execute();
      return rows.map(({ result, status }) =>
        status === 'waiting' ? undefined : (JSON.parse(result ?? 'null')?.value ?? null),
      );
    },
  };
}
