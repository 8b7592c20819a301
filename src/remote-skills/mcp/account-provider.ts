/** The account of an organization, as the SDK's transport asks for its token. */
import {
  type AuthProvider,
  InsufficientScopeError,
  SdkErrorCode,
  SdkHttpError,
} from '@modelcontextprotocol/client';
import type { Accounts } from '../accounts/accounts.ts';
import type { RemoteFault, RemoteSource } from '../remote-kind.ts';
import { type McpSettings, takesAccounts } from './settings.ts';

export type TokenAccounts = Pick<
  Accounts,
  'tokenOf' | 'refuse' | 'withdraw' | 'needsAuthorization' | 'organizationsAt'
>;

/** For which organization a server is asked; `onToken` hears of each token, so that it is kept out of texts. */
export interface AccountUse {
  readonly organizationId: string | null;
  readonly onToken?: (token: string) => void;
}

/** Undefined where the server takes no accounts. */
export function accountProvider(
  accounts: TokenAccounts,
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
      used = organizationId === null ? undefined : await accounts.tokenOf(server, organizationId);
      if (used === undefined && isNeeded) {
        throw accounts.needsAuthorization(server, organizationId, null);
      }
      return used;
    },
    async onUnauthorized() {
      if (organizationId === null) throw accounts.needsAuthorization(server, null, null);
      await accounts.refuse(server, organizationId, used);
    },
  };
}

/** What a failure says of the account with which a server was asked; undefined where it says nothing. */
export async function accountFaultOf(
  accounts: TokenAccounts,
  source: RemoteSource,
  { organizationId }: AccountUse,
  error: unknown,
): Promise<RemoteFault | undefined> {
  const settings = source.settings as unknown as McpSettings;
  if (organizationId === null || !takesAccounts(settings)) return undefined;
  const server = { id: source.id, name: source.name, url: settings.url };
  if (error instanceof InsufficientScopeError) {
    return accounts.withdraw(server, organizationId, { scope: error.requiredScope });
  }
  // It refuses a token that was given a moment ago.
  const isRefusedAgain =
    error instanceof SdkHttpError && error.code === SdkErrorCode.ClientHttpAuthentication;
  return isRefusedAgain ? accounts.withdraw(server, organizationId, null) : undefined;
}
