/**
 * Stops a server without cutting anybody off: no new connections, every answer says that its
 * connection closes, idle connections are closed, and what is left at the deadline is cut.
 *
 * To Node a connection is idle while no byte of a request has been read from it. That is true as well
 * of one that has only just been accepted, and of one whose next request is on its way; Node closes
 * both when it is told to close idle ones, and when it closes the server. So it is told so only when
 * whatever is on its way has had the time to arrive.
 */
import { Server as TcpServer } from 'node:net';
import { setTimeout as elapsed, setImmediate as nextTurn } from 'node:timers/promises';
import type { Server } from './server.ts';

const lookEveryMs = 50;
/** For requests that are on their way when the server stops to listen. */
const arrivalMs = 250;

/** To be called before `listen`; the returned function drains, `deadlineMs` at most. */
export function prepareDrain(server: Server): (deadlineMs: number) => Promise<void> {
  let draining = false;
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (draining) reply.header('connection', 'close');
    done(null, payload);
  });
  return async (deadlineMs) => {
    draining = true;
    const http = server.server;
    const deadline = setTimeout(() => http.closeAllConnections(), deadlineMs);
    // Connections that wait to be accepted are lost with the listener: this is when there are fewest.
    await nextTurn();
    // The listener alone.
    TcpServer.prototype.close.call(http);
    await elapsed(Math.min(arrivalMs, deadlineMs));
    const idle = setInterval(() => http.closeIdleConnections(), lookEveryMs);
    try {
      await server.close();
    } finally {
      clearInterval(idle);
      clearTimeout(deadline);
    }
  };
}
