/** The queries on the calls of triggers. */
import { type Selectable, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { TriggerCallsTable } from '../../adapters/database/tables.ts';

export type TriggerCallRow = Selectable<TriggerCallsTable>;

const lockTriggers = allRows<{ ids: readonly string[] }>()((db, p, dialect) => {
  const query = db
    .selectFrom('agent_triggers')
    .select('id')
    .where(idIn(dialect, listOf(p, 'ids')))
    .orderBy('id');
  return locked(dialect, query);
});

const listRecorded = allRows<{ ids: readonly string[]; triggers: readonly string[] }>()(
  (db, p, dialect) =>
    db
      .selectFrom('trigger_calls')
      .select('id')
      .where(isIn(dialect, sql`trigger_id`, listOf(p, 'triggers')))
      .where(idIn(dialect, listOf(p, 'ids'))),
);

const allButNewest = statement<{ trigger_id: string; kept: number }>()((db, p) =>
  db
    .deleteFrom('trigger_calls')
    .where('trigger_id', '=', p('trigger_id'))
    .where('id', '<=', (eb) =>
      eb
        .selectFrom('trigger_calls')
        .select('id')
        .where('trigger_id', '=', p('trigger_id'))
        .orderBy('id', 'desc')
        .limit(sql.lit(1))
        .offset(p('kept')),
    ),
);

/**
 * Inserts calls and deletes all but the `kept` newest of each trigger. It locks the triggers in the order
 * of their ids, so a deleted trigger gets no more calls, and two processes cannot deadlock.
 */
export async function addCalls(
  tx: Transaction,
  calls: readonly TriggerCallRow[],
  kept: number,
): Promise<void> {
  const ids = [...new Set(calls.map(({ trigger_id }) => trigger_id))];
  const triggers = await lockTriggers(tx, { ids });
  const existing = new Set(triggers.map(({ id }) => id));
  const recorded = await listRecorded(tx, { ids: calls.map(({ id }) => id), triggers: ids });
  // An earlier write of them may be committed without a confirmation.
  const known = new Set(recorded.map(({ id }) => id));
  const added = calls.filter(({ trigger_id, id }) => existing.has(trigger_id) && !known.has(id));
  if (added.length === 0) return;
  await tx.insert('trigger_calls', added);
  await tx.each(
    allButNewest,
    triggers.map(({ id }) => ({ trigger_id: id, kept })),
  );
}

/** A page of the calls of a trigger since a time, newest first, and their total. */
export async function listCalls(
  db: Handle,
  triggerId: string,
  since: number,
  page: PageAsked,
): Promise<{ data: TriggerCallRow[]; total: number }> {
  const query = db.kysely
    .selectFrom('trigger_calls')
    .where('trigger_id', '=', triggerId)
    .where('received_at', '>=', since);
  const data = await query
    .selectAll()
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { data, total: await countOf(query) };
}

/** The trigger whose call started a job; undefined when that call has been deleted. */
export const findTriggerOf = firstRow<{ job_id: string }>()((db, p) =>
  db.selectFrom('trigger_calls').select('trigger_id').where('job_id', '=', p('job_id')),
);

/** Deletes the calls of a trigger; call it after deleting the trigger. */
export async function deleteCallsOf(tx: Transaction, triggerId: string): Promise<void> {
  await tx.kysely.deleteFrom('trigger_calls').where('trigger_id', '=', triggerId).execute();
}

const findOldest = allRows<{ before: number; limit: number }>()((db, p) =>
  db
    .selectFrom('trigger_calls')
    .select(['trigger_id', 'id'])
    .where('received_at', '<', p('before'))
    .orderBy('received_at')
    .limit(p('limit')),
);
const remove = statement<{ trigger_id: string; id: string }>()((db, p) =>
  db
    .deleteFrom('trigger_calls')
    .where('trigger_id', '=', p('trigger_id'))
    .where('id', '=', p('id')),
);

/** Deletes up to `limit` calls from before a time; how many it found. */
export async function deleteCallsBefore(
  tx: Transaction,
  before: number,
  limit: number,
): Promise<number> {
  const calls = await findOldest(tx, { before, limit });
  // In a fixed order, so that two processes that delete the same rows cannot deadlock.
  const ordered = calls.toSorted((a, b) =>
    `${a.trigger_id}${a.id}` < `${b.trigger_id}${b.id}` ? -1 : 1,
  );
  await tx.each(remove, ordered);
  return calls.length;
}
