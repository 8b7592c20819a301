/**
 * A server of the Model Context Protocol whose every answer a test decides: the revision 2025-11-25, over HTTP, by
 * hand, so that it can break any rule.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

export interface ScriptedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: object;
  readonly outputSchema?: object;
  readonly annotations?: object;
}

interface Message {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** Answers a request; undefined leaves it unanswered. */
type Answer = (
  params: Record<string, unknown>,
  message: Message,
  response: ServerResponse,
) => unknown;

export interface McpTestServer {
  readonly url: string;
  tools: ScriptedTool[];
  /** Answers of methods, instead of the usual ones. */
  readonly answers: Record<string, Answer>;
  /** The methods that were asked, with the names of tools. */
  readonly asked: string[];
  readonly headers: IncomingMessage['headers'][];
  /** Answers of other paths than that of the protocol, as JSON. */
  readonly paths: Record<string, (body: string, request: IncomingMessage) => unknown>;
  /** Gets the answers to what the server has asked its client. */
  onAnswer: (answer: { id?: unknown; result?: unknown; error?: unknown }) => void;
  /** Looks at each request of the protocol first; true if it has answered. */
  guard: (request: IncomingMessage, response: ServerResponse) => boolean;
  stop(): Promise<void>;
}

const anyInput = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

/** A tool that echoes its text. */
export const echoTool: ScriptedTool = {
  name: 'echo',
  description: 'Echoes.',
  inputSchema: anyInput,
};

export async function startMcpServer(tools: ScriptedTool[] = [echoTool]): Promise<McpTestServer> {
  const http = createServer((request, response) => {
    void handle(server, request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const stop = async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  const server: McpTestServer = {
    ...{ url: `http://127.0.0.1:${port}/mcp`, tools, answers: {}, asked: [], headers: [], stop },
    ...{ paths: {}, guard: () => false, onAnswer: () => {} },
  };
  onTestFinished(async () => {
    if (http.listening) await stop();
  });
  return server;
}

async function handle(
  server: McpTestServer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.on('error', () => {});
  const { pathname } = new URL(request.url ?? '/', server.url);
  const path = server.paths[pathname];
  if (path !== undefined) return sendJson(response, path(await text(request), request));
  if (server.guard(request, response)) return;
  if (pathname !== '/mcp') return void response.writeHead(404).end();
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const message = JSON.parse(await text(request)) as Message;
  server.headers.push(request.headers);
  const { method, params = {}, id } = message;
  if (method === undefined) {
    server.onAnswer(message as object);
    return void response.writeHead(202).end();
  }
  server.asked.push(method === 'tools/call' ? `${method} ${params['name']}` : method);
  const answer = server.answers[method];
  if (id === undefined) return void response.writeHead(202).end();
  const result = await (answer ?? usual(server, method))?.(params, message, response);
  if (result === undefined || response.headersSent) return;
  const isWhole = typeof result === 'object' && result !== null && 'jsonrpc' in result;
  sendJson(response, isWhole ? result : { jsonrpc: '2.0', id, result });
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function usual(server: McpTestServer, method: string): Answer {
  const known: Record<string, Answer> = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'scripted', version: '1.0.0' },
    }),
    'tools/list': () => ({
      tools: server.tools.map((tool) => ({ inputSchema: { type: 'object' }, ...tool })),
    }),
    'tools/call': ({ arguments: input }) => ({
      content: [{ type: 'text', text: (input as { text?: string }).text ?? '' }],
    }),
  };
  const unknown: Answer = (_params, { id }) => ({
    ...{ jsonrpc: '2.0', id },
    error: { code: -32_601, message: `There is no ${method}` },
  });
  return known[method] ?? unknown;
}
