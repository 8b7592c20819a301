/**
 * Access tokens of accounts, for calls. Promises that one process at a time refreshes the tokens of an account, so that
 * a single-use refresh token is not lost, and that a call never gets the tokens of another organization. Tokens are sent
 * only to the address with which their account was connected.
 */
import type { Context } from '../../../core/context/context.ts';
import type { Cipher } from '../../../kernel/encryption.ts';
import type { Lazy } from '../../../kernel/lazy.ts';
import { cleanText } from '../../../kernel/text.ts';
import { shownText } from '../definitions.ts';
import { isAmong } from '../organizations.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import {
  type AccountRow,
  type AccountsPart,
  changeAccount,
  claimRefresh,
  deleteClients,
  findAccount,
  organizationsWithTokens,
} from './accounts.store.ts';
import type { OauthClient, Tokens } from './oauth-client.ts';
import { OauthFault } from './oauth-fault.ts';
import { openTokens, type StoredTokens, tokenColumns, withoutSecrets } from './sealed.ts';

/** The lease of a process that refreshes tokens: longer than a request and the storing of its answer. */
const leaseMs = 60_000;
/** The interval and the limit of waiting for another process. */
const pollMs = 150;
const patienceMs = 30_000;
/** Attempts to store new tokens; after the last one the account must be connected again. */
const storeTriesMax = 6;
const storeAgainMs = 500;
const faultCharsMax = 500;

/** Of a source, what accounts depend on. */
export interface AccountSource {
  readonly id: string;
  readonly name: string;
  readonly url: string;
}

/** The tokens of all accounts. */
export class AccountTokens {
  readonly #context: Context;
  /** Null without an encryption key: tokens can be neither stored nor used then. */
  readonly #cipher: Cipher | null;
  readonly #oauth: Lazy<OauthClient>;
  /** Requests for new tokens that this process has under way, by account. */
  readonly #refreshing = new Map<string, Promise<void>>();

  constructor(context: Context, cipher: Cipher | null, oauth: Lazy<OauthClient>) {
    this.#context = context;
    this.#cipher = cipher;
    this.#oauth = oauth;
  }

