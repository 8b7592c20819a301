/**
 * Reads and writes lines on a stream. The reader buffers at most one unfinished line, of bounded length.
 * The outbox gathers the messages of one turn of the event loop and writes them as one line.
 */
import { frameCharsSoft } from './limits.ts';
import type { ChildMessage } from './protocol.ts';

const newline = 10;

/** Takes chunks, which the caller may reuse, and gives whole lines. */
export class LineReader {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #held = 0;
  /** A line has more than `maxBytes`; there are no more lines then. */
  isTooLong = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in the chunk. */
  *take(chunk: Buffer): Generator<string, void> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      if (!this.#fits(end - start)) return;
      yield this.#joined(chunk, start, end);
      start = end + 1;
    }
    if (start === chunk.length || !this.#fits(chunk.length - start)) return;
    this.#held += chunk.length - start;
    this.#parts.push(Buffer.from(chunk.subarray(start)));
  }

  #fits(bytes: number): boolean {
    if (this.#held + bytes > this.#maxBytes) this.isTooLong = true;
    return !this.isTooLong;
  }

  #joined(chunk: Buffer, start: number, end: number): string {
    if (this.#held === 0) return chunk.toString('utf8', start, end);
    const line = Buffer.concat([...this.#parts, chunk.subarray(start, end)]).toString('utf8');
    this.#parts = [];
    this.#held = 0;
    return line;
  }
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
