/** Idempotency keys: one row a key, unique by index, written with the job that it names. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { createKeyDeletion, inKeyOrder, type KeyName } from '../database/idempotency-keys.ts';
import { type Lists, rowsIn, rowsParams, type Types } from '../database/rows-in.ts';
import { statement } from '../database/statement.ts';
import type { IdempotencyKeysTable } from '../database/tables.ts';

/** A key to be taken for a job. */
export type TakenKey = IdempotencyKeysTable;

const keyTypes: Types<TakenKey> = {
  owner: 'text',
  idempotency_key: 'text',
  fingerprint: 'text',
  job_id: 'text',
  created_at: 'bigint',
};

/** A key that an earlier request holds is taken only if it was recorded before `forgotten_before`. */
const take = statement<(TakenKey | Lists<TakenKey>) & { forgotten_before: number }>()(
  (db, p, dialect) =>
    db
      .insertInto('idempotency_keys')
      .columns(Object.keys(keyTypes) as (keyof TakenKey)[])
      .expression(
        db
          .selectFrom(rowsIn<TakenKey>(dialect, p, keyTypes))
          .selectAll()
          .where(sql.lit(true)),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['owner', 'idempotency_key'])
          .doUpdateSet((eb) => ({
            fingerprint: eb.ref('excluded.fingerprint'),
            job_id: eb.ref('excluded.job_id'),
            created_at: eb.ref('excluded.created_at'),
          }))
          .where('idempotency_keys.created_at', '<', p('forgotten_before')),
      )
      .returning(['owner', 'idempotency_key']),
);

/**
 * Takes those of the keys, all different, that no earlier request holds; which these are. In one
 * order, so that two transactions never wait for each other.
 */
export async function takeIdempotencyKeys(
  tx: Transaction,
  keys: readonly TakenKey[],
  forgottenBefore: number,
): Promise<KeyName[]> {
  const ordered = keys.toSorted(inKeyOrder);
  const taken = rowsParams(tx.dialect, ordered, keyTypes).map((given) =>
    tx.all(take, { ...given, forgotten_before: forgottenBefore }),
  );
  return (await Promise.all(taken)).flat();
}

const pass = statement<TakenKey>()((db, p) =>
  db
    .updateTable('idempotency_keys')
    .set({ fingerprint: p('fingerprint'), job_id: p('job_id') })
    .where('owner', '=', p('owner'))
    .where('idempotency_key', '=', p('idempotency_key')),
);
const release = statement<KeyName>()((db, p) =>
  db
    .deleteFrom('idempotency_keys')
    .where('owner', '=', p('owner'))
    .where('idempotency_key', '=', p('idempotency_key')),
);

/** Gives keys that this transaction has taken to other requests of it. */
export function passIdempotencyKeys(tx: Transaction, keys: readonly TakenKey[]): Promise<void> {
  return tx.each(pass, keys);
}

/** Gives up keys that this transaction has taken. */
export function releaseIdempotencyKeys(tx: Transaction, keys: readonly KeyName[]): Promise<void> {
  return tx.each(release, keys);
}

const held = statement<{
  owner: string;
  idempotency_key: string;
  forgotten_before: number;
}>()((db, p) =>
  db
    .selectFrom('idempotency_keys')
    .innerJoin('jobs', 'jobs.id', 'idempotency_keys.job_id')
    .selectAll('jobs')
    .select('idempotency_keys.fingerprint')
    .where('idempotency_keys.owner', '=', p('owner'))
    .where('idempotency_keys.idempotency_key', '=', p('idempotency_key'))
    .where('idempotency_keys.created_at', '>=', p('forgotten_before')),
);

/** The job that the key's first request made, and what that request looked like; not once it is forgotten. */
export function findByIdempotencyKey(
  db: Handle,
  owner: string,
  key: string,
  forgottenBefore: number,
) {
  return db.first(held, {
    owner,
    idempotency_key: key,
    forgotten_before: forgottenBefore,
  });
}

export const deleteOldKeys = createKeyDeletion('idempotency_keys');
