/** The settings that skills declare, and the values that organizations have set for them. */
import type { Kysely } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .alterTable('skills')
    .addColumn('config', 'text', (c) => c.notNull().defaultTo('{}'))
    .execute();
  await clusteredIn(dialect)(
    db.schema
      .createTable('skill_settings')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('value', 'text', (c) => c.notNull())
      .addColumn('secret', 'integer', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('skill_settings_pk', [
        'organization_id',
        'category',
        'skill_name',
        'name',
      ]),
  ).execute();
}
