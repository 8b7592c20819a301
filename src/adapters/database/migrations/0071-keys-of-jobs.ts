/** An erasure deletes the Idempotency-Keys of jobs and of received events, whose texts may name a user. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index idempotency_keys_of_job on idempotency_keys (job_id)`.execute(db);
  await sql`create index event_idempotency_keys_of_event on event_idempotency_keys (event_id)`.execute(
    db,
  );
}
