/** The event streams of jobs: the reports of their runs. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { bytesOf, fittingRows } from '../../adapters/database/page-bytes.ts';
import { type Lists, rowsIn, rowsParams, type Types } from '../../adapters/database/rows-in.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { JobEventsTable } from '../../adapters/database/tables.ts';

const eventTypes: Types<JobEventsTable> = {
  job_id: 'text',
  epoch: 'integer',
  n: 'integer',
  type: 'text',
  data: 'text',
  created_at: 'bigint',
};
const columns = Object.keys(eventTypes) as (keyof JobEventsTable)[];

const insert = statement<JobEventsTable | Lists<JobEventsTable>>()((db, p, dialect) =>
  db
    .insertInto('job_events')
    .columns(columns)
    .expression(
      // SQLite needs a condition before `on conflict`.
      db
        .selectFrom(rowsIn<JobEventsTable>(dialect, p, eventTypes))
        .select(columns)
        .where(sql.lit(true)),
    )
    .onConflict((conflict) => conflict.columns(['job_id', 'epoch', 'n']).doNothing()),
);

/** Adds to the event stream of jobs; an event that an unconfirmed commit has added already is left as it is. */
export async function insertJobEvents(
  tx: Transaction,
  events: readonly JobEventsTable[],
): Promise<void> {
  if (events.length > 0) await tx.each(insert, rowsParams(tx.dialect, events, eventTypes));
}

/** Bytes of what is read at a time, beyond those of the first event. */
const readBytesMax = 1024 * 1024;

/**
 * The reports after (`epoch`, `n`), in order: at most `limit` events, fewer where they are long; and
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
