/**
 * The authorization code flow (OAuth 2.1), with which a person grants an organization an account at a server outside.
 * `begin` gives the address of the authorization server, `complete` takes what it sent back. Promises that a code is
 * taken once, within ten minutes, from the session of the console that began, and only by the authorization server of
 * the request: by `iss` (RFC 9207), and by a redirect address of the server's own where there is none.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  authorizationContext,
  oauthClientContext,
} from '../../../adapters/database/sealed-values.ts';
import type { Context } from '../../../core/context/context.ts';
import type { Cipher } from '../../../kernel/encryption.ts';
import { invalid, PlatformError } from '../../../kernel/errors.ts';
import type { Lazy } from '../../../kernel/lazy.ts';
import { cleanText } from '../../../kernel/text.ts';
import { shownText } from '../definitions.ts';
import { RemoteFault } from '../remote-kind.ts';
import {
  type AccountRow,
  type ClientRow,
  deleteClients,
  findAccount,
  findClient,
  hasAuthorization,
  putAccount,
  putAuthorization,
  putClient,
  takeAuthorization,
} from './accounts.store.ts';
import { clientMetadataOf, metadataAddressOf, redirectUriOf } from './client-metadata.ts';
import type { OauthClient, OauthClientInformation } from './oauth-client.ts';
import type { FoundServer } from './oauth-discovery.ts';
import { OauthFault } from './oauth-fault.ts';
import { openClient, openDetails, requireCipher, tokenColumns, withoutSecrets } from './sealed.ts';
import type { AccountSource } from './tokens.ts';

const lifetimeMs = 10 * 60_000;
const stateBytes = 32;
const scopeCharsMax = 2_000;
const textCharsMax = 300;

/** A server that accounts can be connected with, as its operator has set it. */
export interface ConnectableServer extends AccountSource {
  readonly headers: Readonly<Record<string, string>>;
  readonly issuer: string | undefined;
  readonly scope: string | undefined;
  /** The client that the operator has registered. */
  readonly client: OauthClientInformation | undefined;
}

/** Who acts, and in which session of the console. */
export interface Actor {
  readonly organizationId: string;
  readonly sessionId: string;
}

interface ClientChoice {
  readonly server: ConnectableServer;
  readonly found: FoundServer;
  readonly redirectUri: string;
  readonly base: string;
  /** Whether the last authorization has not come back. */
  readonly isRepeated: boolean;
}

/** What the authorization server has sent back by the browser. */
export interface Returned {
  readonly state: string;
  readonly code?: string;
  readonly iss?: string;
  readonly error?: string;
  readonly error_description?: string;
}

/** The authorizations that are under way, in all processes. */
export class Authorizations {
  readonly #context: Context;
  readonly #cipher: Cipher | null;
  readonly #oauth: Lazy<OauthClient>;

  constructor(context: Context, cipher: Cipher | null, oauth: Lazy<OauthClient>) {
    this.#context = context;
    this.#cipher = cipher;
    this.#oauth = oauth;
  }

