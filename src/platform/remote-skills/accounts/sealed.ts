/** The encrypted values of accounts: tokens and clients, with the addresses that they may be sent to. */
import { sealedContexts } from '../../../adapters/database/sealed-values.ts';
import { type Cipher, DecryptionError } from '../../../kernel/encryption.ts';
import { PlatformError } from '../../../kernel/errors.ts';
import { RemoteFault } from '../remote-kind.ts';
import type { AccountRow, AuthorizationRow, ClientRow } from './accounts.store.ts';
import type { OauthClientInformation, Tokens } from './oauth-client.ts';
import type { TokenSource } from './oauth-discovery.ts';

/** Tokens of an account. Where they are asked for is encrypted with them, so that no other address gets them. */
export interface AccountTokens {
  readonly tokens: Tokens;
  /** When the next ones are asked for; null where the access token has no known end. */
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

/** Throws RemoteFault where they cannot be decrypted. */
export function openTokens(
  cipher: Cipher | null,
  row: AccountRow & { readonly tokens: string },
): AccountTokens {
  return opened(cipher, row.tokens, sealedContexts.remote_accounts(row));
}

export function openDetails(cipher: Cipher | null, row: AuthorizationRow): AuthorizationDetails {
  return opened(cipher, row.details, sealedContexts.remote_authorizations(row));
}

export function openClient(cipher: Cipher | null, row: ClientRow): OauthClientInformation {
  return opened(cipher, row.client, sealedContexts.remote_oauth_clients(row));
}

function opened<T>(cipher: Cipher | null, sealed: string, context: string): T {
  const stored = 'The stored authorization cannot be decrypted';
  const code = 'missing_credentials';
  if (cipher === null) throw new RemoteFault(`${stored}: ENCRYPTION_KEY is not set`, { code });
  try {
    return JSON.parse(cipher.decrypt(sealed, context)) as T;
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    const why = 'it was stored under another ENCRYPTION_KEY; connect the account again';
    throw new RemoteFault(`${stored}: ${why}`, { code });
  }
}
