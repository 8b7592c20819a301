/**
 * Stops a server gracefully: it accepts no new connections, every answer announces that its connection
 * closes, idle connections are closed, and the remaining ones are cut at the deadline.
 *
 * To Node, a connection is idle while no byte of a request has been read from it. This includes a
 * connection that was just accepted, and one whose next request is under way. Node closes both with the
 * idle ones and with the server. So the drain first waits until requests under way have arrived.
 */
import { Server as TcpServer } from 'node:net';
import { setTimeout as elapsed, setImmediate as nextTurn } from 'node:timers/promises';
import type { Server } from './server.ts';

const closeIdleEveryMs = 50;
/** The time for requests that are under way when the server stops listening to arrive. */
const arrivalMs = 250;

/** Drains within `deadlineMs`. */
export type Drain = (deadlineMs: number) => Promise<void>;

/** Call it before `listen`. */
export function prepareDrain(server: Server): Drain {
  let draining = false;
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (draining) reply.header('connection', 'close');
    done(null, payload);
  });
  return async (deadlineMs) => {
    draining = true;
    const http = server.server;
    const deadline = setTimeout(() => http.closeAllConnections(), deadlineMs);
    // Closing the listener loses connections that wait to be accepted; after a turn there are the fewest.
    await nextTurn();
    // Closes only the listener.
    TcpServer.prototype.close.call(http);
    await elapsed(Math.min(arrivalMs, deadlineMs));
    const idle = setInterval(() => http.closeIdleConnections(), closeIdleEveryMs);
    try {
      await server.close();
    } finally {
      clearInterval(idle);
      clearTimeout(deadline);
    }
  };
}
