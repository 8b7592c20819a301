import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { waitFor } from './wait-for.ts';

/** A store that gives back what it gets, and what it has got so far. */
let got: string;
let storeSockets: Set<Socket>;
let closeStore: () => Promise<void>;
let proxy: TcpProxy;
const clients: Socket[] = [];

beforeEach(async () => {
  got = '';
  storeSockets = new Set();
  const store = createServer((socket) => {
    storeSockets.add(socket);
    socket.on('error', () => {}).on('close', () => storeSockets.delete(socket));
    socket.on('data', (bytes) => {
      got += bytes.toString();
      socket.write(bytes);
    });
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  const { port } = store.address() as AddressInfo;
  closeStore = () =>
    new Promise((resolve) => {
      store.close(() => resolve());
      for (const socket of storeSockets) socket.destroy();
    });
  proxy = await startTcpProxy(() => port);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  proxy.close();
  await closeStore();
});

interface Client {
  readonly socket: Socket;
  /** What has come back. */
  heard(): string;
  says(text: string): void;
  /** Waits for an answer; how long it took. */
  hears(text: string): Promise<number>;
}

async function open(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    text += bytes.toString();
  });
  await once(socket, 'connect');
  return {
    socket,
    heard: () => text,
    says: (words) => void socket.write(words),
    async hears(words) {
      const began = performance.now();
      await waitFor(() => text.includes(words), { describe: `the answer ${words}`, everyMs: 1 });
      return performance.now() - began;
    },
  };
}

/** Resolves when the connection has come to an end, with the error's code if it was broken. */
function ended({ socket }: Client): Promise<string | undefined> {
  return new Promise((resolve) => {
    let code: string | undefined;
    socket.once('error', (error: NodeJS.ErrnoException) => {
      code = error.code;
    });
    socket.once('close', () => resolve(code));
  });
}

async function refusedWith(): Promise<string | undefined> {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  return await new Promise((resolve) => {
    socket.once('connect', () => resolve(undefined));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });
}

describe('in order', () => {
  test('it carries both ways, whole and in sequence', async () => {
    const client = await open();
    const text = Array.from({ length: 200_000 }, (_, i) => `${i};`).join('');

    client.says(text);

    await client.hears('199999;');
    expect(client.heard()).toBe(text);
    expect(proxy.connections()).toBe(1);
  });

  test('the end of one side reaches the other', async () => {
    const client = await open();
    client.says('a');
    await client.hears('a');

    for (const socket of storeSockets) socket.end();

    expect(await ended(client)).toBe(undefined);
    await waitFor(() => proxy.connections() === 0, { describe: 'the pair is gone' });
  });

  test('a break of one side reaches the other', async () => {
    const client = await open();
    client.says('a');
    await client.hears('a');
    const broken = ended(client);

    for (const socket of storeSockets) socket.resetAndDestroy();

    expect(await broken).toBe('ECONNRESET');
  });

  test('a store that is not there breaks the connection', async () => {
    await closeStore();
    const client = await open();

    expect(await ended(client)).toBe('ECONNRESET');
  });
});

describe('a disorder', () => {
  test('delays each way, and keeps the order', async () => {
    const client = await open();
    proxy.delay(100);

    client.says('one');
    const first = client.hears('one');
    await waitFor(() => got === 'one', { describe: 'it is half way' });
    client.says('two');

    expect(await first).toBeGreaterThanOrEqual(190);
    await client.hears('two');
    expect(client.heard()).toBe('onetwo');
  });

  test('delays one way alone', async () => {
    const client = await open();
    proxy.delay(200, 'answers');

    client.says('one');
    const answered = client.hears('one');
    await waitFor(() => got === 'one', { describe: 'it is half way', deadlineMs: 150 });

    expect(await answered).toBeGreaterThanOrEqual(190);
  });

  test('throttles', async () => {
    const client = await open();
    proxy.throttle(100_000);

    const began = performance.now();
    client.says(`${'x'.repeat(50_000)}.`);
    await client.hears('.');

    expect(performance.now() - began).toBeGreaterThanOrEqual(400);
  });

  test('holds everything back, and gives it when it heals', async () => {
    const client = await open();
    proxy.hold();
    client.says('held');
    const other = await open();
    other.says(' too');
    await waitFor(() => proxy.connections() === 2, { describe: 'both are open' });
    expect(got).toBe('');

    await proxy.heal();

    await client.hears('held');
    await other.hears(' too');
  });

  test('swallows without a word, and such a connection stays dead when it heals', async () => {
    const client = await open();
    const silent = await open();
    proxy.swallow();
    client.says('lost');
    const late = await open();
    late.says('lost as well');
    // Half-open: neither the end nor a break of the other side is heard of.
    await waitFor(() => storeSockets.size === 3, { describe: 'the store has all three' });
    for (const socket of storeSockets) socket.resetAndDestroy();
    await waitFor(() => storeSockets.size === 0, { describe: 'the store has let go' });

    await proxy.heal();
    client.says('still lost');
    late.says('still lost');
    const fresh = await open();
    fresh.says('fresh');

    await fresh.hears('fresh');
    expect(got).toBe('fresh');
    expect([client, late, silent].map(({ socket }) => socket.destroyed)).toEqual(
      Array(3).fill(false),
    );
    expect(client.heard() + late.heard()).toBe('');
  });

  test('refuses new connections while the old go on, and takes them again when it heals', async () => {
    const client = await open();
    proxy.refuse();

    expect(await refusedWith()).toBe('ECONNREFUSED');
    client.says('still here');
    await client.hears('still here');

    await proxy.heal();
    const other = await open();
    other.says('welcome');
    await other.hears('welcome');
  });

  test('cuts all connections, and takes new ones', async () => {
    const open3 = [await open(), await open(), await open()];
    for (const client of open3) client.says('a');
    await waitFor(() => got === 'aaa', { describe: 'all are open' });
    const broken = open3.map(ended);

    proxy.cut();

    expect(await Promise.all(broken)).toEqual(Array(3).fill('ECONNRESET'));
    const other = await open();
    other.says('new');
    await other.hears('new');
  });
});
