/**
 * Stops a server gracefully: it accepts no new connections, every answer announces that its connection
 * closes, idle connections are closed, and the remaining ones are cut at the deadline.
 *
 * To Node, a connection is idle while no byte of a request has been read from it. This includes a
 * connection that was just accepted, and one whose next request is under way. Node closes both with the
 * idle ones and with the server. So the drain first waits until requests under way have arrived.
 */
import { type Socket, Server as TcpServer } from 'node:net';
import { setTimeout as elapsed, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Server } from './server.ts';

const closeIdleEveryMs = 50;
/** The time for requests that are under way when the server stops listening to arrive. */
const arrivalMs = 250;
/** The time for the first request of a connection, from its beginning. */
const firstRequestMs = 1_000;
const checkEveryMs = 10;

interface DrainOptions {
  readonly deadlineMs: number;
  /**
   * Milliseconds to keep listening and announce `Connection: close` before the listener closes. Set when another process
   * takes over the address; null otherwise.
   */
  readonly announceMs: number | null;
}

/** Made before the server listens. */
export class Drain {
  readonly #server: Server;
  readonly #open = new Map<Socket, number>();
  #isDraining = false;

  constructor(server: Server) {
    this.#server = server;
    server.server.on('connection', (socket: Socket) => {
      this.#open.set(socket, performance.now());
      socket.once('close', () => this.#open.delete(socket));
    });
    server.addHook('onSend', (_request, reply, payload, done) => {
      if (this.#isDraining) reply.header('connection', 'close');
      done(null, payload);
    });
  }

  /** Drains the server within `deadlineMs`. */
  async drain({ deadlineMs, announceMs }: DrainOptions): Promise<void> {
    this.#isDraining = true;
    const http = this.#server.server;
    const deadline = setTimeout(() => http.closeAllConnections(), deadlineMs);
    if (announceMs !== null) await closed([...this.#open.keys()], Math.min(announceMs, deadlineMs));
    // Closing the listener loses connections that wait to be accepted; right after a turn there are the fewest.
    await yieldToEventLoop();
    // Closes only the listener.
    TcpServer.prototype.close.call(http);
    if (announceMs !== null) await arrived(this.#open);
    else await elapsed(Math.min(arrivalMs, deadlineMs));
    const idle = setInterval(() => http.closeIdleConnections(), closeIdleEveryMs);
    try {
      await this.#server.close();
    } finally {
      clearInterval(idle);
      clearTimeout(deadline);
    }
  }
}

/** Waits until these connections are closed, or the time is over. */
function closed(connections: readonly Socket[], withinMs: number): Promise<void> {
  return until(() => connections.every(({ destroyed }) => destroyed), withinMs);
}

/** Waits for the first request of each connection that is new. */
async function arrived(open: ReadonlyMap<Socket, number>): Promise<void> {
  const isAwaited = ([socket, since]: [Socket, number]) =>
    socket.bytesRead === 0 && performance.now() - since < firstRequestMs;
  // Connections that were accepted in this turn are known in the next one.
  await elapsed(checkEveryMs);
  await until(() => ![...open].some(isAwaited), firstRequestMs);
}

async function until(isTrue: () => boolean, withinMs: number): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!isTrue() && performance.now() < endsAt) await elapsed(checkEveryMs);
}
