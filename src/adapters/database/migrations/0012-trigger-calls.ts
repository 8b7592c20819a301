/** The last calls of each trigger, with the reason why a call started no job. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await clusteredIn(dialect)(
    db.schema
      .createTable('trigger_calls')
      .addColumn('trigger_id', 'text', (c) => c.notNull())
      .addColumn('id', 'text', (c) => c.notNull())
      .addColumn('received_at', 'bigint', (c) => c.notNull())
      .addColumn('duration_ms', 'bigint', (c) => c.notNull())
      .addColumn('status', 'integer', (c) => c.notNull())
      .addColumn('error', 'text')
      .addColumn('message', 'text')
      .addColumn('job_id', 'text')
      .addColumn('replayed', 'integer', (c) => c.notNull())
      .addColumn('body_bytes', 'bigint')
      .addPrimaryKeyConstraint('trigger_calls_pk', ['trigger_id', 'id']),
  ).execute();
  await sql`create index trigger_calls_age on trigger_calls (received_at)`.execute(db);
}
