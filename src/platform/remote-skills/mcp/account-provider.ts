/** The account of an organization, as the SDK's transport asks for its token. */
import {
  type AuthProvider,
  InsufficientScopeError,
  SdkErrorCode,
  SdkHttpError,
} from '@modelcontextprotocol/client';
import type { AccountTokens } from '../accounts/tokens.ts';
import type { RemoteFault, RemoteSource } from '../remote-kind.ts';
import { type McpSettings, takesAccounts } from './settings.ts';

/** The organization whose account is used. `onToken` is called with each token, which is then redacted. */
export interface AccountUse {
  readonly organizationId: string | null;
  readonly onToken?: (token: string) => void;
}

/** Undefined where the server takes no accounts. */
export function accountProvider(
  tokens: AccountTokens,
  source: RemoteSource,
  { organizationId }: AccountUse,
): AuthProvider | undefined {
  const settings = source.settings as unknown as McpSettings;
  if (!takesAccounts(settings)) return undefined;
  const server = { id: source.id, name: source.name, url: settings.url };
  const isNeeded = settings.oauth?.grant === 'authorization_code';
  let used: string | undefined;
  return {
    async token() {
      used = organizationId === null ? undefined : await tokens.tokenOf(server, organizationId);
      if (used === undefined && isNeeded) {
        throw tokens.needsAuthorization(server, organizationId, null);
      }
      return used;
    },
    async onUnauthorized() {
      if (organizationId === null) throw tokens.needsAuthorization(server, null, null);
      await tokens.refuse(server, organizationId, used);
    },
  };
}

/** The fault of the account that a failure implies; undefined if the failure has another cause. */
export async function accountFaultOf(
  tokens: AccountTokens,
  source: RemoteSource,
  { organizationId }: AccountUse,
  error: unknown,
): Promise<RemoteFault | undefined> {
  const settings = source.settings as unknown as McpSettings;
  if (organizationId === null || !takesAccounts(settings)) return undefined;
  const server = { id: source.id, name: source.name, url: settings.url };
  if (error instanceof InsufficientScopeError) {
    return tokens.withdraw(server, organizationId, { scope: error.requiredScope });
  }
  // The server refuses a token that was issued just now.
  const isRefusedAgain =
    error instanceof SdkHttpError && error.code === SdkErrorCode.ClientHttpAuthentication;
  return isRefusedAgain ? tokens.withdraw(server, organizationId, null) : undefined;
}
