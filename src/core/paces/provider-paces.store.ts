/** The queries on the paces of providers. */
import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { isIn } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { ProviderPacesTable } from '../../adapters/database/tables.ts';

export const findPace = firstRow<{ name: string }>()((db, p) =>
  db.selectFrom('provider_paces').select('state').where('name', '=', p('name')),
);

const add = statement<ProviderPacesTable>()((db, p) =>
  db
    .insertInto('provider_paces')
    .values({ name: p('name'), state: p('state'), changed_at: p('changed_at') })
    .onConflict((conflict) => conflict.column('name').doNothing()),
);

const lockAll = allRows<{ names: readonly string[] }, Transaction>()((db, p, dialect) => {
  const query = db
    .selectFrom('provider_paces')
    .select(['name', 'state'])
    .where(isIn(dialect, sql.ref('name'), listOf(p, 'names')))
    .orderBy('name');
  return dialect === 'postgres' ? query.forUpdate() : query;
});

/** The paces of these names, in order, locked until the transaction ends; of one without a row the given state. */
export async function lockPaces(
  tx: Transaction,
  names: readonly string[],
  state: string,
  now: number,
) {
  const inOrder = names.toSorted();
  await tx.each(
    add,
    inOrder.map((name) => ({ name, state, changed_at: now })),
  );
  return lockAll(tx, { names: inOrder });
}

const set = statement<ProviderPacesTable>()((db, p) =>
  db
    .updateTable('provider_paces')
    .set({ state: p('state'), changed_at: p('changed_at') })
    .where('name', '=', p('name')),
);

/** Records paces that the transaction has locked. */
export function setPaces(tx: Transaction, rows: readonly ProviderPacesTable[]): Promise<void> {
  return tx.each(set, rows);
}

const forget = statement<{ before: number }>()((db, p) =>
  db.deleteFrom('provider_paces').where('changed_at', '<', p('before')),
);

/** Forgets the paces that did not change since a moment. */
export function forgetPaces(tx: Transaction, before: number): Promise<void> {
  return tx.each(forget, [{ before }]);
}
