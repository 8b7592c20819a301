/** The way to a child: lines of messages, each of which begins with a ping (heartbeat.ts). */
import type { Heartbeat } from './heartbeat.ts';
import { Outbox } from './lines.ts';

interface LineWriter {
  write(line: string): unknown;
}

export class Channel extends Outbox {
  readonly #socket: LineWriter;
  readonly #heartbeat: Heartbeat;

  constructor(socket: LineWriter, heartbeat: Heartbeat) {
    super(
      (line) => void socket.write(line),
      () => pingOf(heartbeat),
    );
    this.#socket = socket;
    this.#heartbeat = heartbeat;
  }

  /** Writes the gathered messages at once, and then a line with only a ping. */
  flushAndPing(): void {
    this.flush();
    this.#socket.write(`[${pingOf(this.#heartbeat)}]\n`);
  }
}

/** The next ping, as the text of a message. */
function pingOf(heartbeat: Heartbeat): string {
  return `["ping",${heartbeat.next()}]`;
}
