/** Skills that are calls to other services: the services, and the versions of their skills. */
import type { Kysely } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema.alterTable('skills').addColumn('remote_source_id', 'text').execute();
  await clusteredIn(dialect)(
    db.schema
      .createTable('remote_sources')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('settings', 'text', (c) => c.notNull())
      .addColumn('secrets', 'text')
      .addColumn('about', 'text', (c) => c.notNull().defaultTo('{}'))
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('fault', 'text')
      .addColumn('fault_at', 'bigint')
      .addColumn('refreshed_at', 'bigint')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addUniqueConstraint('remote_sources_by_name', ['kind', 'name']),
  ).execute();
  await clusteredIn(dialect)(
    db.schema
      .createTable('remote_skill_versions')
      .addColumn('source_id', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('version', 'text', (c) => c.notNull())
      .addColumn('tool', 'text', (c) => c.notNull())
      .addColumn('digest', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('reason', 'text')
      .addColumn('definition', 'text', (c) => c.notNull())
      .addColumn('difference', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addColumn('activated_at', 'bigint')
      .addPrimaryKeyConstraint('remote_skill_versions_pk', ['source_id', 'skill_name', 'version']),
  ).execute();
}
