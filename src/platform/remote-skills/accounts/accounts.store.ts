/** Every query on accounts at remote sources, on authorizations that are under way, and on registered clients. */

import type { Selectable, Updateable } from 'kysely';
import { countOf } from '../../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import type { PageAsked } from '../../../adapters/database/page-bytes.ts';
import type {
  RemoteAccountsTable,
  RemoteAuthorizationsTable,
  RemoteOauthClientsTable,
} from '../../../adapters/database/tables.ts';

export type AccountRow = Selectable<RemoteAccountsTable>;
export type AccountKey = Pick<AccountRow, 'source_id' | 'organization_id'>;
export type AuthorizationRow = Selectable<RemoteAuthorizationsTable>;
export type ClientRow = Selectable<RemoteOauthClientsTable>;

export function findAccount(db: Handle, key: AccountKey): Promise<AccountRow | undefined> {
  return db.kysely
    .selectFrom('remote_accounts')
    .selectAll()
    .where('source_id', '=', key.source_id)
    .where('organization_id', '=', key.organization_id)
    .executeTakeFirst();
}

/** The accounts of an organization: at most one for each source. */
export function listAccounts(db: Handle, organizationId: string): Promise<AccountRow[]> {
  return db.kysely
    .selectFrom('remote_accounts')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .execute();
}

/** A page of the accounts at a source by organization, and the total. */
export async function pageAccounts(
  db: Handle,
  sourceId: string,
  page: PageAsked,
): Promise<{ accounts: AccountRow[]; total: number }> {
  const query = db.kysely.selectFrom('remote_accounts').where('source_id', '=', sourceId);
  const accounts = await query
    .selectAll()
    .orderBy('organization_id')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { accounts, total: await countOf(query) };
}

/** Of these sources, those at which some organization has an account. */
export async function sourcesWithAccounts(
  db: Handle,
  sourceIds: readonly string[],
): Promise<Set<string>> {
  if (sourceIds.length === 0) return new Set();
  const rows = await db.kysely
    .selectFrom('remote_sources')
    .select('id')
    .where('id', 'in', sourceIds)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('remote_accounts')
          .select('source_id')
          .whereRef('remote_accounts.source_id', '=', 'remote_sources.id'),
      ),
    )
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** Of these organizations, those without an account at a source. */
export async function organizationsWithoutAccount(
  db: Handle,
  sourceId: string,
  organizations: ReadonlySet<string>,
): Promise<Set<string>> {
  if (organizations.size === 0) return new Set();
  const rows = await db.kysely
    .selectFrom('remote_accounts')
    .select('organization_id')
    .where('source_id', '=', sourceId)
    .execute();
  return organizations.difference(new Set(rows.map(({ organization_id }) => organization_id)));
}

/** A part of the organizations with tokens, by name. */
export interface AccountsPart {
  /** Those that follow this name; at the end the first ones follow. */
  readonly after: string;
  readonly limit: number;
  /** Those among these; null for all. */
  readonly among: readonly string[] | null;
}

/** The organizations whose tokens a source may still take. */
export async function organizationsWithTokens(
  db: Handle,
  sourceId: string,
  { after, limit, among }: AccountsPart,
): Promise<string[]> {
  const part = async (side: '>' | '<=', max: number) => {
    const query = db.kysely
      .selectFrom('remote_accounts')
      .select('organization_id')
      .where('source_id', '=', sourceId)
      .where('tokens', 'is not', null)
      .where('organization_id', side, after)
      .orderBy('organization_id')
      .limit(max);
    const named = among === null ? query : query.where('organization_id', 'in', among);
    return (await named.execute()).map(({ organization_id }) => organization_id);
  };
  const following = await part('>', limit);
  if (following.length >= limit || after === '') return following;
  return [...following, ...(await part('<=', limit - following.length))];
}

