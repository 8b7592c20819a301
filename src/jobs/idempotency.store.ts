/** Idempotency keys: one row a key, unique by index, written with the job that it names. */
import type { InsertQueryBuilder, InsertResult, RawBuilder } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { type Lists, listsOf, rowsIn, type Types } from '../database/rows-in.ts';
import { statement } from '../database/statement.ts';
import type { IdempotencyKeysTable, Tables } from '../database/tables.ts';

/** A key to be taken for a job. */
export type TakenKey = IdempotencyKeysTable;

interface KeyName {
  readonly owner: string;
  readonly idempotency_key: string;
}

const taken = (insert: InsertQueryBuilder<Tables, 'idempotency_keys', InsertResult>) => ({
  /** Keys remembered before this moment are forgotten and may be taken anew. */
  unless: (forgottenBefore: RawBuilder<number>) =>
    insert
      .onConflict((conflict) =>
        conflict
          .columns(['owner', 'idempotency_key'])
          .doUpdateSet((eb) => ({
            fingerprint: eb.ref('excluded.fingerprint'),
            job_id: eb.ref('excluded.job_id'),
            created_at: eb.ref('excluded.created_at'),
          }))
          .where('idempotency_keys.created_at', '<', forgottenBefore),
      )
      .returning(['owner', 'idempotency_key']),
});

const takeOne = statement<TakenKey & { forgotten_before: number }>()((db, p) =>
  taken(
    db.insertInto('idempotency_keys').values({
      owner: p('owner'),
      idempotency_key: p('idempotency_key'),
      fingerprint: p('fingerprint'),
      job_id: p('job_id'),
      created_at: p('created_at'),
    }),
  ).unless(p('forgotten_before')),
);

const keyTypes: Types<TakenKey> = {
  owner: 'text',
  idempotency_key: 'text',
  fingerprint: 'text',
  job_id: 'text',
  created_at: 'bigint',
};

const takeMany = statement<Lists<TakenKey> & { forgotten_before: number }>()((db, p) =>
  taken(
    db
      .insertInto('idempotency_keys')
      .columns(Object.keys(keyTypes) as (keyof TakenKey)[])
      .expression(db.selectFrom(rowsIn<TakenKey>(p, keyTypes)).selectAll()),
  ).unless(p('forgotten_before')),
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
  const more = { forgotten_before: forgottenBefore };
  if (tx.dialect === 'postgres')
    return tx.all(takeMany, { ...listsOf(ordered, keyTypes), ...more });
  const found = await Promise.all(ordered.map((key) => tx.all(takeOne, { ...key, ...more })));
  return found.flat();
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

/** The order in which many keys are changed. */
function inKeyOrder(a: KeyName, b: KeyName): number {
  if (a.owner !== b.owner) return a.owner < b.owner ? -1 : 1;
  return a.idempotency_key < b.idempotency_key ? -1 : 1;
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

const oldKeys = statement<{ before: number; limit: number }>()((db, p) =>
  db
    .selectFrom('idempotency_keys')
    .select(['owner', 'idempotency_key'])
    .where('created_at', '<', p('before'))
    .limit(p('limit')),
);
const removeKey = statement<{ owner: string; idempotency_key: string; before: number }>()((db, p) =>
  db
    .deleteFrom('idempotency_keys')
    .where('owner', '=', p('owner'))
    .where('idempotency_key', '=', p('idempotency_key'))
    .where('created_at', '<', p('before')),
);

/** Deletes at most `limit` idempotency keys that are older than `before`; how many. */
export async function deleteOldKeys(
  tx: Transaction,
  before: number,
  limit: number,
): Promise<number> {
  const keys = await tx.all(oldKeys, { before, limit });
  await tx.each(
    removeKey,
    keys.toSorted(inKeyOrder).map((key) => ({ ...key, before })),
  );
  return keys.length;
}
