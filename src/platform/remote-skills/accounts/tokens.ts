/**
 * Access tokens of accounts, for calls. Promises that one process at a time refreshes the tokens of an account, so that
 * a single-use refresh token is not lost, and that a call never gets the tokens of another organization. Tokens are sent
 * only to the address with which their account was connected.
 */
import { sealedContexts } from '../../../adapters/database/sealed-values.ts';
import { cleanText } from '../../../kernel/text.ts';
import { shownText } from '../definitions.ts';
import { RemoteFault } from '../remote-kind.ts';
import {
  type AccountKey,
  type AccountRow,
  changeAccount,
  claimRefresh,
  deleteClients,
  findAccount,
} from './accounts.store.ts';
import type { Tokens } from './oauth-client.ts';
import { OauthFault } from './oauth-fault.ts';
import { type AccountTokens, openTokens, requireCipher } from './sealed.ts';
import type { AccountSource, AccountsState } from './state.ts';

/** How long before its end an access token is replaced. */
const marginMs = 60_000;
/** The lease of a process that refreshes tokens: longer than a request and the storing of its answer. */
const leaseMs = 60_000;
/** The interval and the limit of waiting for another process. */
const pollMs = 150;
const patienceMs = 30_000;
/** Attempts to store new tokens; after the last one the account must be connected again. */
const storeTriesMax = 6;
const storeAgainMs = 500;
const faultCharsMax = 500;

/**
 * The access token of an organization's account; undefined without an account. `refused` is a token that the source has
 * refused. Throws RemoteFault if the account must be connected again or no new token is available now.
 */
