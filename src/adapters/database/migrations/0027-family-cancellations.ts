/** Jobs below which a cancellation goes on, because there were more than one transaction cancels. */
import type { Kysely } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await clusteredIn(dialect)(
    db.schema
      .createTable('family_cancellations')
      .addColumn('job_id', 'text', (c) => c.primaryKey().notNull()),
  ).execute();
}
