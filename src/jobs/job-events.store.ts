/** The event streams of jobs: what runs have said. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { bytesOf, fittingRows } from '../database/page-bytes.ts';
import { statement } from '../database/statement.ts';
import type { JobEventsTable } from '../database/tables.ts';

/** Adds to the event stream of jobs. */
export async function insertJobEvents(
  tx: Transaction,
  events: readonly JobEventsTable[],
): Promise<void> {
  await tx.insert('job_events', events);
}

const insertMissing = statement<JobEventsTable>()((db, p) =>
  db
    .insertInto('job_events')
    .values({
      job_id: p('job_id'),
      epoch: p('epoch'),
      n: p('n'),
      type: p('type'),
      data: p('data'),
      created_at: p('created_at'),
    })
    .onConflict((conflict) => conflict.doNothing()),
);

/** Adds those of the events that are not there yet. */
export function insertMissingJobEvents(
  tx: Transaction,
  events: readonly JobEventsTable[],
): Promise<void> {
  return tx.each(insertMissing, events);
}

const streamed = statement<{ job_id: string }>()((db, p, dialect) => {
  const data = dialect === 'sqlite' ? sql`data` : sql`data::json`;
  const step =
    dialect === 'sqlite' ? sql<number>`${data}->>'step'` : sql<number>`(${data}->>'step')::int`;
  const text = sql`${data}->>'text'`;
  const bytes =
    dialect === 'sqlite'
      ? sql<number>`length(cast(${text} as blob))`
      : sql<number>`octet_length(${text})`;
  return db
    .selectFrom('job_events')
    .select([step.as('step'), sql<number>`sum(${bytes})`.as('bytes')])
    .where('job_id', '=', p('job_id'))
    .where('type', '=', sql.lit('token'))
    .groupBy(step);
});

/** UTF-8 bytes of the text that each call of a model has streamed, by step. */
export async function streamedBytesOf(
  db: Handle,
  jobId: string,
): Promise<ReadonlyMap<number, number>> {
  const rows = await db.all(streamed, { job_id: jobId });
  return new Map(rows.map(({ step, bytes }) => [step, Number(bytes)]));
}

/** Bytes of what is read at a time, beyond those of the first event. */
const readBytesMax = 1024 * 1024;

/**
 * What was said after (`epoch`, `n`), in order: at most `limit` events, fewer where they are long; and
 * whether that is all.
 */
export async function listJobEvents(
  db: Handle,
  jobId: string,
  after: { epoch: number; n: number },
  limit: number,
): Promise<{ events: JobEventsTable[]; isAll: boolean }> {
  const query = db.kysely
    .selectFrom('job_events')
    .where('job_id', '=', jobId)
    .where((eb) =>
      eb.or([
        eb('epoch', '>', after.epoch),
        eb.and([eb('epoch', '=', after.epoch), eb('n', '>', after.n)]),
      ]),
    )
    .orderBy('epoch')
    .orderBy('n');
  const sizes = await query.select(bytesOf('data').as('bytes')).limit(limit).execute();
  const fitting = fittingRows(sizes, readBytesMax);
  if (fitting === 0) return { events: [], isAll: true };
  const events = await query.selectAll().limit(fitting).execute();
  return { events, isAll: sizes.length < limit && fitting === sizes.length };
}
