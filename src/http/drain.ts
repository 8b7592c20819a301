/**
 * Stops a server without cutting anybody off: no new connections, every answer says that its
 * connection closes, idle connections are closed at once, and what is left at the deadline is cut.
 */
import type { Server } from './server.ts';

const lookEveryMs = 50;

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
    const idle = setInterval(() => http.closeIdleConnections(), lookEveryMs);
    const deadline = setTimeout(() => http.closeAllConnections(), deadlineMs);
    try {
      await server.close();
    } finally {
      clearInterval(idle);
      clearTimeout(deadline);
    }
  };
}
