/** What the tables of Idempotency-Keys share: how keys are taken and how old ones end, both in one order. */
import { sql } from 'kysely';
import type { Transaction } from './database.ts';
import { type Lists, rowsIn, rowsParams, type Types } from './rows-in.ts';
import { allRows, statement } from './statement.ts';

export interface KeyName {
  readonly owner: string;
  readonly idempotency_key: string;
}

/** The order in which many keys are changed, so that two transactions never wait for each other. */
function inKeyOrder(a: KeyName, b: KeyName): number {
  if (a.owner !== b.owner) return a.owner < b.owner ? -1 : 1;
  return a.idempotency_key < b.idempotency_key ? -1 : 1;
}

type KeyTable = 'idempotency_keys' | 'event_idempotency_keys';

/**
 * The function that takes those of the keys, all different, that no earlier request holds; it returns which
 * these are. A key that was recorded before `forgottenBefore` is taken from its request.
 */
export function createKeyTaking<Row extends KeyName>(table: KeyTable, types: Types<Row>) {
  const columns = Object.keys(types).map((column) => sql.ref(column));
  const values = columns.map((column) => sql`${column} = excluded.${column}`);
  const take = statement<(Row | Lists<Row>) & { forgotten_before: number }>()((db, p, dialect) => {
    const query = sql<KeyName>`insert into ${sql.table(table)} (${sql.join(columns)})
      select * from ${rowsIn(dialect, p, types)} where true
      on conflict (owner, idempotency_key) do update set ${sql.join(values)}
        where ${sql.table(table)}.created_at < ${p('forgotten_before')}
      returning owner, idempotency_key`;
    return { compile: () => query.compile(db) };
  });
  return async (tx: Transaction, keys: readonly Row[], forgottenBefore: number) => {
    const taken = rowsParams(tx.dialect, keys.toSorted(inKeyOrder), types).map((given) =>
      tx.all(take, { ...given, forgotten_before: forgottenBefore }),
    );
    return (await Promise.all(taken)).flat();
  };
}

/** The function that deletes at most `limit` keys that are older than `before`; how many. */
export function createKeyDeletion(table: KeyTable) {
  const old = allRows<{ before: number; limit: number }, Transaction>()((db, p) => {
    const query = sql<KeyName>`select owner, idempotency_key from ${sql.table(table)}
      where created_at < ${p('before')} order by created_at limit ${p('limit')}`;
    return { compile: () => query.compile(db) };
  });
  const remove = statement<KeyName & { before: number }>()((db, p) => {
    // Another request may have taken the key meanwhile.
    const query = sql`delete from ${sql.table(table)} where owner = ${p('owner')}
      and idempotency_key = ${p('idempotency_key')} and created_at < ${p('before')}`;
    return { compile: () => query.compile(db) };
  });
  return async (tx: Transaction, before: number, limit: number): Promise<number> => {
    const keys = await old(tx, { before, limit });
    await tx.each(
      remove,
      keys.toSorted(inKeyOrder).map((key) => ({ ...key, before })),
    );
    return keys.length;
  };
}
