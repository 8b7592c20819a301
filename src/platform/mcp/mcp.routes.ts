/** `POST /mcp`, the Model Context Protocol, and the metadata of the credentials that it takes (docs/mcp.md). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import type { Hosts } from '../../adapters/http/hosts.ts';
import { idempotencyKeyOf, onceGiven } from '../../adapters/http/idempotency-key.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { StreamAdmission } from '../../adapters/http/streams.ts';
import { userOf } from '../../adapters/http/user-id.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import type { McpEndpoint } from './endpoint.ts';

/** Of calls and lists of tools, which are most requests. */
const toolMethod = /^(?:tools|tasks|prompts)\/./;
const metadataPath = '/.well-known/oauth-protected-resource';

type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;

/** A hook that refuses a request for its host or origin, or else calls `next`. */
export function refuseHosts(hosts: Hosts, next: Hook): Hook {
  return (request, reply, done) => {
    const { host, origin } = request.headers;
    if (!hosts.isHost(host)) {
      const message = 'This host is not that of the platform: set PUBLIC_URL or MCP_HOSTS';
      void reply.status(403).send(rpcError(serverError, message));
    } else if (!hosts.isOrigin(origin, host)) {
      const message = 'Pages of this origin may not use the platform: set CORS_ORIGINS';
      void reply.status(403).send(rpcError(serverError, message));
    } else next(request, reply, done);
  };
}

interface McpAccess {
  /** The address of the platform as clients reach it, if it is set. */
  readonly publicUrl: string | null;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;
}

/**
 * The routes that need an API key; `openEndpoint` loads the endpoint at its first use, and `streams` admits streams of
 * notifications.
 */
export function mcpRoutes(
  server: Server,
  openEndpoint: () => Promise<McpEndpoint>,
  { publicUrl, stopping }: McpAccess,
  streams: StreamAdmission,
): void {
  server.addHook('onSend', (request, reply, payload, done) => {
    if (reply.statusCode === 401) {
      reply.header(
        'www-authenticate',
        `Bearer resource_metadata="${metadataUrl(request, publicUrl)}"`,
      );
    }
    done(null, reply.statusCode >= 400 ? asJsonRpc(reply.statusCode, payload) : payload);
  });
  const options = { config: acceptingWork, schema: { hide: true, body: {} } };
  server.post('/mcp', options as typeof options & object, async (request, reply) => {
    const { body } = request as { body: unknown };
    if (body === undefined || body === null)
      throw invalid('body', 'is required: a message of JSON-RPC');
    // Many calls in one request would pass the limit of the key; the protocol has no batches any more.
    if (Array.isArray(body)) throw invalid('body', 'must be one message: batches are not served');
    const sender = {
      caller: callerOf(request),
      options: {
        agentId: onceGiven(request, 'x-agent-id'),
        userId: userOf(request),
        idempotencyKey: idempotencyKeyOf(request),
      },
      metadataUrl: metadataUrl(request, publicUrl),
      hasAllVersions: hasAllVersions(request),
      isProse: !toolMethod.test(methodOf(body)),
    };
    const endpoint = await openEndpoint();
    if (methodOf(body) === 'subscriptions/listen') {
      if (stopping.aborted) throw isStopping();
      const signal = streams.begin(request, reply);
      signal.addEventListener('abort', () => void setTimeout(() => reply.raw.destroy(), 500));
    }
    const headers = reply.getHeaders();
    reply.hijack();
    for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value as string);
    await endpoint.answer(request.raw, reply.raw, body, sender);
    return reply;
  });
}

/** `?versions=all` is part of the address of a client's configuration. */
function hasAllVersions({ query }: FastifyRequest): boolean {
  const { versions } = query as { versions?: unknown };
  if (versions === undefined || versions === 'all') return versions === 'all';
  throw invalid('versions', 'must be all, or left out');
}

/** RFC 9728: the metadata of the protected resource, for anyone. */
export function mcpMetadataRoutes(server: Server, publicUrl: string | null, hosts: Hosts): void {
  for (const path of [metadataPath, `${metadataPath}/mcp`]) {
    const onRequest = refuseHosts(hosts, (_request, _reply, done) => done());
    const options = { onRequest, schema: { hide: true } };
    server.get(path, options as typeof options & object, async (request) => ({
      resource: `${baseUrl(request, publicUrl)}/mcp`,
      resource_name: 'Skillwright',
      bearer_methods_supported: ['header'],
    }));
  }
}

function metadataUrl(request: FastifyRequest, publicUrl: string | null): string {
  return `${baseUrl(request, publicUrl)}${metadataPath}/mcp`;
}

function baseUrl({ headers }: FastifyRequest, publicUrl: string | null): string {
  // A hook has refused a request whose host is none.
  return publicUrl ?? (URL.parse(`http://${headers.host}`)?.origin as string);
}

/** The method of a message; empty for a batch and for a body that is no message. */
function methodOf(body: unknown): string {
  return String((body as { method?: unknown }).method ?? '');
}

const isStopping = () =>
  new PlatformError('service_unavailable', 'The platform is stopping', { retryAfter: 1 });

const parseError = -32_700;
const invalidRequest = -32_600;
const serverError = -32_000;

/** A refusal of the platform as an error of JSON-RPC, which has the refusal as its data. */
function asJsonRpc(status: number, payload: unknown): unknown {
  const refusal = JSON.parse(String(payload)) as Refusal;
  if (refusal.jsonrpc !== undefined) return payload;
  const message = refusal.error === 'authentication_required' ? whereKeysGo : refusal.message;
  return JSON.stringify(rpcError(codeOf(status, refusal), message, { ...refusal, message }));
}

interface Refusal {
  readonly jsonrpc?: string;
  readonly error: string;
  readonly message: string;
  readonly details?: readonly { readonly field: string }[];
}

/** A body that is no message is one thing, a header or parameter that is refused another one. */
function codeOf(status: number, { details = [] }: Refusal): number {
  if (status !== 400) return serverError;
  return details.every(({ field }) => field === 'body') ? parseError : invalidRequest;
}

const whereKeysGo = 'Send your API key as Authorization: Bearer, or in the x-api-key header';

function rpcError(code: number, message: string, data?: unknown) {
  return { jsonrpc: '2.0', id: null, error: { code, message, ...(data ? { data } : {}) } };
}
