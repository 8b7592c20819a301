/** Idempotency keys: one row a key, unique by index, written with the job that it names. */
import type { Transaction } from '../../adapters/database/database.ts';
import {
  createKeyDeletion,
  createKeyTaking,
  type KeyName,
} from '../../adapters/database/idempotency-keys.ts';
import { firstRow, statement } from '../../adapters/database/statement.ts';
import type { IdempotencyKeysTable } from '../../adapters/database/tables.ts';

/** A key to be taken for a job. */
export type TakenKey = IdempotencyKeysTable;

export const takeIdempotencyKeys = createKeyTaking<TakenKey>('idempotency_keys', {
  owner: 'text',
  idempotency_key: 'text',
  fingerprint: 'text',
  job_id: 'text',
  created_at: 'bigint',
});

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

/** The job that the key's first request made, and what that request looked like; not once it is forgotten. */
export const findByIdempotencyKey = firstRow<KeyName & { forgotten_before: number }>()((db, p) =>
  db
    .selectFrom('idempotency_keys')
    .innerJoin('jobs', 'jobs.id', 'idempotency_keys.job_id')
    .selectAll('jobs')
    .select('idempotency_keys.fingerprint')
    .where('idempotency_keys.owner', '=', p('owner'))
    .where('idempotency_keys.idempotency_key', '=', p('idempotency_key'))
    .where('idempotency_keys.created_at', '>=', p('forgotten_before')),
);

export const deleteOldKeys = createKeyDeletion('idempotency_keys');
