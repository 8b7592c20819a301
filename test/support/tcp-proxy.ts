/**
 * A TCP proxy between a process and a store, to do to their connections what networks do: delay,
 * throttle, hold, black-hole, cut, refuse. Each disorder holds for the connections that are open and
 * for those to come, until `heal`.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from './wait-for.ts';

/** Bytes in flight in one direction; a sender of more has to wait. */
const underWayMax = 1024 * 1024;
const lookEveryMs = 5;

type Way = 'requests' | 'answers' | 'both';

export interface TcpProxy {
  readonly port: number;
  /** Client connections that are open through it. */
  connections(): number;
  /** Every byte arrives this much later: of what the client sends, of what it is answered, or of both. */
  delay(ms: number, of?: Way): void;
  /** At most so many bytes a second of each connection in each direction. */
  throttle(bytesPerSecond: number): void;
  /** Nothing gets through until `heal`, and then everything does: a network that was away. */
  hold(): void;
  /**
   * What is sent is lost, while the connections stay open: half-open ones, as a firewall leaves that
   * has forgotten them. A connection that sent anything gets no answer any more, after `heal` neither; only a
   * new connection helps.
   */
  swallow(): void;
  /** New connections are refused; those that are open go on. */
  refuse(): void;
  /** Resets all connections that are open. */
  cut(): void;
  /** Ends every disorder. */
  heal(): Promise<void>;
  /** Resets what is open and takes nothing more. */
  close(): void;
}

interface Disorder {
  delayMs: number;
  delayed: Way;
  bytesPerSecond: number;
  isHeld: boolean;
  isSwallowing: boolean;
}

const order: Readonly<Disorder> = {
  delayMs: 0,
  delayed: 'both',
  bytesPerSecond: Number.POSITIVE_INFINITY,
  isHeld: false,
  isSwallowing: false,
};

/** Starts a proxy on a free port of the loopback device to `target`, which is asked at each connection. */
export async function startTcpProxy(target: () => number): Promise<TcpProxy> {
  const disorder: Disorder = { ...order };
  const pairs = new Set<Pair>();
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const pair = joined(client, target(), disorder, () => pairs.delete(pair));
    pairs.add(pair);
  });
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  // Its callback would come only when the connections that are open have ended, and they are to stay.
  const stopListening = () => void (server.listening && server.close());
  const cut = () => {
    for (const pair of pairs) pair.reset();
  };
  return {
    port,
    connections: () => [...pairs].filter((pair) => pair.isOpen()).length,
    delay(ms, of = 'both') {
      disorder.delayMs = ms;
      disorder.delayed = of;
    },
    throttle(bytesPerSecond) {
      disorder.bytesPerSecond = bytesPerSecond;
    },
    hold() {
      disorder.isHeld = true;
    },
    swallow() {
      disorder.isSwallowing = true;
    },
    refuse: stopListening,
    cut,
    async heal() {
      Object.assign(disorder, order);
      if (server.listening) return;
      await waitFor(() => listen(server, port).then(() => true), {
        describe: `port ${port} is free again`,
      });
    },
    close() {
      stopListening();
      cut();
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

interface Pair {
  /** Whether the client's side is open. */
  isOpen(): boolean;
  reset(): void;
}

/** Joins a client to the target through two lines; the end of one side is told to the other. */
function joined(client: Socket, port: number, disorder: Disorder, onGone: () => void): Pair {
  const store = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  const fate = { isDead: false };
  for (const [from, to, way] of [
    [client, store, 'requests'],
    [store, client, 'answers'],
  ] as const) {
    from.on('error', () => {});
    const delayMs = () => ([way, 'both'].includes(disorder.delayed) ? disorder.delayMs : 0);
    carry(from, to, disorder, delayMs, fate).catch(() => {});
    from.on('close', () => {
      fate.isDead ||= disorder.isSwallowing;
      if (!fate.isDead) to.resetAndDestroy();
      if (to.destroyed) onGone();
    });
  }
  return {
    isOpen: () => !client.destroyed,
    reset() {
      client.resetAndDestroy();
      store.resetAndDestroy();
    },
  };
}

/** What became of a connection: once something of it was lost, it carries nothing any more. */
interface Fate {
  isDead: boolean;
}

/** Carries what one side sends to the other, in order, as late as the disorder wants, its delay of this way being `delayMs`. */
async function carry(
  from: Socket,
  to: Socket,
  disorder: Disorder,
  delayMs: () => number,
  fate: Fate,
): Promise<void> {
  const underWay: { readonly bytes: Buffer; readonly arrived: number }[] = [];
  let size = 0;
  let hasEnded = false;
  let wake = () => {};
  from.on('data', (bytes: Buffer) => {
    fate.isDead ||= disorder.isSwallowing;
    if (fate.isDead) return;
    underWay.push({ bytes, arrived: performance.now() });
    size += bytes.length;
    if (size > underWayMax) from.pause();
    wake();
  });
  const end = () => {
    hasEnded = true;
    wake();
  };
  from.on('end', end).on('close', end);

  while (!to.destroyed) {
    const next = underWay.shift();
    if (next === undefined) {
      if (hasEnded) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    await until(() => performance.now() >= next.arrived + delayMs() && !disorder.isHeld, to);
    await write(next.bytes, to, disorder);
    size -= next.bytes.length;
    if (size <= underWayMax) from.resume();
  }
  fate.isDead ||= disorder.isSwallowing;
  if (!fate.isDead) to.end();
}

async function write(bytes: Buffer, to: Socket, disorder: Disorder): Promise<void> {
  let from = 0;
  while (from < bytes.length && !to.destroyed) {
    const rate = disorder.bytesPerSecond;
    // A tenth of a second's worth at a time, or all of it.
    const length = rate === Number.POSITIVE_INFINITY ? bytes.length : Math.ceil(rate / 10);
    const isTaken = to.write(bytes.subarray(from, from + length));
    from += length;
    if (!isTaken) await Promise.race([once(to, 'drain'), once(to, 'close')]);
    if (rate !== Number.POSITIVE_INFINITY) await pause(100);
  }
}

/** Waits for what may change at any time; gives up with the connection. */
async function until(isTrue: () => boolean, to: Socket): Promise<void> {
  while (!isTrue() && !to.destroyed) await pause(lookEveryMs);
}
