/** The queries on the starts that count at rates. A transaction that changes those of a gate has locked the gate. */
import { sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, listOf, statement } from '../../../adapters/database/statement.ts';
import type { RateStartsTable } from '../../../adapters/database/tables.ts';

/** Of each of the gates how many starts count, and until when the first and the last of them do. */
export const countStarts = allRows<{ gates: readonly string[]; now: number }>()((db, p, dialect) =>
  db
    .selectFrom('rate_starts')
    .select((eb) => [
      'gate',
      eb.fn.sum<number>('starts').as('starts'),
      eb.fn.min<number>('until').as('first'),
      eb.fn.max<number>('until').as('last'),
    ])
    .where(isIn(dialect, sql.ref('gate'), listOf(p, 'gates')))
    .where('until', '>', p('now'))
    .groupBy('gate'),
);

const add = statement<RateStartsTable>()((db, p) =>
  db
    .insertInto('rate_starts')
    .values({ gate: p('gate'), until: p('until'), starts: p('starts') })
    .onConflict((conflict) =>
      conflict
        .columns(['gate', 'until'])
        .doUpdateSet({ starts: sql<number>`rate_starts.starts + excluded.starts` }),
    ),
);

/** Adds starts. */
export function addStarts(tx: Transaction, rows: readonly RateStartsTable[]): Promise<void> {
  return tx.each(add, rows);
}

const take = statement<{ gate: string; until: number }>()((db, p) =>
  db
    .updateTable('rate_starts')
    .set((eb) => ({ starts: eb('starts', '-', 1) }))
    .where('gate', '=', p('gate'))
    .where('until', '=', p('until')),
);

/** Takes starts away that are recorded with other moments instead. */
export function takeStarts(
  tx: Transaction,
  starts: readonly { readonly gate: string; readonly until: number }[],
): Promise<void> {
  return tx.each(take, starts);
}

const forgetPast = statement<{ gate: string; now: number }>()((db, p) =>
  db.deleteFrom('rate_starts').where('gate', '=', p('gate')).where('until', '<=', p('now')),
);

/** Forgets the starts of gates that count no longer. */
export function forgetPastStarts(
  tx: Transaction,
  gates: readonly string[],
  now: number,
): Promise<void> {
  return tx.each(
    forgetPast,
    gates.map((gate) => ({ gate, now })),
  );
}

const forgetLate = statement<{ gate: string; until: number }>()((db, p) =>
  db.deleteFrom('rate_starts').where('gate', '=', p('gate')).where('until', '>=', p('until')),
);

/** Lets all starts of a gate that count longer than until a moment count until then. */
export async function shortenStarts(tx: Transaction, gate: string, until: number): Promise<void> {
  const [late] = await countStarts(tx, { gates: [gate], now: until - 1 });
  await tx.each(forgetLate, [{ gate, until }]);
  await addStarts(tx, [{ gate, until, starts: Number(late?.starts ?? 0) }]);
}

/** The gates of which starts count no longer, so many at most. */
export const findPastGates = allRows<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('rate_starts')
    .select('gate')
    .where('until', '<=', p('now'))
    .orderBy('until')
    .limit(p('limit')),
);

const forgetReservations = statement<{ gates: readonly string[]; job_id: string; n: number }>()(
  (db, p, dialect) =>
    db
      .deleteFrom('places')
      .where(isIn(dialect, sql.ref('gate'), listOf(p, 'gates')))
      .where('job_id', '=', p('job_id'))
      .where('n', '=', p('n')),
);

/** Forgets the places that work has at gates because it has not begun. */
export function forgetPlacesAt(
  tx: Transaction,
  gates: readonly string[],
  work: { readonly job_id: string; readonly n: number },
): Promise<void> {
  return tx.each(forgetReservations, [{ gates, ...work }]);
}
