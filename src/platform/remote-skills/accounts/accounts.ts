/**
 * Accounts of organizations at servers outside that ask for authorization. Each organization connects an account of its
 * own, in the console, and its runs have the tokens of that account. Tokens are stored encrypted, bound to organization,
 * authorization server and address, and never shown.
 */
import type { PageAsked } from '../../../adapters/database/page-bytes.ts';
import { bind } from '../../../kernel/bind.ts';
import { hasScopes, requireScopes } from '../../../kernel/caller.ts';
import { timestamp, timestampOrNull } from '../../../kernel/clock.ts';
import { notFound, PlatformError } from '../../../kernel/errors.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import { type McpSecrets, type McpSettings, takesAccounts } from '../mcp/settings.ts';
import { isAmong, organizationsOfSource } from '../organizations.ts';
import { shownAddress } from '../plain-address.ts';
import type { RemoteSource } from '../remote-kind.ts';
import { openSource } from '../secrets.ts';
import { findSourceNamed, listSources, type SourceRow } from '../sources.store.ts';
import { categoryOf } from '../state.ts';
import {
  type AccountRow,
  type AccountsAsked,
  deleteAccount,
  deleteAccountsOf,
  findAccount,
  listAccounts,
  organizationsWithTokens,
  pageAccounts,
  sourcesWithAccounts,
} from './accounts.store.ts';
import { type Actor, begin, complete, type Returned } from './authorize.ts';
import { metadataDocumentOf } from './client-metadata.ts';
import { openTokens } from './sealed.ts';
import type { AccountsDeps, AccountsState } from './state.ts';
import { needsAuthorization, refuse, tokenOf, withdraw } from './tokens.ts';

/** How long the answer to a person waits for a refresh of the server. */
const refreshMs = 8_000;
/** Sources of one kind. */
const sourcesMax = 200;
const kind = 'mcp';

export type Accounts = ReturnType<typeof createAccounts>;

export function createAccounts(deps: AccountsDeps) {
  const state: AccountsState = { ...deps, refreshing: new Map() };
  return bind(state, {
    ...{ list, find, require, authorize, finish, disconnect, accountsAt, metadata },
    ...{ tokenOf, refuse, withdraw, needsAuthorization, organizationsAt, hasTokens, forget, close },
    sourceNamed,
  });
}

/** Who asks, and what the caller may use. */
interface Asking {
  readonly organizationId: string;
  readonly scopes: readonly string[];
}

/** The accounts that the organization has or could connect, by server; of servers in the caller's scopes. */
async function list({ database }: AccountsState, { organizationId, scopes }: Asking) {
  const page = { limit: sourcesMax, offset: 0 };
  const { sources } = await listSources(database.read, kind, page);
  const open = sources.filter(
    (source) =>
      isAmong(organizationsOfSource(source), organizationId) &&
      hasScopes(scopes, [categoryOf(source)]),
  );
  const [own, used] = await Promise.all([
    listAccounts(database.read, organizationId),
    sourcesWithAccounts(
      database.read,
      open.map(({ id }) => id),
    ),
  ]);
  const accounts = new Map(own.map((row) => [row.source_id, row]));
  return open
    .filter((source) => isConnectable(source, used.has(source.id)))
    .map((source) => accountView(source, accounts.get(source.id)));
}

/** Whether a person can connect an account: the server is known to ask for it, or its operator says so. */
function isConnectable(source: SourceRow, isUsed: boolean): boolean {
  const settings = settingsOf(source);
  if (!takesAccounts(settings)) return false;
  const asks = source.status === 'needs_authorization' || isUsed;
  return asks || settings.oauth?.grant === 'authorization_code';
}

async function find(state: AccountsState, asking: Asking, name: string) {
  const source = await require(state, asking, name);
  const key = { source_id: source.id, organization_id: asking.organizationId };
  return accountView(source, await findAccount(state.database.read, key));
}

/** Throws `404` for a server that the organization does not have, and `403` for one that is not in the caller's scopes. */
async function require(state: AccountsState, { organizationId, scopes }: Asking, name: string) {
  const source = await sourceNamed(state, name);
  if (!isAmong(organizationsOfSource(source), organizationId)) throw notFound('Server');
  requireScopes(scopes, [categoryOf(source)]);
  return source;
}

/** For the administrator: whichever organizations it belongs to. Throws `404` for an unknown one. */
async function sourceNamed({ database }: AccountsState, name: string): Promise<SourceRow> {
  const source = await findSourceNamed(database.read, kind, name);
  if (source === undefined) throw notFound('Server');
  return source;
}

/** Begins to connect an account. */
async function authorize(
  state: AccountsState,
  asking: Asking,
  name: string,
  { sessionId, base }: { sessionId: string; base: string },
) {
  const source = await require(state, asking, name);
  const settings = settingsOf(source);
  if (!takesAccounts(settings)) throw takesNone(name);
  const { headers = {}, client_secret: secret } = openSource(state.cipher, source)
    .secrets as McpSecrets;
  const { client_id: id, issuer, scope } = settings.oauth ?? {};
  // Rows of earlier versions may have none: the server would name who gets the secret.
  if (id !== undefined && issuer === undefined) throw lacksIssuer(name);
  const client = id === undefined ? undefined : { client_id: id, ...withSecret(secret) };
  const server = { ...serverOf(source, settings.url), headers, issuer, scope, client };
  const begun = await begin(
    state,
    server,
    { organizationId: asking.organizationId, sessionId },
    base,
  );
  return { ...begun, expires_at: timestamp(begun.expires_at) };
}

