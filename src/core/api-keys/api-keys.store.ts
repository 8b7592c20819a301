/** Every query on organizations and API keys. */
import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { firstRow } from '../../adapters/database/statement.ts';
import type { ApiKeysTable } from '../../adapters/database/tables.ts';

export type ApiKeyRow = Selectable<ApiKeysTable>;

/** `limits` before the id of a key is the name of the limit of its runs that go on at a time. */
const maxConcurrency = (limits: RawBuilder<string>) =>
  sql<number | null>`(select places from gate_settings where name = ${limits} || api_keys.id)`.as(
    'max_concurrency',
  );

/** Inserts the organization; false when it exists already. */
export async function insertOrganization(tx: Transaction, id: string, now: number) {
  const rows = await tx.kysely
    .insertInto('organizations')
    .values({ id, created_at: now })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .execute();
  return rows.length > 0;
}

export async function insertApiKey(tx: Transaction, row: ApiKeyRow): Promise<void> {
  await tx.insert('api_keys', [row]);
}

export const findApiKeyByHash = firstRow<{ key_hash: string; limits: string }>()((db, p) =>
  db
    .selectFrom('api_keys')
    .selectAll()
    .select(maxConcurrency(p('limits')))
    .where('key_hash', '=', p('key_hash')),
);

export const findApiKeyById = firstRow<{ id: string }>()((db, p) =>
  db.selectFrom('api_keys').selectAll().where('id', '=', p('id')),
);

/** The console key of an organization, unless it is revoked. */
export function findConsoleKey(db: Handle, organizationId: string): Promise<ApiKeyRow | undefined> {
  return db.kysely
    .selectFrom('api_keys')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('console', '=', 1)
    .where('enabled', '=', 1)
    .executeTakeFirst();
}

/** Inserts a console key, unless the organization has one. */
export async function insertConsoleKey(tx: Transaction, row: ApiKeyRow): Promise<void> {
  await tx.kysely
    .insertInto('api_keys')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function listOrganizations(db: Handle): Promise<string[]> {
  const rows = await db.kysely
    .selectFrom('organizations')
    .select('id')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** All keys, newest first, without their hashes. */
export function listApiKeys(db: Handle, limits: string) {
  return db.kysely
    .selectFrom('api_keys')
    .select(['id', 'organization_id', 'client_name', 'scopes', 'rate_limit'])
    .select(['enabled', 'created_at', 'expires_at', maxConcurrency(sql`${limits}`)])
    .orderBy('id', 'desc')
    .execute();
}

/** Revokes a key; undefined for an unknown key. */
export function disableApiKey(tx: Transaction, id: string) {
  return tx.kysely
    .updateTable('api_keys')
    .set({ enabled: 0 })
    .where('id', '=', id)
    .returning(['key_hash', 'organization_id'])
    .executeTakeFirst();
}
