/** Messages of the Model Context Protocol to a platform, by hand: one request, one answer with its notifications. */
import type { Platform } from './platform.ts';

const version = '2026-07-28';

export interface McpAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of many shapes
  readonly result: any;
  readonly error: { code: number; message: string; data?: Record<string, unknown> } | undefined;
  readonly notifications: readonly { method: string; params: Record<string, unknown> }[];
}

export interface McpRequest {
  readonly headers?: Record<string, string>;
  /** What the client can do. */
  readonly capabilities?: object;
  /** Further fields of `_meta`. */
  readonly meta?: Record<string, unknown>;
  /** Of the endpoint, `/mcp` when left out. */
  readonly path?: string;
  /** Ends the request. */
  readonly signal?: AbortSignal;
  /** A client of the revision 2025-11-25 sends no `_meta`. */
  readonly isOld?: boolean;
}

/** The response to a request, before it is read. */
export async function sendMcp(
  { url }: Pick<Platform, 'url'>,
  key: string,
  method: string,
  params: Record<string, unknown> = {},
  { headers, capabilities = {}, meta, path = '/mcp', signal, isOld = false }: McpRequest = {},
): Promise<Response> {
  const name = params['name'] ?? params['uri'] ?? params['taskId'];
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    'io.modelcontextprotocol/clientInfo': { name: 'a test', version: '1' },
  };
  return fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': isOld ? '2025-11-25' : version,
      ...(isOld ? {} : { 'mcp-method': method }),
      ...(isOld || name === undefined ? {} : { 'mcp-name': String(name) }),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method,
      params: { ...params, _meta: { ...(isOld ? {} : envelope), ...meta } },
    }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** As `sendMcp`, with the answer read to its end. */
export async function askMcp(...request: Parameters<typeof sendMcp>): Promise<McpAnswer> {
  const response = await sendMcp(...request);
  const text = await response.text();
  const messages = text.startsWith('{')
    ? [JSON.parse(text)]
    : [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? ''));
  const answer = messages.find((message) => 'result' in message || 'error' in message);
  return {
    status: response.status,
    headers: response.headers,
    result: answer?.result,
    error: answer?.error,
    notifications: messages.filter((message) => message !== answer),
  };
}
