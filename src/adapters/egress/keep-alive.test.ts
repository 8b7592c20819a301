import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  authority,
  type Receiver,
  receiveHttp,
  receiveHttps,
} from '../../../test/fixtures/receiver/receiver.ts';
import { parseAllowList } from './allow-list.ts';
import { EgressError } from './egress-error.ts';
import { Egress, type EgressOptions } from './guarded-fetch.ts';

const limits = { maxBytes: 1_000, timeoutMs: 5_000, method: 'POST', body: 'grüße' };
const keepAlive = { idleMs: 3_000, connectionsMax: 10 };
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function keeping(options: Partial<EgressOptions> = {}): Egress {
  const opened = new Egress({
    allowed: parseAllowList('127.0.0.0/8'),
    schemes: ['https:', 'http:'],
    ca: authority,
    resolve: async () => ['127.0.0.1'],
    keepAlive,
    ...options,
  });
  closers.push(() => opened.close());
  return opened;
}

interface Counting extends Receiver {
  /** Requests that were read to their end. */
  requests(): number;
  /** The TCP connections that are open, oldest first. */
  open(): readonly Socket[];
}

/** A receiver that does not close connections by itself, nor announces that it would. */
async function counting(
  handler: RequestListener = (_request, response) => response.end('ok'),
  receive: typeof receiveHttp | typeof receiveHttps = receiveHttp,
): Promise<Counting> {
  let requests = 0;
  const sockets = new Set<Socket>();
  const made = await receive((request, response) => {
    // Over TLS the request has the secured socket; the bare one is what can be reset.
    const bare = (request.socket as Socket & { _parent?: Socket })._parent ?? request.socket;
    if (!sockets.has(bare)) bare.once('close', () => sockets.delete(bare));
    sockets.add(bare);
    request.resume().on('end', () => {
      requests += 1;
      response.sendDate = false;
      handler(request, response);
    });
  });
  closers.push(made.close);
  return { ...made, requests: () => requests, open: () => [...sockets] };
}

/** Ways in which a receiver gets rid of a connection, each over HTTP and over TLS. */
const goodbyes: [string, (socket: Socket) => void][] = [
  ['closed', (socket) => socket.end()],
  ['destroyed', (socket) => socket.destroy()],
  ['reset', (socket) => socket.resetAndDestroy()],
];
const farewells = [receiveHttp, receiveHttps].flatMap((receive) =>
  goodbyes.map(([how, leave]) => ({ how, leave, receive, name: receive.name })),
);

describe('a connection that is kept', () => {
  test.each([
    { scheme: 'http', receive: receiveHttp },
    { scheme: 'https', receive: receiveHttps },
  ])('serves the next request too ($scheme)', async ({ receive }) => {
    const receiver = await counting(undefined, receive);
    const opened = keeping();

    for (let i = 0; i < 5; i += 1) {
      expect((await opened.request(receiver.origin, limits)).status).toBe(200);
    }

    expect([receiver.requests(), receiver.connections()]).toEqual([5, 1]);
  });

  test('ends when it has been idle for its time, also when the receiver announces a longer one', async () => {
    const receiver = await counting((_request, response) =>
      response.setHeader('keep-alive', 'timeout=600').end(),
    );
    const opened = keeping({ keepAlive: { ...keepAlive, idleMs: 50 } });

    await opened.request(receiver.origin, limits);

    await expect.poll(() => receiver.open().length).toBe(0);
  });

  test('ends at once when the receiver announces that it soon would', async () => {
    const receiver = await counting((_request, response) =>
      response.setHeader('keep-alive', 'timeout=1').end(),
    );
    const opened = keeping();

    await opened.request(receiver.origin, limits);
    await opened.request(receiver.origin, limits);

    expect(receiver.connections()).toBe(2);
  });

  test('takes no further request when it is a minute old, however busy it was', async () => {
    const receiver = await counting();
    const opened = keeping();
    vi.useFakeTimers({ toFake: ['Date'] });
    closers.push(async () => void vi.useRealTimers());

    for (const afterMs of [0, 59_000, 2_000, 59_000]) {
      vi.setSystemTime(Date.now() + afterMs);
      await opened.request(receiver.origin, limits);
    }

    expect([receiver.requests(), receiver.connections()]).toEqual([4, 2]);
    await expect.poll(() => receiver.open().length).toBe(1);
  });

  test('ends when the client is closed', async () => {
    const receiver = await counting();
    const opened = keeping();

    await opened.request(receiver.origin, limits);
    await opened.close();

    await expect.poll(() => receiver.open().length).toBe(0);
  });

  test('is one of as many as are allowed, and further requests wait for one', async () => {
    let most = 0;
    const receiver = await counting((_request, response) => {
      most = Math.max(most, receiver.open().length);
      setImmediate(() => response.end());
    });
    const opened = keeping({ keepAlive: { ...keepAlive, connectionsMax: 3 } });

    await Promise.all(Array.from({ length: 30 }, () => opened.request(receiver.origin, limits)));

    expect(receiver.requests()).toBe(30);
    expect(receiver.connections()).toBeLessThanOrEqual(3);
    expect(most).toBe(3);
  });

  test('leads to its first address; the address of the next one is checked again', async () => {
    const receiver = await counting();
    const answers = [['127.0.0.1'], ['10.0.0.1']];
    const opened = keeping({ resolve: async () => answers.shift() ?? [] });
    const url = `http://rebind.test:${receiver.port}/`;

    await opened.request(url, limits);
    await opened.request(url, limits);
    for (const socket of receiver.open()) socket.destroy();
    const error = await opened.request(url, limits).catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(EgressError);
    expect(error).toMatchObject({ code: 'blocked_address', sent: false });
    expect([receiver.requests(), receiver.connections()]).toEqual([2, 1]);
  });
});

