import { BlockList, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { expectRefusal } from '../../../test/support/expectations.ts';
import { openRaw } from '../../../test/support/raw-http.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createLogger } from '../../kernel/log.ts';
import { ClientAddresses } from './client-address.ts';
import {
  allowLongAnswer,
  allowLongBody,
  type ConnectionLimits,
  countByKey,
} from './connections.ts';
import { Metrics } from './metrics.ts';
import { leaveBodiesUnread, receiveFile } from './receive-file.ts';
import { createServer, type Server } from './server.ts';

const mebibyte = 1024 * 1024;
/** More than the sockets of both sides take. */
const large = Buffer.alloc(24 * mebibyte, 'x');
const hour = 3_600_000;
const patient = {
  perAddress: 100,
  stallMs: hour,
  answerMs: hour,
  uploadMs: hour,
  unreadBytes: 1_000 * mebibyte,
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/** A server with a small answer, a large one, and one that a test gives. */
async function started(limits: Partial<ConnectionLimits>, clients?: ClientAddresses) {
  const server = createServer(
    createLogger('silent'),
    new Metrics({ version: '1.0.0', roles: 'api' }).http,
    { ...patient, ...limits },
    clients,
  );
  let begun = 0;
  let gone = 0;
  let answerLate = () => {};
  const late = new Promise<void>((resolve) => {
    answerLate = resolve;
  });
  server.get('/small', async () => ({ small: true }));
  server.get('/large', async (_request, reply) => {
    begun++;
    return reply.send(large);
  });
  server.get('/streamed', async (_request, reply) => {
    begun++;
    return reply.send(Readable.from(Array.from({ length: 24 }, () => large.subarray(0, mebibyte))));
  });
  server.get('/long', async (_request, reply) => {
    begun++;
    allowLongAnswer(reply.raw);
    const piece = large.subarray(0, 64 * 1024);
    return reply.send(Readable.from(Array.from({ length: 24 * 16 }, () => piece)));
  });
  server.get('/of-a-key', async (request, reply) => {
    countByKey(request.raw, reply.raw);
    begun++;
    await late;
    return { late: true };
  });
  server.get('/late', async (_request, reply) => {
    begun++;
    reply.raw.once('close', () => gone++);
    await late;
    return { late: true };
  });
  server.post('/json', { onRequest: async ({ raw }) => allowLongBody(raw) }, async () => ({}));
  server.register((scope, _options, done) => {
    leaveBodiesUnread(scope as unknown as Server);
    scope.post('/file', async (request, reply) => {
      allowLongBody(request.raw);
      begun++;
      return receiveFile(request, reply, async ({ bytes }) => {
        let length = 0;
        for await (const piece of bytes) length += piece.length;
        return { length };
      }).finally(() => gone++);
    });
    done();
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  cleanups.push(() => {
    answerLate();
    server.server.closeAllConnections();
    return server.close();
  });
  const open = () =>
    new Promise<number>((resolve, reject) =>
      server.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  return { url, open, answerLate: () => answerLate(), begun: () => begun, gone: () => gone };
}

const get = (path: string, ...headers: string[]) =>
  `${[`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`;

/** A client that sends and never reads. */
function unreading(url: string, bytes: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  socket.pause();
  socket.write(bytes);
  cleanups.push(() => socket.destroy());
  return socket;
}

test('a file that does not arrive in its time is refused, and its route notices', async () => {
  const { url, begun, gone } = await started({ uploadMs: 300 });
  const slow = openRaw(url);
  const whole = openRaw(url);
  const head = 'POST /file HTTP/1.1\r\nHost: x\r\ncontent-length: 4\r\n\r\n';
  whole.send(`${head}abcd`);
  slow.send(`${head}ab`);

  const [kept] = await whole.answers(1);
  const [late] = await slow.closed();

  expect(kept).toMatchObject({ status: 200, body: { length: 4 } });
  expectRefusal(late!, 408, 'validation_error');
  await waitFor(() => begun() === 2 && gone() === 2, { describe: 'the body has ended' });
  whole.destroy();
});

test('a client that does not end a body after its refusal is cut', async () => {
  const { url } = await started({ uploadMs: 300 });
  const endless = openRaw(url);
  endless.send(
    `POST /json HTTP/1.1\r\nHost: x\r\ncontent-type: application/json\r\ncontent-length: ${hour}\r\n\r\n`,
  );

  const answers = await endless.closed();

  expect(answers).toHaveLength(1);
  expectRefusal(answers[0]!, 413, 'payload_too_large');
});

test('a client that takes nothing of its answer is cut', async () => {
  const { url, open, begun } = await started({ stallMs: 300 });

  unreading(url, get('/large'));

  await waitFor(() => begun() === 1, { describe: 'the request is handled' });
  await waitFor(async () => (await open()) === 0, { describe: 'the connection is cut' });
});

test('a client that reads a long answer steadily gets all of it, however long that takes', async () => {
  const { url } = await started({ answerMs: 1_000 });

  const socket = unreading(url, get('/long', 'Connection: close'));
  let taken = 0;
  const reading = setInterval(() => {
    taken += socket.read()?.length ?? 0;
  }, 10);
  cleanups.push(() => clearInterval(reading));
  await new Promise((resolve) => socket.once('close', resolve));

  expect(taken).toBeGreaterThan(large.length);
});

test.each(['/large', '/streamed', '/long'])(
  'a client that takes its answer more slowly than it may is cut: %s',
  async (path) => {
    const { url, open, begun } = await started({ answerMs: 300 });

    const socket = unreading(url, get(path));
    const trickle = setInterval(() => socket.read(100), 20);
    cleanups.push(() => clearInterval(trickle));

    await waitFor(() => begun() === 1, { describe: 'the request is handled' });
    await waitFor(async () => (await open()) === 0, { describe: 'the connection is cut' });
  },
);

test('a connection has ten of its pipelined requests handled at a time, and all are answered in order', async () => {
  const { url, begun, answerLate } = await started({});
  const connection = openRaw(url);

  connection.send(get('/late').repeat(100) + get('/small'));

  await waitFor(() => begun() === 10, { describe: 'ten are handled' });
  answerLate();
  const answers = await connection.answers(101);
  expect(answers.slice(0, 100).every(({ body }) => body.late === true)).toBe(true);
  expect(answers[100]?.body).toEqual({ small: true });
  connection.destroy();
});

test('a client that pipelines without reading is cut, and few of its requests are handled', async () => {
  const { url, open, begun } = await started({ stallMs: 300 });

  unreading(url, get('/large').repeat(500));

  await waitFor(() => begun() > 0, { describe: 'a request is handled' });
  await waitFor(async () => (await open()) === 0, { describe: 'the connection is cut' });
  expect(begun()).toBeLessThanOrEqual(10);
});

test('a client that sends too many requests ahead of their answers is cut', async () => {
  const { url, open, begun } = await started({});

  unreading(url, get('/late').repeat(1_500));

  await waitFor(() => begun() === 10, { describe: 'ten are handled' });
  await waitFor(async () => (await open()) === 0, { describe: 'the connection is cut' });
});

test('handlers of pipelined requests learn that their client has gone', async () => {
  const { url, begun, gone } = await started({});
  const connection = openRaw(url);
  connection.send(get('/late').repeat(5));
  await waitFor(() => begun() === 5, { describe: 'all are handled' });

  connection.destroy();

  await waitFor(() => gone() === 5, { describe: 'all responses are closed' });
});

test('unread answers of all clients stay within their bound, the oldest of the greediest address first', async () => {
  const { url, open } = await started({ unreadBytes: 3 * large.length });

  for (let i = 0; i < 8; i++) unreading(url, get('/large'));

  await waitFor(async () => (await open()) === 8, { describe: 'all are connected' });
  await waitFor(async () => (await open()) <= 3, { describe: 'connections are cut' });
});

test('a request that is being handled is not cut, however long that takes', async () => {
  const { url, begun, answerLate } = await started({ stallMs: 100, answerMs: 100 });
  const connection = openRaw(url);
  connection.send(get('/late'));
  await waitFor(() => begun() === 1, { describe: 'the request is handled' });
  // A second client that is cut by the same limits shows that their time has passed.
  const idle = openRaw(url);
  await idle.closed();

  answerLate();

  const [answer] = await connection.answers(1);
  expect(answer?.body).toEqual({ late: true });
  connection.destroy();
});

test('an address has as many connections as it may', async () => {
  const { url, open } = await started({ perAddress: 2 });
  const kept = [openRaw(url), openRaw(url)];
  await waitFor(async () => (await open()) === 2, { describe: 'both are connected' });

  const third = openRaw(url);

  expect(await third.closed()).toEqual([]);
  for (const connection of kept) {
    connection.send(get('/small'));
    expect((await connection.answers(1))[0]?.status).toBe(200);
    connection.destroy();
  }
  await waitFor(async () => (await open()) === 0, { describe: 'both have gone' });
  const next = openRaw(url);
  next.send(get('/small'));
  expect((await next.answers(1))[0]?.status).toBe(200);
  next.destroy();
});

test('a connection with a request of a valid key does not count for its address', async () => {
  const { url, open, begun, answerLate } = await started({ perAddress: 1 });
  const ofKey = openRaw(url);
  ofKey.send(get('/of-a-key'));
  await waitFor(() => begun() === 1, { describe: 'the request is handled' });

  const second = openRaw(url);
  second.send(get('/small'));
  expect((await second.answers(1))[0]?.status).toBe(200);
  const third = openRaw(url);
  expect(await third.closed()).toEqual([]);

  second.destroy();
  await waitFor(async () => (await open()) === 1, { describe: 'the second has gone' });
  answerLate();
  await ofKey.answers(1);
  // Without a request it counts again.
  expect(await openRaw(url).closed()).toEqual([]);
  ofKey.destroy();
});

describe('through a trusted proxy', () => {
  const proxies = new BlockList();
  proxies.addAddress('127.0.0.1');
  const clients = new ClientAddresses(proxies);
  const by = (client: string) => `x-forwarded-for: ${client}`;

  test('each client has as many requests under way as it may, on any connection', async () => {
    const { url, begun, answerLate } = await started({ perAddress: 2 }, clients);
    const connections = Array.from({ length: 5 }, () => openRaw(url));
    for (const one of connections.slice(0, 2)) one.send(get('/late', by('203.0.113.1')));
    await waitFor(() => begun() === 2, { describe: 'both are handled' });

    const [, , refused, other] = connections;
    refused?.send(get('/small', by('203.0.113.1')));
    other?.send(get('/small', by('203.0.113.2')));

    const [refusal] = (await refused?.answers(1)) ?? [];
    expectRefusal(refusal!, 503, 'service_unavailable');
    expect(refusal?.body.message).toContain('2 requests of one address');
    expect((await other?.answers(1))?.[0]?.status).toBe(200);
    answerLate();
    for (const one of connections.slice(0, 2)) await one.answers(1);
    refused?.send(get('/small', by('203.0.113.1')));
    expect((await refused?.answers(2))?.[1]?.status).toBe(200);
    for (const one of connections) one.destroy();
  });

  test('requests of a valid key do not count for the address of their client', async () => {
    const { url, begun, answerLate } = await started({ perAddress: 1 }, clients);
    const connections = Array.from({ length: 3 }, () => openRaw(url));
    for (const [i, one] of connections.slice(0, 2).entries()) {
      one.send(get('/of-a-key', by('203.0.113.1')));
      await waitFor(() => begun() === i + 1, { describe: 'the request is handled' });
    }

    connections[2]?.send(get('/small', by('203.0.113.1')));

    expect((await connections[2]?.answers(1))?.[0]?.status).toBe(200);
    answerLate();
    for (const one of connections) one.destroy();
  });
});
