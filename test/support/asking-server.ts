/**
 * Servers of the Model Context Protocol that ask their caller during a call: of the revision 2026-07-28, on the official
 * SDK, and of 2025-11-25, by hand, which hold the call.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { onTestFinished } from 'vitest';
import { echoTool, type McpTestServer, startMcpServer } from './mcp-server.ts';

export const sizeForm = {
  type: 'object' as const,
  properties: {
    size: { type: 'string', title: 'Size', enum: ['s', 'l'] },
    gift: { type: 'boolean', title: 'A gift', default: false },
  },
  required: ['size'],
};
export const sizeQuestion = { message: 'Which size shall it be?', requestedSchema: sizeForm };

export interface AskingServer {
  readonly url: string;
  /** What each call brought. */
  readonly calls: { answers: unknown; state: unknown }[];
  /** What the next first call asks, by key. */
  questions: Record<string, object>;
}

/** Its tool `order` asks first, and returns the answers that it gets with the second call. */
export async function startAskingServer(): Promise<AskingServer> {
  const calls: AskingServer['calls'] = [];
  const make = () => {
    const mcp = new McpServer(
      { name: 'asking', version: '1.0.0' },
      { capabilities: { tools: {} } },
    );
    mcp.server.setRequestHandler('tools/list', () => ({
      tools: [{ name: 'order', description: 'Orders.', inputSchema: { type: 'object' } }],
    }));
    mcp.server.setRequestHandler('tools/call', (request, { mcpReq }) => {
      const { requestState } = request.params as { requestState?: string };
      const answers = mcpReq.inputResponses;
      calls.push({ answers, state: requestState ?? mcpReq.requestState() });
      if (answers === undefined) {
        const inputRequests = Object.fromEntries(
          Object.entries(server.questions).map(([key, params]) => [
            key,
            { method: 'elicitation/create' as const, params },
          ]),
        );
        return inputRequired({ inputRequests: inputRequests as never, requestState: 'state-1' });
      }
      return { content: [], structuredContent: { answers } };
    });
    return mcp;
  };
  const handler = toNodeHandler(createMcpHandler(make));
  const http = createServer((request, response) => void handler(request as never, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  const server = {
    url: `http://127.0.0.1:${port}/mcp`,
    calls,
    questions: { size: { mode: 'form', ...sizeQuestion } } as Record<string, object>,
  };
  return server;
}

export interface HoldingServer extends McpTestServer {
  /** The answers to its questions. */
  readonly answered: unknown[];
  /** The connections of calls that were closed. */
  gone: number;
}

/** Its tool `echo` asks in the middle of each call, and returns the answer. */
export async function startHoldingServer(question: object = sizeQuestion): Promise<HoldingServer> {
  const server = Object.assign(await startMcpServer([echoTool]), {
    answered: [] as unknown[],
    gone: 0,
  });
  const open = new Map<string, (answer: unknown) => void>();
  let asked = 0;
  server.answers['tools/call'] = (_params, { id }, response) => {
    const send = (message: object) =>
      response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    asked += 1;
    const questionId = `q${asked}`;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.on('close', () => {
      server.gone += response.writableFinished ? 0 : 1;
    });
    send({
      method: 'notifications/message',
      params: { level: 'info', logger: 'shop', data: 'asking for the size' },
    });
    open.set(questionId, (answer) => {
      server.answered.push(answer);
      send({ id, result: { content: [], structuredContent: { answer } } });
      response.end();
    });
    send({ id: questionId, method: 'elicitation/create', params: question });
    return undefined;
  };
  server.onAnswer = ({ id, result, error }) => open.get(String(id))?.(result ?? error);
  return server;
}