export async function tokenOf(
  state: AccountsState,
  source: AccountSource,
  organizationId: string,
  refused?: string,
): Promise<string | undefined> {
  const key = { source_id: source.id, organization_id: organizationId };
  const patience = performance.now() + patienceMs;
  while (performance.now() < patience) {
    const row = await findAccount(state.database.read, key);
    if (row === undefined) return undefined;
    const stored = usable(state, source, row);
    const { access_token: token, refresh_token: next } = stored.tokens;
    const isDue = stored.refreshAt !== null && state.clock.now() >= stored.refreshAt;
    if (token !== refused && (!isDue || next === undefined)) return token;
    if (next === undefined) throw await ended(state, source, row, 'It does not take its token');
    const kept = await refreshed(state, source, row, stored).catch((fault: unknown) => {
      const isOver = row.expires_at !== null && state.clock.now() >= row.expires_at;
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
function usable(state: AccountsState, source: AccountSource, row: AccountRow): AccountTokens {
  const { tokens } = row;
  if (tokens === null) throw needsAuthorization(state, source, row.organization_id, row.fault);
  if (row.url !== source.url) {
    const why = 'The address of the server was changed';
    throw needsAuthorization(state, source, row.organization_id, why);
  }
  return openTokens(state.cipher, { ...row, tokens });
}

/** New tokens, asked for by this process or another one. */
async function refreshed(
  state: AccountsState,
  source: AccountSource,
  row: AccountRow,
  stored: AccountTokens,
): Promise<undefined> {
  const name = `${row.source_id} ${row.organization_id}`;
  const underWay = state.refreshing.get(name);
  if (underWay !== undefined) return void (await underWay);
  const one = refreshAlone(state, source, row, stored).finally(() => state.refreshing.delete(name));
  state.refreshing.set(name, one);
  return void (await one);
}

async function refreshAlone(
  state: AccountsState,
  source: AccountSource,
  row: AccountRow,
  stored: AccountTokens,
): Promise<void> {
  const { database, clock } = state;
  const now = clock.now();
  if (!(await database.write((tx) => claimRefresh(tx, row, now, now + leaseMs)))) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    return;
  }
  const { from, client, tokens: before } = stored;
  const oauth = await state.outside.open();
  let fresh: Tokens;
  try {
    fresh = await oauth.refresh(from, client, before.refresh_token ?? '');
  } catch (fault) {
    throw await refusedBy(state, source, row, { fault, stored });
  }
  const tokens = { ...before, ...fresh };
  if (await storePatiently(state, row, { ...stored, tokens })) return;
  // The account was disconnected or connected again meanwhile, so the new tokens are revoked.
  await oauth.revoke(from, client, fresh).catch(() => {});
}

/** The fault when the authorization server gives no new tokens; a permanent one is recorded. */
async function refusedBy(
  state: AccountsState,
  source: AccountSource,
  row: AccountRow,
  { fault, stored }: { fault: unknown; stored: AccountTokens },
): Promise<unknown> {
  const { database, log } = state;
  const release = () => database.write((tx) => changeAccount(tx, row, { refreshing_until: null }));
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
  return ended(state, source, row, without(stored, shownText(fault.message)));
}

/** Without the tokens, which a server may repeat. */
function without({ tokens, client }: AccountTokens, text: string): string {
  return withoutSecrets([tokens.access_token, tokens.refresh_token, client.client_secret], text);
}

export function withoutSecrets(secrets: readonly (string | undefined)[], text: string): string {
  return secrets.reduce<string>(
    (said, secret) => (secret ? said.replaceAll(secret, '***') : said),
    text,
  );
}

/** Stores new tokens; false if the account has others by now. Retries, because the old tokens may be void already. */
async function storePatiently(
  state: AccountsState,
  row: AccountRow,
  next: AccountTokens,
): Promise<boolean> {
  const changes = { ...tokenColumns(state, row, next), revision: row.revision + 1 };
  for (let tries = 1; ; tries++) {
    try {
      const stored = await state.database.write((tx) => changeAccount(tx, row, changes));
      if (stored !== undefined || tries === 1) return stored !== undefined;
      // An earlier try may be committed, and only its confirmation lost.
      return (await findAccount(state.database.read, row))?.tokens === changes.tokens;
    } catch (error) {
      if (tries >= storeTriesMax) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, storeAgainMs * tries));
  }
}

/** The columns of an account that has these tokens. */
export function tokenColumns(
  { clock, cipher }: Pick<AccountsState, 'clock' | 'cipher'>,
  row: AccountKey & Pick<AccountRow, 'issuer' | 'url'>,
  { tokens, from, client }: Omit<AccountTokens, 'refreshAt'>,
) {
  const now = clock.now();
  const { expires_in: seconds, scope = null } = tokens;
  const lifetimeMs = seconds === undefined ? null : Math.max(0, seconds) * 1_000;
  const refreshAt =
    lifetimeMs === null ? null : now + Math.max(lifetimeMs - marginMs, lifetimeMs / 2);
  const sealed: AccountTokens = { tokens, refreshAt, from, client };
  const context = sealedContexts.remote_accounts(row);
  return {
    tokens: requireCipher(cipher).encrypt(JSON.stringify(sealed), context),
    scope,
    expires_at: lifetimeMs === null ? null : now + lifetimeMs,
    refreshing_until: null,
    updated_at: now,
  };
}

/** Records that an account has to be connected again, and deletes its tokens. Returns the reason as a fault. */
async function ended(
  state: AccountsState,
  source: AccountSource,
  row: AccountRow,
  why: string,
): Promise<RemoteFault> {
  const { database, clock } = state;
  const fault = cleanText(why.slice(0, faultCharsMax));
  await database.write((tx) =>
    changeAccount(tx, row, {
      ...{ status: 'needs_authorization', fault, tokens: null, expires_at: null },
      ...{ refreshing_until: null, revision: row.revision + 1, updated_at: clock.now() },
    }),
  );
  return needsAuthorization(state, source, row.organization_id, fault);
}

/** A token that the source refuses: the next call has another one, or this throws RemoteFault. */
export async function refuse(
  state: AccountsState,
  source: AccountSource,
  organizationId: string,
  token: string | undefined,
): Promise<void> {
  const next = await tokenOf(state, source, organizationId, token);
  if (next === undefined) throw needsAuthorization(state, source, organizationId, null);
}

/** Records that the source refuses even new tokens of an account, or requires scopes that it lacks. */
export async function withdraw(
  state: AccountsState,
  source: AccountSource,
  organizationId: string,
  required: { readonly scope: string | undefined } | null,
): Promise<RemoteFault> {
  const key = { source_id: source.id, organization_id: organizationId };
  const row = await findAccount(state.database.read, key);
  if (row === undefined) return needsAuthorization(state, source, organizationId, null);
  if (required === null) return ended(state, source, row, 'It does not take its token');
  const scope = required.scope?.slice(0, faultCharsMax);
  const why = cleanText(
    scope === undefined ? 'It asks for more scopes' : `It asks for the scope ${scope}`,
  );
  await state.database.write((tx) =>
    changeAccount(tx, row, {
      ...{ status: 'needs_authorization', fault: why, required_scope: scope ?? null },
      updated_at: state.clock.now(),
    }),
  );
  return needsAuthorization(state, source, organizationId, why);
}

/** Who has to connect what, and where. */
export function needsAuthorization(
  { outside }: AccountsState,
  { name }: Pick<AccountSource, 'name'>,
  organizationId: string | null,
  why: string | null,
): RemoteFault {
  const place = (organization: string) => {
    const path = `/console/o/${organization}/accounts`;
    return `in the console, under Accounts${outside.publicUrl === null ? '' : ` (${outside.publicUrl}${path})`}`;
  };
  const message =
    organizationId === null
      ? `The server ${name} asks for authorization: a person of an organization has to connect an account ${place('default')}`
      : `The organization ${organizationId} has no usable account at the server ${name}: a person of it has to connect one ${place(organizationId)}`;
  return new RemoteFault(why === null ? message : `${message}. ${why}`, {
    ...{ code: 'missing_credentials', asksForAccount: true },
  });
}
