/** The way to a child: lines of messages, and pings among them (heartbeat.ts). */
import type { Heartbeat } from './heartbeat.ts';
import { Outbox } from './lines.ts';

export class Channel extends Outbox {
  readonly #heartbeat: Heartbeat;

  constructor(write: (line: string) => void, heartbeat: Heartbeat) {
    super(write);
    this.#heartbeat = heartbeat;
  }

  /** Writes the gathered messages at once, and a ping after them; returns the number of the ping. */
  ping(): number {
    const ping = this.pushPing();
    this.flush();
    return ping;
  }

  /** Puts a ping before the next message, into its line; returns the number of the ping. */
  pushPing(): number {
    const ping = this.#heartbeat.next();
    this.push(`["ping",${ping}]`);
    return ping;
  }
}