/** Inserts an account, or replaces it with a greater revision. */
export function putAccount(
  tx: Transaction,
  row: Omit<AccountRow, 'revision'>,
): Promise<AccountRow> {
  const { source_id: _, organization_id: __, ...changes } = row;
  return tx.kysely
    .insertInto('remote_accounts')
    .values({ ...row, revision: 1 })
    .onConflict((conflict) =>
      conflict.columns(['source_id', 'organization_id']).doUpdateSet((eb) => ({
        ...changes,
        revision: eb('remote_accounts.revision', '+', 1),
      })),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Lets one process request new tokens until `until`; false where another one does, or the tokens were changed. */
export async function claimRefresh(
  tx: Transaction,
  { source_id, organization_id, revision }: AccountKey & Pick<AccountRow, 'revision'>,
  now: number,
  until: number,
): Promise<boolean> {
  const row = await tx.kysely
    .updateTable('remote_accounts')
    .set({ refreshing_until: until })
    .where('source_id', '=', source_id)
    .where('organization_id', '=', organization_id)
    .where('revision', '=', revision)
    .where((eb) => eb.or([eb('refreshing_until', 'is', null), eb('refreshing_until', '<=', now)]))
    .returning('revision')
    .executeTakeFirst();
  return row !== undefined;
}

/** Changes an account whose tokens are those of `revision`; undefined where they are not. */
export function changeAccount(
  tx: Transaction,
  { source_id, organization_id, revision }: AccountKey & Pick<AccountRow, 'revision'>,
  changes: Updateable<RemoteAccountsTable>,
): Promise<AccountRow | undefined> {
  return tx.kysely
    .updateTable('remote_accounts')
    .set(changes)
    .where('source_id', '=', source_id)
    .where('organization_id', '=', organization_id)
    .where('revision', '=', revision)
    .returningAll()
    .executeTakeFirst();
}

export function deleteAccount(tx: Transaction, key: AccountKey): Promise<AccountRow | undefined> {
  return tx.kysely
    .deleteFrom('remote_accounts')
    .where('source_id', '=', key.source_id)
    .where('organization_id', '=', key.organization_id)
    .returningAll()
    .executeTakeFirst();
}

/** Deletes all that is stored of accounts at a source, and returns the accounts. */
export async function deleteAccountsOf(tx: Transaction, sourceId: string): Promise<AccountRow[]> {
  await tx.kysely.deleteFrom('remote_authorizations').where('source_id', '=', sourceId).execute();
  await tx.kysely.deleteFrom('remote_oauth_clients').where('source_id', '=', sourceId).execute();
  return tx.kysely
    .deleteFrom('remote_accounts')
    .where('source_id', '=', sourceId)
    .returningAll()
    .execute();
}

/** Inserts an authorization in place of an earlier one of the same session, and deletes those that are over. */
export async function putAuthorization(
  tx: Transaction,
  row: AuthorizationRow,
  now: number,
): Promise<void> {
  await tx.kysely.deleteFrom('remote_authorizations').where('expires_at', '<=', now).execute();
  await tx.kysely
    .deleteFrom('remote_authorizations')
    .where('source_id', '=', row.source_id)
    .where('organization_id', '=', row.organization_id)
    .where('session_id', '=', row.session_id)
    .execute();
  await tx.kysely.insertInto('remote_authorizations').values(row).execute();
}

/** Whether the session has begun an authorization that has not come back. */
export async function hasAuthorization(
  db: Handle,
  row: Pick<AuthorizationRow, 'source_id' | 'organization_id' | 'session_id'>,
): Promise<boolean> {
  const found = await db.kysely
    .selectFrom('remote_authorizations')
    .select('state_hash')
    .where('source_id', '=', row.source_id)
    .where('organization_id', '=', row.organization_id)
    .where('session_id', '=', row.session_id)
    .executeTakeFirst();
  return found !== undefined;
}

/** Takes an authorization out; undefined where it is another session's, or was taken before. */
export function takeAuthorization(
  tx: Transaction,
  row: Pick<AuthorizationRow, 'state_hash' | 'source_id' | 'organization_id' | 'session_id'>,
): Promise<AuthorizationRow | undefined> {
  return tx.kysely
    .deleteFrom('remote_authorizations')
    .where('state_hash', '=', row.state_hash)
    .where('source_id', '=', row.source_id)
    .where('organization_id', '=', row.organization_id)
    .where('session_id', '=', row.session_id)
    .returningAll()
    .executeTakeFirst();
}

type ClientKey = Pick<ClientRow, 'source_id' | 'issuer' | 'redirect_uri'>;

export function findClient(db: Handle, key: ClientKey): Promise<ClientRow | undefined> {
  return db.kysely
    .selectFrom('remote_oauth_clients')
    .selectAll()
    .where('source_id', '=', key.source_id)
    .where('issuer', '=', key.issuer)
    .where('redirect_uri', '=', key.redirect_uri)
    .executeTakeFirst();
}

export async function putClient(tx: Transaction, row: ClientRow): Promise<void> {
  const { client, created_at } = row;
  await tx.kysely
    .insertInto('remote_oauth_clients')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['source_id', 'issuer', 'redirect_uri']).doUpdateSet({ client, created_at }),
    )
    .execute();
}

/** Deletes the registered clients of a source at an authorization server, which does not know them any more. */
export async function deleteClients(
  tx: Transaction,
  sourceId: string,
  issuer: string,
): Promise<void> {
  await tx.kysely
    .deleteFrom('remote_oauth_clients')
    .where('source_id', '=', sourceId)
    .where('issuer', '=', issuer)
    .execute();
}
