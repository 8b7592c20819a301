/** The encrypted values of accounts: tokens and clients, with the addresses that they may be sent to. */
import {
  accountContext,
  authorizationContext,
  oauthClientContext,
} from '../../../adapters/database/sealed-values.ts';
import type { Cipher } from '../../../kernel/encryption.ts';
import { PlatformError } from '../../../kernel/errors.ts';
import { openJson } from '../secrets.ts';
import type { AccountKey, AccountRow, AuthorizationRow, ClientRow } from './accounts.store.ts';
import type { OauthClientInformation, Tokens } from './oauth-client.ts';
import type { TokenSource } from './oauth-discovery.ts';

/** How long before its end an access token is replaced. */
const marginMs = 60_000;

/** The tokens of an account. Their source is encrypted with them, so that no other address gets them. */
export interface StoredTokens {
  readonly tokens: Tokens;
  /** When the next ones are requested; null where the access token has no known end. */
  readonly refreshAt: number | null;
  readonly from: TokenSource;
  readonly client: OauthClientInformation;
}

/** An authorization that is under way. */
export interface AuthorizationDetails {
  readonly from: TokenSource;
  readonly client: OauthClientInformation;
  readonly url: string;
  readonly redirectUri: string;
  readonly verifier: string;
  readonly scope: string | undefined;
}

/** Throws `409 conflict` without a key. */
export function requireCipher(cipher: Cipher | null): Cipher {
  if (cipher !== null) return cipher;
  throw new PlatformError(
    'conflict',
    'Tokens are stored encrypted, and there is no key to encrypt them with: set ENCRYPTION_KEY, the same for every process, and start again',
  );
}

/** The columns of an account that has these tokens. */
export function tokenColumns(
  cipher: Cipher | null,
  now: number,
  row: AccountKey & Pick<AccountRow, 'issuer' | 'url'>,
  { tokens, from, client }: Omit<StoredTokens, 'refreshAt'>,
) {
  const { expires_in: seconds, scope = null } = tokens;
  const lifetimeMs = seconds === undefined ? null : Math.max(0, seconds) * 1_000;
  const refreshAt =
    lifetimeMs === null ? null : now + Math.max(lifetimeMs - marginMs, lifetimeMs / 2);
  const sealed: StoredTokens = { tokens, refreshAt, from, client };
  const context = accountContext(row);
  return {
    tokens: requireCipher(cipher).encrypt(JSON.stringify(sealed), context),
    scope,
    expires_at: lifetimeMs === null ? null : now + lifetimeMs,
    refreshing_until: null,
    updated_at: now,
  };
}

/** The text without the secrets, which a server may repeat. */
export function withoutSecrets(secrets: readonly (string | undefined)[], text: string): string {
  return secrets.reduce<string>(
    (kept, secret) => (secret ? kept.replaceAll(secret, '***') : kept),
    text,
  );
}

/** Throws RemoteFault where they cannot be decrypted. */
export function openTokens(
  cipher: Cipher | null,
  row: AccountRow & { readonly tokens: string },
): StoredTokens {
  return opened(cipher, row.tokens, accountContext(row));
}

export function openDetails(cipher: Cipher | null, row: AuthorizationRow): AuthorizationDetails {
  return opened(cipher, row.details, authorizationContext(row));
}

export function openClient(cipher: Cipher | null, row: ClientRow): OauthClientInformation {
  return opened(cipher, row.client, oauthClientContext(row));
}

function opened<T>(cipher: Cipher | null, text: string, context: string): T {
  const otherKey = 'it was stored under another ENCRYPTION_KEY; connect the account again';
  return openJson(cipher, { text, context }, 'authorization', otherKey);
}
