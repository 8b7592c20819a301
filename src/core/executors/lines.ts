/**
 * Reads and writes lines on a stream. The reader buffers at most one unfinished line, of bounded length.
 * The outbox gathers the messages of one turn of the event loop and writes them as one line.
 */
import { frameCharsSoft } from './limits.ts';
import type { ChildMessage } from './protocol.ts';

const newline = 10;

/** Feeds chunks in, gets whole lines out. Chunks may be reused by the caller after the call. */
export function createLineReader(options: {
  /** Bytes of one line; `onOverflow` is called once it is longer. */
  maxBytes: number;
  onLine: (line: string) => void;
  onOverflow: () => void;
}): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let held = 0;
  const take = (chunk: Buffer, start: number, end: number): string => {
    if (held === 0) return chunk.toString('utf8', start, end);
    const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8');
    parts = [];
    held = 0;
    return line;
  };
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      if (held + end - start > options.maxBytes) return options.onOverflow();
      options.onLine(take(chunk, start, end));
      start = end + 1;
    }
    if (start === chunk.length) return;
    held += chunk.length - start;
    if (held > options.maxBytes) return options.onOverflow();
    parts.push(Buffer.from(chunk.subarray(start)));
  };
}

/** Messages, each as JSON text, on their way into one line. */
export class Outbox {
  readonly #write: (line: string) => void;
  readonly #onTurnEnd = (): void => this.flush();
  #gathered = '';
  #isScheduled = false;

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  /** Puts a message into the line that is written at the end of this turn of the event loop. */
  push(message: string): void {
    this.#gathered = this.#gathered === '' ? message : `${this.#gathered},${message}`;
    if (this.#gathered.length > frameCharsSoft) this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(this.#onTurnEnd);
    }
  }

  /** Writes the gathered messages now instead of at the end of the turn. */
  flush(): void {
    this.#isScheduled = false;
    if (this.#gathered === '') return;
    const body = this.#gathered;
    this.#gathered = '';
    this.#write(`[${body}]\n`);
  }
}

/** Sends a message of the child at once: the code that is imported next may never return. */
export function send(outbox: Outbox, message: ChildMessage): void {
  gather(outbox, message);
  outbox.flush();
}

/** Sends a message of the child together with the next one. */
export function gather(outbox: Outbox, message: ChildMessage): void {
  outbox.push(JSON.stringify(message));
}
