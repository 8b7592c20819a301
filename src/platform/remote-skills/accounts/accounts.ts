/**
 * Accounts of organizations at servers outside that require authorization. Each organization connects an account of its
 * own, in the console, and its runs have the tokens of that account. Tokens are stored encrypted, bound to organization,
 * authorization server and address, and never shown.
 */
import type { PageAsked } from '../../../adapters/database/page-bytes.ts';
import type { Context } from '../../../core/context/context.ts';
import { hasScopes, requireScopes } from '../../../kernel/caller.ts';
import { timestamp, timestampOrNull } from '../../../kernel/clock.ts';
import { notFound, PlatformError } from '../../../kernel/errors.ts';
import type { Lazy } from '../../../kernel/lazy.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import { forgetAccount } from '../change-organizations.ts';
import { type McpSecrets, type McpSettings, takesAccounts } from '../mcp/settings.ts';
import { isAmong, organizationsOfSource } from '../organizations.ts';
import { shownAddress } from '../plain-address.ts';
import { refreshSourceFor } from '../refresh.ts';
import { openSource } from '../secrets.ts';
import { findSourceNamed, listSources, type SourceRow } from '../sources.store.ts';
import { categoryOf, type RemoteSkills } from '../state.ts';
import {
  type AccountRow,
  deleteAccount,
  deleteAccountsOf,
  findAccount,
  listAccounts,
  pageAccounts,
  sourcesWithAccounts,
} from './accounts.store.ts';
import { type Actor, Authorizations, type Returned } from './authorize.ts';
import { metadataDocumentOf } from './client-metadata.ts';
import type { OauthClient } from './oauth-client.ts';
import { openTokens } from './sealed.ts';

/** How long the answer to a person waits for a refresh of the server. */
const refreshMs = 8_000;
/** Sources of one kind. */
const sourcesMax = 200;
const kind = 'mcp';

/** Whose accounts they are, and which servers the caller may use. */
interface AccountCaller {
  readonly organizationId: string;
  readonly scopes: readonly string[];
}

export class Accounts {
  readonly #remote: RemoteSkills;
  readonly #oauth: Lazy<OauthClient>;
  readonly #authorizations: Authorizations;
  /** Address of the platform, if it is set. */
  readonly #publicUrl: string | null;

  constructor(context: Context, remote: RemoteSkills, oauth: Lazy<OauthClient>) {
    this.#remote = remote;
    this.#oauth = oauth;
    this.#authorizations = new Authorizations(context, remote.cipher, oauth);
    this.#publicUrl = context.config.publicUrl;
  }

  /** The accounts that the organization has or could connect, by server; of servers in the caller's scopes. */
  async list({ organizationId, scopes }: AccountCaller) {
    const page = { limit: sourcesMax, offset: 0 };
    const { read } = this.#remote.database;
    const { sources } = await listSources(read, kind, page);
    const open = sources.filter(
      (source) =>
        isAmong(organizationsOfSource(source), organizationId) &&
        hasScopes(scopes, [categoryOf(source)]),
    );
    const [own, used] = await Promise.all([
      listAccounts(read, organizationId),
      sourcesWithAccounts(
        read,
        open.map(({ id }) => id),
      ),
    ]);
    const accounts = new Map(own.map((row) => [row.source_id, row]));
    return open
      .filter((source) => isConnectable(source, used.has(source.id)))
      .map((source) => accountView(source, accounts.get(source.id)));
  }

