/** Accounts of organizations at services outside, the authorizations that are under way, and registered clients. */
import type { Kysely } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await clusteredIn(dialect)(
    db.schema
      .createTable('remote_accounts')
      .addColumn('source_id', 'text', (c) => c.notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('issuer', 'text', (c) => c.notNull())
      .addColumn('url', 'text', (c) => c.notNull())
      .addColumn('client_id', 'text', (c) => c.notNull())
      .addColumn('scope', 'text')
      .addColumn('required_scope', 'text')
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('fault', 'text')
      .addColumn('tokens', 'text')
      .addColumn('expires_at', 'bigint')
      .addColumn('revision', 'bigint', (c) => c.notNull())
      .addColumn('refreshing_until', 'bigint')
      .addColumn('connected_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('remote_accounts_pk', ['source_id', 'organization_id']),
  ).execute();
  await clusteredIn(dialect)(
    db.schema
      .createTable('remote_authorizations')
      .addColumn('state_hash', 'text', (c) => c.primaryKey().notNull())
      .addColumn('source_id', 'text', (c) => c.notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('session_id', 'text', (c) => c.notNull())
      .addColumn('details', 'text', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull()),
  ).execute();
  await clusteredIn(dialect)(
    db.schema
      .createTable('remote_oauth_clients')
      .addColumn('source_id', 'text', (c) => c.notNull())
      .addColumn('issuer', 'text', (c) => c.notNull())
      .addColumn('redirect_uri', 'text', (c) => c.notNull())
      .addColumn('client', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('remote_oauth_clients_pk', ['source_id', 'issuer', 'redirect_uri']),
  ).execute();
}
