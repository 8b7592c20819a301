/** A connection to a server of the Model Context Protocol, for one look or one call. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { McpSecrets, McpSettings } from './settings.ts';

/** Milliseconds for the end of a session. */
const closeMs = 1_000;

export interface Transports {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Of the platform. */
  readonly version: string;
}

export interface Connection {
  readonly client: Client;
  /** Rejects where the server breaks the protocol, so that no request of this connection can be trusted to end. */
  readonly broken: Promise<never>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Outputs are checked against the schema that is pinned, not against the one that the server tells now. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

export async function connect(
  transports: Transports,
  source: RemoteSource,
  signal: AbortSignal,
): Promise<Connection> {
  const { url } = source.settings as unknown as McpSettings;
  if (url === null) throw new RemoteFault('Servers that are commands cannot be asked yet');
  const { headers = {} } = source.secrets as McpSecrets;
  const client = new Client(
    { name: 'skillwright', title: 'Skillwright', version: transports.version },
    {
      capabilities: {},
      jsonSchemaValidator: noValidator,
      versionNegotiation: { mode: 'auto' },
      inputRequired: { autoFulfill: false },
    },
  );
  const broken = Promise.withResolvers<never>();
  // It is raced with the request; one that fails by itself leaves this one unread.
  broken.promise.catch(() => {});
  client.onerror = (error) => {
    if (!/unknown message id/i.test(error.message)) return;
    const message = `The server ${source.name} answered a request that was not made`;
    broken.reject(new RemoteFault(message));
  };
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
    await Promise.race([client.connect(transport, { signal }), broken.promise]);
  } catch (error) {
    await close();
    throw error;
  }
  return { client, broken: broken.promise, close };
}