  async find(caller: AccountCaller, name: string) {
    const source = await this.require(caller, name);
    const key = { source_id: source.id, organization_id: caller.organizationId };
    return accountView(source, await findAccount(this.#remote.database.read, key));
  }

  /** Throws `404` for a server that the organization does not have, and `403` for one that is not in the caller's scopes. */
  async require({ organizationId, scopes }: AccountCaller, name: string) {
    const source = await this.sourceNamed(name);
    if (!isAmong(organizationsOfSource(source), organizationId)) throw notFound('Server');
    requireScopes(scopes, [categoryOf(source)]);
    return source;
  }

  /** The server of a name, of any organization: for the administrator. Throws `404` for an unknown one. */
  async sourceNamed(name: string): Promise<SourceRow> {
    const source = await findSourceNamed(this.#remote.database.read, kind, name);
    if (source === undefined) throw notFound('Server');
    return source;
  }

  /** Begins to connect an account. */
  async authorize(
    caller: AccountCaller,
    name: string,
    { sessionId, base }: { sessionId: string; base: string },
  ) {
    const source = await this.require(caller, name);
    const settings = settingsOf(source);
    if (!takesAccounts(settings)) throw takesNone(name);
    const { headers = {}, client_secret: secret } = openSource(this.#remote.cipher, source)
      .secrets as McpSecrets;
    const { client_id: id, issuer, scope } = settings.oauth ?? {};
    // Rows of earlier versions may have none: the server would name who gets the secret.
    if (id !== undefined && issuer === undefined) throw lacksIssuer(name);
    const client = id === undefined ? undefined : { client_id: id, ...withSecret(secret) };
    const server = { ...serverOf(source, settings.url), headers, issuer, scope, client };
    const actor = { organizationId: caller.organizationId, sessionId };
    const begun = await this.#authorizations.begin(server, actor, base);
    return { ...begun, expires_at: timestamp(begun.expires_at) };
  }

  /** Completes an authorization with the answer of its server, and refreshes the server with the account. */
  async finish(
    caller: AccountCaller,
    name: string,
    { sessionId, ...returned }: Returned & Pick<Actor, 'sessionId'>,
  ) {
    const source = await this.require(caller, name);
    const settings = settingsOf(source);
    if (!takesAccounts(settings)) throw takesNone(name);
    const actor = { organizationId: caller.organizationId, sessionId };
    const row = await this.#authorizations.complete(
      serverOf(source, settings.url),
      actor,
      returned,
    );
    await this.#refreshed(source.id, caller.organizationId);
    return accountView(source, row);
  }

  /** Deletes an account, and revokes its tokens where the authorization server offers that. Throws `404` without one. */
  async disconnect({ id, name }: SourceRow, organizationId: string): Promise<void> {
    const key = { source_id: id, organization_id: organizationId };
    const row = await this.#remote.database.write((tx) => deleteAccount(tx, key));
    if (row === undefined) throw notFound('Account');
    await forgetAccount(this.#remote, id, organizationId);
    await this.#revoke(name, row);
    await this.#refreshed(id, organizationId);
  }

  /** Refreshes a server whose accounts have changed; goes on without the answer where that takes long. */
  async #refreshed(sourceId: string, organizationId: string): Promise<void> {
    const refresh = refreshSourceFor(this.#remote, sourceId, organizationId);
    const refreshing = refresh.catch((error: unknown) => {
      this.#remote.log.warn(
        { err: error },
        'a server was not refreshed after its accounts had changed',
      );
    });
    await withDeadline(refreshing, refreshMs);
  }

  /** Never rejects: the tokens are deleted, whether or not they could be revoked. */
  async #revoke(server: string, row: AccountRow): Promise<void> {
    const { tokens, organization_id } = row;
    if (tokens === null) return;
    try {
      const { from, client, tokens: given } = openTokens(this.#remote.cipher, { ...row, tokens });
      const isOffered = await (await this.#oauth.get()).revoke(from, client, given);
      if (!isOffered)
        this.#remote.log.info({ server, organization_id }, 'revocation is not offered');
    } catch (error) {
      const fault = (error as Error).message;
      this.#remote.log.warn(
        { server, organization_id, fault },
        'the tokens of an account were not revoked',
      );
    }
  }

  /** A page of the accounts at a server, for its operator. */
  async accountsAt(name: string, page: PageAsked) {
    const source = await this.sourceNamed(name);
    const { accounts, total } = await pageAccounts(this.#remote.database.read, source.id, page);
    const data = accounts.map((row) => ({
      organization_id: row.organization_id,
      ...accountView(source, row),
    }));
    return { data, total };
  }

  /** Deletes and revokes all accounts at a server that is removed. */
  async forget({ id, name }: SourceRow): Promise<void> {
    const rows = await this.#remote.database.write((tx) => deleteAccountsOf(tx, id));
    await Promise.all(rows.slice(0, sourcesMax).map((row) => this.#revoke(name, row)));
  }

  /** The document that describes the platform to authorization servers as a client. Throws `404` without one. */
  metadata(server: string) {
    const document = metadataDocumentOf(this.#publicUrl, server);
    if (document === null) throw notFound('Client');
    return document;
  }

  /** Closes the connections to authorization servers. */
  async close(): Promise<void> {
    await (await this.#oauth.getUsed())?.close();
  }
}

/** Whether a person can connect an account: the server is known to require it, or its operator has set so. */
function isConnectable(source: SourceRow, isUsed: boolean): boolean {
  const settings = settingsOf(source);
  if (!takesAccounts(settings)) return false;
  const isRequired = source.status === 'needs_authorization' || isUsed;
  return isRequired || settings.oauth?.grant === 'authorization_code';
}

const withSecret = (secret: string | undefined) =>
  secret === undefined ? {} : { client_secret: secret };

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
