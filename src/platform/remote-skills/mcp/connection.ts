/** A connection to a server over HTTP, for one refresh or one call: runs share no session. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { aborted } from '../../../kernel/aborted.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import { type AccountUse, accountProvider, type TokenAccounts } from './account-provider.ts';
import type { Authorizations } from './authorize.ts';
import { type Connection, newClient } from './client-of.ts';
import { refuseHeavy } from './heavy-messages.ts';
import { withPlainEvents } from './plain-events.ts';
import type { McpSecrets } from './settings.ts';

/** Milliseconds for the end of a session. */
const closeMs = 1_000;

export interface Transports {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  readonly authorizations: Authorizations;
  readonly accounts: TokenAccounts;
  /** Of the platform. */
  readonly version: string;
  /** A server says that its tools have changed. */
  onToolsChanged(sourceId: string): void;
}

export async function connect(
  transports: Transports,
  source: RemoteSource,
  { url, use }: { readonly url: string; readonly use: AccountUse },
  signal: AbortSignal,
): Promise<Connection> {
  const { headers = {} } = source.secrets as McpSecrets;
  const { client, begin, broken, watch } = newClient(source.name, transports.version, {
    onToolsChanged: () => transports.onToolsChanged(source.id),
  });
  const authProvider =
    transports.authorizations.of(source) ?? accountProvider(transports.accounts, source, use);
  const address = new URL(url);
  const transport = new StreamableHTTPClientTransport(address, {
    fetch: withHeaders(transports.fetch, address.origin, headers, use.onToken),
    ...(authProvider === undefined ? {} : { authProvider }),
    reconnectionOptions: {
      ...{ maxRetries: 0, initialReconnectionDelay: 1_000 },
      ...{ maxReconnectionDelay: 1_000, reconnectionDelayGrowFactor: 1 },
    },
  });
  watch(transport);
  const { ended, cancelling } = endOfCalls(transport, source.name);
  const close = async () => {
    // A server of 2025 goes on with a call until it is told, so this goes out before the connection is closed.
    await withDeadline(cancelling(), closeMs);
    if (transport.sessionId !== undefined) {
      const ended = transport.terminateSession().catch(() => {});
      await withDeadline(ended, closeMs);
    }
    await client.close().catch(() => {});
  };
  try {
    // The SDK does not pass the signal on to all requests of the initialization.
    await Promise.race([client.connect(transport, { signal }), broken, aborted(signal)]);
  } catch (error) {
    await close();
    throw error;
  }
  return { client, begin, broken: Promise.race([broken, ended]), close };
}

interface EndOfCalls {
  /** Rejects when the stream of a call ends without the answer to it, which the SDK would wait for until its time is up. */
  readonly ended: Promise<never>;
  /** Resolves when the server has been told of the cancelled calls, or cannot be told. */
  cancelling(): Promise<void>;
}

function endOfCalls(transport: StreamableHTTPClientTransport, server: string): EndOfCalls {
  const ended = Promise.withResolvers<never>();
  // Each request is raced with this promise, and none may read its rejection.
  ended.promise.catch(() => {});
  let cancelling = Promise.resolve();
  const send = transport.send.bind(transport);
  transport.send = (message, options = {}) => {
    const method = !Array.isArray(message) && 'method' in message ? message.method : '';
    if (method === 'notifications/cancelled') {
      const sent = send(message, options);
      cancelling = sent.catch(() => {});
      return sent;
    }
    if (!called.has(method)) return send(message, options);
    const onRequestStreamEnd = () => {
      const fault = { code: 'upstream_unavailable', retryable: true } as const;
      const error = new RemoteFault(
        `The server ${server} closed the connection of the call`,
        fault,
      );
      // The answer may have come with the end.
      setImmediate(() => ended.reject(error));
    };
    return send(message, { ...options, onRequestStreamEnd });
  };
  return { ended: ended.promise, cancelling: () => cancelling };
}

const called = new Set(['tools/call', 'resources/read']);

/**
 * The headers are the server's alone: an authorization server that it names gets none of them. `onToken` hears of each
 * token that is sent, however it was had.
 */
function withHeaders(
  fetch: Transports['fetch'],
  origin: string,
  headers: Readonly<Record<string, string>>,
  onToken: AccountUse['onToken'],
): Transports['fetch'] {
  return (url, init = {}) => {
    if (new URL(url).origin !== origin) return fetch(url, init);
    const sent = new Headers(headers);
    for (const [name, value] of new Headers(init.headers)) sent.set(name, value);
    const token = /^Bearer (.+)$/.exec(sent.get('authorization') ?? '')?.[1];
    if (token !== undefined) onToken?.(token);
    return fetch(url, { ...init, headers: sent })
      .then(withPlainEvents)
      .then(withoutBatch);
  };
}

/**
 * Refuses a batch, which the protocol does not have any more: all its messages would be handled in one turn of the event
 * loop.
 */
async function withoutBatch(response: Response): Promise<Response> {
  if (!/^application\/json/i.test(response.headers.get('content-type') ?? '')) return response;
  const text = await response.text();
  refuseHeavy(text);
  if (text.trimStart().startsWith('[')) {
    throw new RemoteFault('The server answered with a batch of messages, which the protocol lacks');
  }
  const { status, headers } = response;
  return new Response(text === '' ? null : text, { status, headers });
}
