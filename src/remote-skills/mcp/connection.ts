/** A connection to a server over HTTP, for one look or one call: runs share no session. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { RemoteSource } from '../remote-kind.ts';
import { type AccountUse, accountProvider, type TokenAccounts } from './account-provider.ts';
import type { Authorizations } from './authorize.ts';
import { type Connection, newClient } from './client-of.ts';
import type { McpSecrets } from './settings.ts';

/** Milliseconds for the end of a session. */
const closeMs = 1_000;

export interface Transports {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  readonly authorizations: Authorizations;
  readonly accounts: TokenAccounts;
  /** Of the platform. */
  readonly version: string;
}

export async function connect(
  transports: Transports,
  source: RemoteSource,
  { url, use }: { readonly url: string; readonly use: AccountUse },
  signal: AbortSignal,
): Promise<Connection> {
  const { headers = {} } = source.secrets as McpSecrets;
  const { client, broken } = newClient(source.name, transports.version);
  const authProvider =
    transports.authorizations.of(source) ?? accountProvider(transports.accounts, source, use);
  const address = new URL(url);
  const transport = new StreamableHTTPClientTransport(address, {
    fetch: withHeaders(transports.fetch, address.origin, headers),
    ...(authProvider === undefined ? {} : { authProvider }),
    reconnectionOptions: {
      ...{ maxRetries: 0, initialReconnectionDelay: 1_000 },
      ...{ maxReconnectionDelay: 1_000, reconnectionDelayGrowFactor: 1 },
    },
  });
  const close = async () => {
    if (transport.sessionId !== undefined) {
      const ended = transport.terminateSession().catch(() => {});
      await withDeadline(ended, closeMs);
    }
    await client.close().catch(() => {});
  };
  try {
    await Promise.race([client.connect(transport, { signal }), broken]);
  } catch (error) {
    await close();
    throw error;
  }
  return { client, broken, close };
}

/** The headers are the server's alone: an authorization server that it names gets none of them. */
function withHeaders(
  fetch: Transports['fetch'],
  origin: string,
  headers: Readonly<Record<string, string>>,
): Transports['fetch'] {
  return (url, init = {}) => {
    if (new URL(url).origin !== origin) return fetch(url, init);
    const sent = new Headers(headers);
    for (const [name, value] of new Headers(init.headers)) sent.set(name, value);
    return fetch(url, { ...init, headers: sent });
  };
}