  /**
   * The access token of an organization's account; undefined without an account. `refused` is a token that the source has
   * refused. Throws RemoteFault if the account must be connected again or no new token is available now.
   */
  async tokenOf(
    source: AccountSource,
    organizationId: string,
    refused?: string,
  ): Promise<string | undefined> {
    const key = { source_id: source.id, organization_id: organizationId };
    const patience = performance.now() + patienceMs;
    while (performance.now() < patience) {
      const row = await findAccount(this.#context.database.read, key);
      if (row === undefined) return undefined;
      const stored = this.#usable(source, row);
      const { access_token: token, refresh_token: next } = stored.tokens;
      const isDue = stored.refreshAt !== null && this.#context.clock.now() >= stored.refreshAt;
      if (token !== refused && (!isDue || next === undefined)) return token;
      if (next === undefined) throw await this.#ended(source, row, 'It does not take its token');
      const kept = await this.#refreshed(source, row, stored).catch((fault: unknown) => {
        const isOver = row.expires_at !== null && this.#context.clock.now() >= row.expires_at;
        if (fault instanceof RemoteFault && fault.retryable && token !== refused && !isOver) {
          return token;
        }
        throw fault;
      });
      if (kept !== undefined) return kept;
    }
    const message = `The account of ${organizationId} at the server ${source.name} is being renewed by another process`;
    throw new RemoteFault(message, {
      ...{ code: 'upstream_unavailable', retryable: true, hadNoEffect: true },
    });
  }

  /** Throws RemoteFault where there are no tokens, or they are for another address. */
  #usable(source: AccountSource, row: AccountRow): StoredTokens {
    const { tokens } = row;
    if (tokens === null) throw this.needsAuthorization(source, row.organization_id, row.fault);
    if (row.url !== source.url) {
      const why = 'The address of the server was changed';
      throw this.needsAuthorization(source, row.organization_id, why);
    }
    return openTokens(this.#cipher, { ...row, tokens });
  }

  /** Waits for new tokens, which this process or another one requests. */
  async #refreshed(
    source: AccountSource,
    row: AccountRow,
    stored: StoredTokens,
  ): Promise<undefined> {
    const name = `${row.source_id} ${row.organization_id}`;
    const underWay = this.#refreshing.get(name);
    if (underWay !== undefined) return void (await underWay);
    const one = this.#refreshAlone(source, row, stored).finally(() =>
      this.#refreshing.delete(name),
    );
    this.#refreshing.set(name, one);
    return void (await one);
  }

  async #refreshAlone(source: AccountSource, row: AccountRow, stored: StoredTokens): Promise<void> {
    const { database, clock } = this.#context;
    const now = clock.now();
    if (!(await database.write((tx) => claimRefresh(tx, row, now, now + leaseMs)))) {
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      return;
    }
    const { from, client, tokens: before } = stored;
    const oauth = await this.#oauth.get();
    let fresh: Tokens;
    try {
      fresh = await oauth.refresh(from, client, before.refresh_token ?? '');
    } catch (fault) {
      throw await this.#refusedBy(source, row, { fault, stored });
    }
    const tokens = { ...before, ...fresh };
    if (await this.#storePatiently(row, { ...stored, tokens })) return;
    // The account was disconnected or connected again meanwhile, so the new tokens are revoked.
    await oauth.revoke(from, client, fresh).catch(() => {});
  }

  /** The fault when the authorization server gives no new tokens; a permanent one is recorded. */
  async #refusedBy(
    source: AccountSource,
    row: AccountRow,
    { fault, stored }: { fault: unknown; stored: StoredTokens },
  ): Promise<unknown> {
    const { database, log } = this.#context;
    const release = () =>
      database.write((tx) => changeAccount(tx, row, { refreshing_until: null }));
    if (!(fault instanceof OauthFault) || fault.kind === 'away') {
      await release();
      if (!(fault instanceof OauthFault)) return fault;
      const message = `The account of ${row.organization_id} at the server ${source.name} could not be renewed. ${without(stored, shownText(fault.message))}`;
      return new RemoteFault(message, {
        ...{ code: 'upstream_unavailable', retryable: true, hadNoEffect: true, cause: fault },
      });
    }
    log.warn(
      { source: source.name, organization_id: row.organization_id, fault: fault.kind },
      'the account at a remote source has to be connected again',
    );
    if (fault.kind === 'client') {
      await database.write((tx) => deleteClients(tx, row.source_id, row.issuer));
    }
    return this.#ended(source, row, without(stored, shownText(fault.message)));
  }

  /** Stores new tokens; false if the account has others by now. Retries, because the old tokens may be void already. */
  async #storePatiently(row: AccountRow, next: StoredTokens): Promise<boolean> {
    const now = this.#context.clock.now();
    const changes = { ...tokenColumns(this.#cipher, now, row, next), revision: row.revision + 1 };
    for (let tries = 1; ; tries++) {
      try {
        const stored = await this.#context.database.write((tx) => changeAccount(tx, row, changes));
        if (stored !== undefined || tries === 1) return stored !== undefined;
        // An earlier try may be committed, and only its confirmation lost.
        return (await findAccount(this.#context.database.read, row))?.tokens === changes.tokens;
      } catch (error) {
        if (tries >= storeTriesMax) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, storeAgainMs * tries));
    }
  }

  /** Records that an account has to be connected again, and deletes its tokens. Returns the reason as a fault. */
  async #ended(source: AccountSource, row: AccountRow, why: string): Promise<RemoteFault> {
    const { database, clock } = this.#context;
    const fault = cleanText(why.slice(0, faultCharsMax));
    await database.write((tx) =>
      changeAccount(tx, row, {
        ...{ status: 'needs_authorization', fault, tokens: null, expires_at: null },
        ...{ refreshing_until: null, revision: row.revision + 1, updated_at: clock.now() },
      }),
    );
    return this.needsAuthorization(source, row.organization_id, fault);
  }

  /** A token that the source refuses: the next call has another one, or this throws RemoteFault. */
  async refuse(
    source: AccountSource,
    organizationId: string,
    token: string | undefined,
  ): Promise<void> {
    const next = await this.tokenOf(source, organizationId, token);
    if (next === undefined) throw this.needsAuthorization(source, organizationId, null);
  }

  /** Records that the source refuses even new tokens of an account, or requires scopes that it lacks. */
  async withdraw(
    source: AccountSource,
    organizationId: string,
    required: { readonly scope: string | undefined } | null,
  ): Promise<RemoteFault> {
    const key = { source_id: source.id, organization_id: organizationId };
    const row = await findAccount(this.#context.database.read, key);
    if (row === undefined) return this.needsAuthorization(source, organizationId, null);
    if (required === null) return this.#ended(source, row, 'It does not take its token');
    const scope = required.scope?.slice(0, faultCharsMax);
    const why = cleanText(
      scope === undefined ? 'It asks for more scopes' : `It asks for the scope ${scope}`,
    );
    await this.#context.database.write((tx) =>
      changeAccount(tx, row, {
        ...{ status: 'needs_authorization', fault: why, required_scope: scope ?? null },
        updated_at: this.#context.clock.now(),
      }),
    );
    return this.needsAuthorization(source, organizationId, why);
  }

  /** The fault that names the organization, the server and the page on which a person connects an account. */
  needsAuthorization(
    { name }: AccountSource,
    organizationId: string | null,
    why: string | null,
  ): RemoteFault {
    const { publicUrl } = this.#context.config;
    const place = (organization: string) => {
      const path = `/console/o/${organization}/accounts`;
      return `in the console, under Accounts${publicUrl === null ? '' : ` (${publicUrl}${path})`}`;
    };
    const message =
      organizationId === null
        ? `The server ${name} asks for authorization: a person of an organization has to connect an account ${place('default')}`
        : `The organization ${organizationId} has no usable account at the server ${name}: a person of it has to connect one ${place(organizationId)}`;
    return new RemoteFault(why === null ? message : `${message}. ${why}`, {
      ...{ code: 'missing_credentials', asksForAccount: true },
    });
  }

  /** Part of the organizations of a server whose tokens it may still take: those that follow a name, and then the first. */
  organizationsAt(
    { id, organizations }: RemoteSource,
    part: Omit<AccountsPart, 'among'>,
  ): Promise<string[]> {
    const { read } = this.#context.database;
    return organizationsWithTokens(read, id, { ...part, among: organizations });
  }

  /** Whether a server may be refreshed with the account of an organization. */
  async hasTokens({ id, organizations }: RemoteSource, organizationId: string): Promise<boolean> {
    if (!isAmong(organizations, organizationId)) return false;
    const key = { source_id: id, organization_id: organizationId };
    return (await findAccount(this.#context.database.read, key))?.tokens != null;
  }
}

/** Without the tokens, which a server may repeat. */
function without({ tokens, client }: StoredTokens, text: string): string {
  return withoutSecrets([tokens.access_token, tokens.refresh_token, client.client_secret], text);
}