describe('a kept connection that the receiver has left', () => {
  test.each(farewells)('does not fail the next request ($how, $name)', async (farewell) => {
    const receiver = await counting(undefined, farewell.receive);
    const opened = keeping();
    await opened.request(receiver.origin, limits);

    // In one turn of the event loop, so that this side cannot have noticed.
    for (const socket of receiver.open()) farewell.leave(socket);
    const answer = await opened.request(receiver.origin, limits);

    expect(answer.status).toBe(200);
    expect([receiver.requests(), receiver.connections()]).toEqual([2, 2]);
  });

  test.each(farewells)('fails none of many ($how, $name)', async (farewell) => {
    const receiver = await counting(undefined, farewell.receive);
    const opened = keeping();
    const many = () =>
      Promise.all(Array.from({ length: 10 }, () => opened.request(receiver.origin, limits)));
    await many();

    for (const socket of receiver.open()) farewell.leave(socket);
    const answers = await many();

    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(receiver.requests()).toBe(20);
  });

  test.each(farewells.filter(({ how }) => how !== 'closed'))(
    'fails the request that it has taken, which is not sent again ($how, $name)',
    async ({ leave, receive }) => {
      const receiver = await counting((_request, response) => {
        if (receiver.requests() === 1) response.end();
        else for (const socket of receiver.open()) leave(socket);
      }, receive);
      const opened = keeping();
      await opened.request(receiver.origin, limits);

      const error = await opened
        .request(receiver.origin, limits)
        .catch((reason: unknown) => reason);

      expect(error).toMatchObject({ code: 'connection', sent: true, status: null });
      expect(receiver.requests()).toBe(2);
    },
  );
});

describe('a request over kept connections', () => {
  test('that is broken off before it begins is not sent', async () => {
    const receiver = await counting();
    const opened = keeping();
    await opened.request(receiver.origin, limits);
    const giveUp = new AbortController();

    const request = opened.request(receiver.origin, { ...limits, signal: giveUp.signal });
    giveUp.abort();
    const error = await request.catch((reason: unknown) => reason);
    await opened.request(receiver.origin, limits);

    expect(error).toMatchObject({ code: 'aborted' });
    expect(receiver.requests()).toBe(2);
  });

  test('that cannot be sent fails as one over a connection of its own', async () => {
    const { origin, connections } = await counting();
    const opened = keeping();

    const error = await opened
      .request(origin, { ...limits, headers: { 'x-a': 'b\r\nc: d' } })
      .catch((reason: unknown) => reason);

    expect(error).toMatchObject({ code: 'invalid_request', sent: false });
    expect(connections()).toBe(0);
  });

  test('fails when the client was closed', async () => {
    const receiver = await counting();
    const opened = keeping();
    await opened.request(receiver.origin, limits);

    const failed = opened.request(receiver.origin, limits).catch((reason: unknown) => reason);
    await opened.close();

    expect(await failed).toBeInstanceOf(EgressError);
    expect(receiver.requests()).toBe(1);
  });
});
