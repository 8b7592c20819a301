/** The queries on pauses that end by themselves. */
import { sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { greatestOf } from '../../../adapters/database/extremes.ts';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, listOf, statement } from '../../../adapters/database/statement.ts';

/** Those of the pauses that end between two moments. */
export const listPauses = allRows<{ names: readonly string[]; after: number; to: number }>()(
  (db, p, dialect) =>
    db
      .selectFrom('timed_pauses')
      .select(['name', 'until'])
      .where(isIn(dialect, sql.ref('name'), listOf(p, 'names')))
      .where('until', '>', p('after'))
      .where('until', '<=', p('to')),
);

const pause = statement<{ name: string; until: number; to: number }>()((db, p, dialect) =>
  db
    .insertInto('timed_pauses')
    .values({ name: p('name'), until: p('until') })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet({
        // One that ends later than any that begins now is of a clock that was set back since.
        until: sql<number>`case when timed_pauses.until > ${p('to')} then excluded.until
          else ${greatestOf(dialect)}(timed_pauses.until, excluded.until) end`,
      }),
    ),
);

/** Begins pauses, or lets those under way last longer. In the order of their names, so that two transactions never deadlock. */
export function insertPauses(
  tx: Transaction,
  pauses: readonly { readonly name: string; readonly until: number }[],
  to: number,
): Promise<void> {
  return tx.each(
    pause,
    pauses.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((one) => ({ ...one, to })),
  );
}
