/** The queries on the limits and pauses that operators set. */
import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { allRows, firstRow, statement } from '../../adapters/database/statement.ts';
import type { GateSettingsTable } from '../../adapters/database/tables.ts';

export const listSettings = allRows<Record<never, never>>()((db) =>
  db.selectFrom('gate_settings').select(['name', 'places']),
);

/**
 * What differs after every change: a sum of moments, because the clocks of processes differ. Of each moment so much that the
 * sum of a million is exact in SQLite, too.
 */
export const stateOfSettings = firstRow<Record<never, never>>()((db) =>
  db
    .selectFrom('gate_settings')
    .select((eb) => [
      eb.fn.countAll<number>().as('n'),
      eb.fn.max<number | null>('updated_at').as('last'),
      eb.fn.sum<number | null>(sql`updated_at % 1000000000`).as('sum'),
    ]),
);

const put = statement<GateSettingsTable>()((db, p) =>
  db
    .insertInto('gate_settings')
    .values({ name: p('name'), places: p('places'), updated_at: p('updated_at') })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet({
        places: p('places'),
        // Two changes in one millisecond differ, too.
        updated_at: sql<number>`case when gate_settings.updated_at < excluded.updated_at
          then excluded.updated_at else gate_settings.updated_at + 1 end`,
      }),
    ),
);

export function putSetting(tx: Transaction, row: GateSettingsTable): Promise<void> {
  return tx.each(put, [row]);
}

const forget = statement<{ name: string }>()((db, p) =>
  db.deleteFrom('gate_settings').where('name', '=', p('name')),
);

export function forgetSetting(tx: Transaction, name: string): Promise<void> {
  return tx.each(forget, [{ name }]);
}
