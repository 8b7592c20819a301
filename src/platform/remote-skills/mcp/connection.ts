/** A connection to a server over HTTP, for one refresh or one call: runs share no session. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { aborted } from '../../../kernel/aborted.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import type { AccountTokens } from '../accounts/tokens.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { RemoteSkills } from '../state.ts';
import { type AccountUse, accountProvider } from './account-provider.ts';
import type { ClientCredentials } from './client-credentials.ts';
import { refuseHeavy } from './heavy-messages.ts';
import { withPlainEvents } from './plain-events.ts';
import { type Connection, ServerClient } from './server-client.ts';
import type { McpSecrets } from './settings.ts';

/** Milliseconds for the end of a session. */
const closeMs = 1_000;

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** What connections are made with. */
export interface ConnectionParts {
  readonly fetch: Fetch;
  readonly credentials: ClientCredentials;
  readonly tokens: AccountTokens;
  /** Of the platform. */
  readonly version: string;
  readonly remote: RemoteSkills;
}

export async function connect(
  parts: ConnectionParts,
  source: RemoteSource,
  { url, use }: { readonly url: string; readonly use: AccountUse },
  signal: AbortSignal,
): Promise<Connection> {
  const { headers = {} } = source.secrets as McpSecrets;
  const { version, remote } = parts;
  const client = new ServerClient({ source, version, remote });
  const authProvider = parts.credentials.of(source) ?? accountProvider(parts.tokens, source, use);
  const address = new URL(url);
  const transport = new StreamableHTTPClientTransport(address, {
    fetch: withHeaders(parts.fetch, address.origin, headers, use.onToken),
    ...(authProvider === undefined ? {} : { authProvider }),
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 1,
    },
  });
  client.watch(transport);
  const calls = new CallEnds(transport, source.name);
  const close = async () => {
    // A server of 2025 goes on with a call until it gets the cancellation, which goes out before the connection is closed.
    await withDeadline(calls.cancellationSent(), closeMs);
    if (transport.sessionId !== undefined) {
      const ended = transport.terminateSession().catch(() => {});
      await withDeadline(ended, closeMs);
    }
    await client.sdk.close().catch(() => {});
  };
  try {
    // The SDK does not pass the signal on to all requests of the initialization.
    await Promise.race([client.sdk.connect(transport, { signal }), client.broken, aborted(signal)]);
  } catch (error) {
    await close();
    throw error;
  }
  return { client, broken: Promise.race([client.broken, calls.ended]), close };
}

/** The ends of the calls that a transport sends. */
class CallEnds {
  /** Rejects when the stream of a call ends without the answer to it, which the SDK would wait for until its time is up. */
  readonly ended: Promise<never>;
  #cancelled = Promise.resolve();

  constructor(transport: StreamableHTTPClientTransport, server: string) {
    const ended = Promise.withResolvers<never>();
    // Each request is raced with this promise, and none may read its rejection.
    ended.promise.catch(() => {});
    this.ended = ended.promise;
    const send = transport.send.bind(transport);
    transport.send = (message, options = {}) => {
      const method = !Array.isArray(message) && 'method' in message ? message.method : '';
      if (method === 'notifications/cancelled') {
        const sent = send(message, options);
        this.#cancelled = sent.catch(() => {});
        return sent;
      }
      if (!called.has(method)) return send(message, options);
      const onRequestStreamEnd = () => {
        const fault = { code: 'upstream_unavailable', retryable: true } as const;
        const message = `The server ${server} closed the connection of the call`;
        // The answer may have come with the end.
        setImmediate(() => ended.reject(new RemoteFault(message, fault)));
      };
      return send(message, { ...options, onRequestStreamEnd });
    };
  }

  /** Resolves when the server has the cancellation of the last call, or cannot get it. */
  cancellationSent(): Promise<void> {
    return this.#cancelled;
  }
}

const called = new Set(['tools/call', 'resources/read']);

/**
 * The headers are the server's alone: an authorization server that it names gets none of them. `onToken` gets each
 * token that is sent, whatever its origin.
 */
function withHeaders(
  fetch: Fetch,
  origin: string,
  headers: Readonly<Record<string, string>>,
  onToken: AccountUse['onToken'],
): Fetch {
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