const withSecret = (secret: string | undefined) =>
  secret === undefined ? {} : { client_secret: secret };

/** Takes what the authorization server has sent back, and refreshes the server with the account. */
async function finish(
  state: AccountsState,
  asking: Asking,
  name: string,
  { sessionId, ...returned }: Returned & Pick<Actor, 'sessionId'>,
) {
  const source = await require(state, asking, name);
  const settings = settingsOf(source);
  if (!takesAccounts(settings)) throw takesNone(name);
  const actor = { organizationId: asking.organizationId, sessionId };
  const row = await complete(state, serverOf(source, settings.url), actor, returned);
  await refreshed(state, source.id, asking.organizationId);
  return accountView(source, row);
}

/** Deletes an account, and revokes its tokens where the authorization server offers that. Throws `404` without one. */
async function disconnect(
  state: AccountsState,
  { id, name }: Pick<SourceRow, 'id' | 'name'>,
  organizationId: string,
): Promise<void> {
  const key = { source_id: id, organization_id: organizationId };
  const row = await state.database.write((tx) => deleteAccount(tx, key));
  if (row === undefined) throw notFound('Account');
  await state.outside.onDisconnect(id, organizationId);
  await revoke(state, name, row);
  await refreshed(state, id, organizationId);
}

/** Refreshes a server whose accounts have changed; goes on without the answer where that takes long. */
async function refreshed(
  { outside, log }: AccountsState,
  sourceId: string,
  organizationId: string,
): Promise<void> {
  const refreshing = outside.onChange(sourceId, organizationId).catch((error: unknown) => {
    log.warn({ err: error }, 'a server was not refreshed after its accounts had changed');
  });
  await withDeadline(refreshing, refreshMs);
}

/** Never rejects: the tokens are deleted, whether or not they could be revoked. */
async function revoke(state: AccountsState, server: string, row: AccountRow): Promise<void> {
  const { tokens, organization_id } = row;
  if (tokens === null) return;
  try {
    const { from, client, tokens: given } = openTokens(state.cipher, { ...row, tokens });
    const isOffered = await (await state.outside.open()).revoke(from, client, given);
    if (!isOffered) state.log.info({ server, organization_id }, 'revocation is not offered');
  } catch (error) {
    const fault = (error as Error).message;
    state.log.warn({ server, organization_id, fault }, 'the tokens of an account were not revoked');
  }
}

/** A page of the accounts at a server, for its operator. */
async function accountsAt(state: AccountsState, name: string, page: PageAsked) {
  const source = await sourceNamed(state, name);
  const { accounts, total } = await pageAccounts(state.database.read, source.id, page);
  const data = accounts.map((row) => ({
    organization_id: row.organization_id,
    ...accountView(source, row),
  }));
  return { data, total };
}

/** The organizations of a server with whose accounts it may be refreshed: those that follow a name, and then the first. */
function organizationsAt(
  { database }: AccountsState,
  { id, organizations }: Pick<RemoteSource, 'id' | 'organizations'>,
  part: Omit<AccountsAsked, 'among'>,
): Promise<string[]> {
  return organizationsWithTokens(database.read, id, { ...part, among: organizations });
}

/** Whether a server may be refreshed with the account of an organization. */
async function hasTokens(
  { database }: AccountsState,
  { id, organizations }: Pick<RemoteSource, 'id' | 'organizations'>,
  organizationId: string,
): Promise<boolean> {
  if (!isAmong(organizations, organizationId)) return false;
  const key = { source_id: id, organization_id: organizationId };
  return (await findAccount(database.read, key))?.tokens != null;
}

/** Deletes and revokes all accounts at a server that is removed. */
async function forget(
  state: AccountsState,
  { id, name }: Pick<SourceRow, 'id' | 'name'>,
): Promise<void> {
  const rows = await state.database.write((tx) => deleteAccountsOf(tx, id));
  await Promise.all(rows.slice(0, sourcesMax).map((row) => revoke(state, name, row)));
}

/** The document that tells authorization servers of the platform as the client of a server. Throws `404` without one. */
function metadata({ outside }: AccountsState, server: string) {
  const document = metadataDocumentOf(outside.publicUrl, server);
  if (document === null) throw notFound('Client');
  return document;
}

async function close({ outside }: AccountsState): Promise<void> {
  await outside.close();
}

const settingsOf = (source: SourceRow) => JSON.parse(source.settings) as McpSettings;
const serverOf = ({ id, name }: SourceRow, url: string) => ({ id, name, url });

const takesNone = (name: string) =>
  new PlatformError(
    'conflict',
    `The server ${name} takes no accounts: its operator has set other credentials`,
  );

const lacksIssuer = (name: string) =>
  new PlatformError(
    'conflict',
    `The server ${name} has a client_id without an issuer: its operator has to set oauth.issuer`,
  );

/** An account in responses: without tokens. */
function accountView(source: SourceRow, row: AccountRow | undefined) {
  return {
    server: source.name,
    category: categoryOf(source),
    url: shownAddress(settingsOf(source).url ?? ''),
    status: row?.status ?? ('not_connected' as const),
    fault: row?.fault ?? null,
    issuer: row?.issuer ?? null,
    client_id: row?.client_id ?? null,
    scope: row?.scope ?? null,
    connected_at: timestampOrNull(row?.connected_at ?? null),
    expires_at: timestampOrNull(row?.expires_at ?? null),
  };
}
