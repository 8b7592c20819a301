/** Every query on credentials. */

import type { Selectable } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { CredentialsTable } from '../../adapters/database/tables.ts';

export type CredentialRow = Selectable<CredentialsTable>;

const ofProvider = statement<{ organization_id: string; provider: string }>()((db, p) =>
  db
    .selectFrom('credentials')
    .selectAll()
    .where('organization_id', '=', p('organization_id'))
    .where('provider', '=', p('provider')),
);

export function findCredential(
  db: Handle,
  organizationId: string,
  provider: string,
): Promise<CredentialRow | undefined> {
  return db.first(ofProvider, { organization_id: organizationId, provider });
}

/** A page of an organization's credentials, newest first, and the total. */
export async function listCredentials(
  db: Handle,
  organizationId: string,
  page: PageAsked,
): Promise<{ credentials: CredentialRow[]; total: number }> {
  const query = db.kysely.selectFrom('credentials').where('organization_id', '=', organizationId);
  const credentials = await query
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('provider', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { credentials, total: await countOf(query) };
}

/** Credentials with an API key, of all organizations: the `limit` oldest. */
export function listKeys(db: Handle, limit: number): Promise<CredentialRow[]> {
  return db.kysely
    .selectFrom('credentials')
    .selectAll()
    .where('api_key', 'is not', null)
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

/** Inserts the row, or replaces the existing one and keeps its `created_at`. */
export function replaceCredential(tx: Transaction, row: CredentialRow): Promise<CredentialRow> {
  const { api_key, base_url, protocol, updated_at } = row;
  return tx.kysely
    .insertInto('credentials')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'provider'])
        .doUpdateSet({ api_key, base_url, protocol, updated_at }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Deletes the row; false when it does not exist. */
export async function deleteCredential(
  tx: Transaction,
  organizationId: string,
  provider: string,
): Promise<boolean> {
  const row = await tx.kysely
    .deleteFrom('credentials')
    .where('organization_id', '=', organizationId)
    .where('provider', '=', provider)
    .returning('provider')
    .executeTakeFirst();
  return row !== undefined;
}
