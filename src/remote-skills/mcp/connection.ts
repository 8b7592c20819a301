/** A connection to a server over HTTP, for one look or one call: runs share no session. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { RemoteSource } from '../remote-kind.ts';
import { type Connection, newClient } from './client-of.ts';
import type { McpSecrets } from './settings.ts';

/** Milliseconds for the end of a session. */
const closeMs = 1_000;

export interface Transports {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Of the platform. */
  readonly version: string;
}

export async function connect(
  transports: Transports,
  source: RemoteSource,
  url: string,
  signal: AbortSignal,
): Promise<Connection> {
  const { headers = {} } = source.secrets as McpSecrets;
  const { client, broken } = newClient(source.name, transports.version);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: transports.fetch,
    requestInit: { headers },
    reconnectionOptions: {
      ...{ maxRetries: 0, initialReconnectionDelay: 1_000 },
      ...{ maxReconnectionDelay: 1_000, reconnectionDelayGrowFactor: 1 },
    },
  });
  const close = async () => {
    if (transport.sessionId !== undefined) {
      const ended = transport.terminateSession().catch(() => {});
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, closeMs).unref())]);
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
