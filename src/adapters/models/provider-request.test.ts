import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { createBrotliCompress, createDeflate, createGzip } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { requestProvider } from './provider-request.ts';

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function urlOf(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await portOf(createHttpServer(answer))}`;
}

const post = { headers: { authorization: 'Bearer key' }, body: 'What is it?' };
const { signal } = new AbortController();

test('a request is sent as it is given and asks for a body without encoding', async () => {
  const url = await urlOf(async (request, response) => {
    const { authorization, 'accept-encoding': encoding } = request.headers;
    response.writeHead(201, { 'x-request-id': '1', 'set-cookie': ['a=b', 'c=d'] });
    response.end(JSON.stringify([request.method, authorization, encoding, await text(request)]));
  });

  const { status, headers, body } = await requestProvider({ url: url, ...post }, signal);

  expect(JSON.parse(await text(body))).toEqual(['POST', 'Bearer key', 'identity', 'What is it?']);
  expect([status, headers.get('x-request-id'), headers.getSetCookie()]).toEqual([
    ...[201, '1'],
    ['a=b', 'c=d'],
  ]);
});

test.each([
  ['gzip', createGzip],
  ['deflate', createDeflate],
  ['br', createBrotliCompress],
])('a body encoded with %s all the same is decoded as it arrives', async (encoding, create) => {
  const encoder = create();
  const url = await urlOf((_request, response) => {
    response.writeHead(200, { 'content-encoding': encoding });
    encoder.pipe(response);
    encoder.write('one');
    encoder.flush();
  });

  const { body } = await requestProvider({ url: url, ...post }, signal);

  const [first] = await once(body, 'data');
  expect(String(first)).toBe('one');
  encoder.end(' two');
  expect(await text(body)).toBe(' two');
});

test('interim responses are skipped, though no request asks for them', async () => {
  const url = await urlOf((_request, response) => {
    response.writeContinue();
    response.writeEarlyHints({ link: '</a>; rel=preload' });
    response.writeHead(201).end('the answer');
  });

  const { status, body } = await requestProvider({ url: url, ...post }, signal);

  expect([status, await text(body)]).toEqual([201, 'the answer']);
});

test('a redirect is not followed', async () => {
  const url = await urlOf((_request, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end();
  });

  const { status } = await requestProvider({ url: url, ...post }, signal);

  expect(status).toBe(307);
});

test('a request ends at once when its signal aborts while it connects', async () => {
  const silent = createServer((socket) => onTestFinished(() => void socket.destroy()));
  const port = await portOf(silent);
  const abort = new AbortController();

  const asked = requestProvider({ url: `https://127.0.0.1:${port}`, ...post }, abort.signal);
  await once(silent, 'connection');
  abort.abort(new Error('cancelled'));

  await expect(asked).rejects.toThrow('cancelled');
});
