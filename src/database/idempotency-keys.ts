/** What the tables of Idempotency-Keys share: the order in which keys are changed, and how old ones end. */
import { sql } from 'kysely';
import type { Transaction } from './database.ts';
import { allRows, statement } from './statement.ts';

export interface KeyName {
  readonly owner: string;
  readonly idempotency_key: string;
}

/** The order in which many keys are changed, so that two transactions never wait for each other. */
export function inKeyOrder(a: KeyName, b: KeyName): number {
  if (a.owner !== b.owner) return a.owner < b.owner ? -1 : 1;
  return a.idempotency_key < b.idempotency_key ? -1 : 1;
}

/** The function that deletes at most `limit` keys that are older than `before`; how many. */
export function createKeyDeletion(table: 'idempotency_keys' | 'event_idempotency_keys') {
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
