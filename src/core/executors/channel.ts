/** The way to a child: lines of messages, each of which begins with a ping (heartbeat.ts). */
import type { Heartbeat } from './heartbeat.ts';
import { createOutbox } from './lines.ts';

export interface Channel {
  /** Puts a message, as JSON text, into the next line. */
  push(message: string): void;
  /** Writes the gathered messages at once, and then a line with only a ping. */
  flushAndPing(): void;
}

export function openChannel(
  socket: { write(line: string): unknown },
  heartbeat: Pick<Heartbeat, 'next'>,
): Channel {
  const ping = () => `["ping",${heartbeat.next()}]`;
  const outbox = createOutbox((line) => void socket.write(line), ping);
  return {
    push: outbox.push,
    flushAndPing() {
      outbox.flush();
      socket.write(`[${ping()}]\n`);
    },
  };
}
