/** Idempotency keys: one row a key, unique by index, written with the job that it names. */
import type { Handle, Transaction } from '../database/database.ts';
import { statement } from '../database/statement.ts';
import type { IdempotencyKeysTable } from '../database/tables.ts';

interface Taken extends IdempotencyKeysTable {
  /** Keys remembered before this moment are forgotten and may be taken anew. */
  forgotten_before: number;
}

const take = statement<Taken>()((db, p) =>
  db
    .insertInto('idempotency_keys')
    .values({
      owner: p('owner'),
      idempotency_key: p('idempotency_key'),
      fingerprint: p('fingerprint'),
      job_id: p('job_id'),
      created_at: p('created_at'),
    })
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
    .returning('job_id'),
);

/** Takes the key for `job_id`; false when an earlier request holds it. */
export async function takeIdempotencyKey(tx: Transaction, row: Taken): Promise<boolean> {
  return (await tx.first(take, row)) !== undefined;
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