  /** Begins an authorization. Throws `409 conflict` or `502 upstream_unavailable` with the reason why it cannot be. */
  async begin(
    server: ConnectableServer,
    actor: Actor,
    /** Address of the platform in the browser. */
    base: string,
  ) {
    const { database, clock } = this.#context;
    const cipher = requireCipher(this.#cipher);
    const oauth = await this.#oauth.get();
    const redirectUri = redirectUriOf(base, server.name);
    const known = await findAccount(database.read, {
      source_id: server.id,
      organization_id: actor.organizationId,
    });
    const begun = {
      ...{ source_id: server.id, organization_id: actor.organizationId },
      session_id: actor.sessionId,
    };
    // An authorization server shows a person that it does not know a client any more, and does not come back then.
    const isRepeated = await hasAuthorization(database.read, begun);
    const text = `${actor.organizationId}.${randomBytes(stateBytes).toString('base64url')}`;
    const started = await orRefused(async () => {
      const { url, headers, issuer } = server;
      const found = await oauth.find({ url, headers, issuer });
      const client = await this.#clientOf(oauth, { server, found, redirectUri, base, isRepeated });
      const scope = server.scope ?? withRequired(found.scope, known);
      const request = { from: found, client, redirectUri, state: text, scope };
      return { found, client, scope, ...(await oauth.start(request)) };
    });
    const now = clock.now();
    const { metadata, resource } = started.found;
    const details = {
      ...{ from: { metadata, resource }, client: started.client, url: server.url, redirectUri },
      ...{ verifier: started.verifier, scope: started.scope },
    };
    const row = {
      ...begun,
      ...{ state_hash: hashOf(text), expires_at: now + lifetimeMs },
    };
    const sealed = cipher.encrypt(JSON.stringify(details), authorizationContext(row));
    await database.write((tx) => putAuthorization(tx, { ...row, details: sealed }, now));
    return { authorization_url: started.url, issuer: metadata.issuer, expires_at: row.expires_at };
  }

  /** Completes an authorization and stores the account. */
  async complete(server: AccountSource, actor: Actor, returned: Returned): Promise<AccountRow> {
    const { database, clock, log } = this.#context;
    const taken = await database.write((tx) =>
      takeAuthorization(tx, {
        ...{ state_hash: hashOf(returned.state), source_id: server.id },
        ...{ organization_id: actor.organizationId, session_id: actor.sessionId },
      }),
    );
    if (taken === undefined || taken.expires_at <= clock.now()) {
      const issue =
        'is not that of an authorization which this session began in the last ten minutes, or was used already: begin again';
      throw invalid('state', issue);
    }
    const details = openDetails(this.#cipher, taken);
    const { from, client, redirectUri, verifier } = details;
    if (details.url !== server.url) {
      throw new PlatformError('conflict', 'The address of the server was changed: begin again');
    }
    const oauth = await this.#oauth.get();
    const tokens = await orRefused(async () => {
      oauth.checkIssuer(from.metadata, returned.iss);
      const { code, iss } = returned;
      if (returned.error !== undefined || code === undefined) throw refusal(server.name, returned);
      return oauth.exchange(from, client, { code, iss, verifier, redirectUri });
    }, [returned.code, verifier, client.client_secret]).catch(async (error: unknown) => {
      const isUnknown = error instanceof PlatformError && clientIsUnknown(error);
      if (isUnknown) {
        await database.write((tx) => deleteClients(tx, server.id, from.metadata.issuer));
      }
      throw error;
    });
    const { issuer } = from.metadata;
    const key = { source_id: server.id, organization_id: actor.organizationId };
    const bound = { ...key, issuer, url: server.url };
    const columns = tokenColumns(this.#cipher, clock.now(), bound, { from, client, tokens });
    const row = {
      ...bound,
      ...{ client_id: client.client_id, status: 'connected' as const, fault: null },
      ...{ required_scope: null, connected_at: clock.now(), ...columns },
      // The requested scope was granted, unless the server names another one (RFC 6749, 5.1).
      scope: columns.scope ?? details.scope ?? null,
    };
    const stored = await database.write((tx) => putAccount(tx, row));
    log.info(
      {
        audit: 'account_connected',
        server: server.name,
        issuer,
        ...key,
        session_id: actor.sessionId,
      },
      'an account was connected',
    );
    return stored;
  }

  /** The operator's client; else a metadata document of the platform's, where the server takes these; else a registered one. */
  async #clientOf(
    oauth: OauthClient,
    { server, found, redirectUri, base, isRepeated }: ClientChoice,
  ): Promise<OauthClientInformation> {
    if (server.client !== undefined) return server.client;
    const { publicUrl } = this.#context.config;
    const address = metadataAddressOf(publicUrl, server.name);
    if (found.takesMetadataUrls && address !== null && base === publicUrl) {
      return { client_id: address, token_endpoint_auth_method: 'none' };
    }
    const { issuer } = found.metadata;
    const key = { source_id: server.id, issuer, redirect_uri: redirectUri };
    const known = isRepeated ? undefined : await findClient(this.#context.database.read, key);
    const usable = known === undefined ? undefined : usableClient(this.#cipher, known);
    if (usable !== undefined) return usable;
    const metadata = clientMetadataOf(redirectUri, found.metadata);
    const client = await oauth.register(found.metadata, metadata).catch((fault: unknown) => {
      throw found.whyAssumed === null ? fault : new OauthFault('refused', found.whyAssumed, fault);
    });
    const context = oauthClientContext(key);
    const sealed = requireCipher(this.#cipher).encrypt(JSON.stringify(client), context);
    const row = { ...key, client: sealed, created_at: this.#context.clock.now() };
    await this.#context.database.write((tx) => putClient(tx, row));
    return client;
  }
}

/** With the scopes that the server has asked for since the account was connected. */
function withRequired(scope: string | undefined, known: AccountRow | undefined) {
  if (known?.required_scope == null) return scope;
  const scopes = new Set(`${scope ?? known.scope ?? ''} ${known.required_scope}`.split(' '));
  scopes.delete('');
  return [...scopes].join(' ').slice(0, scopeCharsMax);
}

/** Undefined where it cannot be decrypted any more, or lacks the secret of its method: another one is registered then. */
function usableClient(cipher: Cipher | null, known: ClientRow): OauthClientInformation | undefined {
  try {
    const client = openClient(cipher, known);
    const { token_endpoint_auth_method: method, client_secret: secret } = client;
    const needsSecret = method !== undefined && method !== 'none';
    return needsSecret && secret === undefined ? undefined : client;
  } catch (error) {
    if (error instanceof RemoteFault) return undefined;
    throw error;
  }
}

function refusal(name: string, { error, error_description: text }: Returned): PlatformError {
  if (error === undefined) return invalid('code', 'is required where there is no error');
  const why = text === undefined ? error : `${error} (${text})`;
  const shown = cleanText(shownText(why).slice(0, textCharsMax));
  return new PlatformError('conflict', `The account at ${name} was not granted: ${shown}`);
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

function clientIsUnknown({ extras }: PlatformError): boolean {
  return extras.cause instanceof OauthFault && extras.cause.kind === 'client';
}

/** What an authorization server does wrong, as a refusal of the request: without what it may repeat of the secrets sent. */
async function orRefused<T>(
  act: () => Promise<T>,
  secrets: readonly (string | undefined)[] = [],
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof OauthFault)) throw error;
    const message = cleanText(withoutSecrets(secrets, shownText(error.message)));
    const code = error.kind === 'away' ? 'upstream_unavailable' : 'conflict';
    throw new PlatformError(code, message, { cause: new OauthFault(error.kind, message) });
  }
}
