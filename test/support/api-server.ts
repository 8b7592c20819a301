/** A service with an HTTP API, every answer of which a test decides. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

export interface ReceivedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface ApiServer {
  readonly url: string;
  readonly received: ReceivedRequest[];
  /** Answers a request; the default is 200 with `{}`. */
  answer: (request: ReceivedRequest, response: ServerResponse) => void;
}

/** Answers with JSON. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** Ends with its test. */
export async function startApiServer(): Promise<ApiServer> {
  const http = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const received = { method, url, headers, body: await text(request) };
    server.received.push(received);
    server.answer(received, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const server: ApiServer = {
    url: `http://127.0.0.1:${port}`,
    received: [],
    answer: (_request, response) => sendJson(response, 200, {}),
  };
  onTestFinished(async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  });
  return server;
}
