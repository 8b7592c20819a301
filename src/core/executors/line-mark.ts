/**
 * Which line of the parent a child has begun to handle, in a file that both have open. The child writes the number of
 * the line's ping before any code of the line's runs executes; the parent reads it where it has to know whether such code
 * may have begun: while the child's event loop is blocked, and after its death. The answer to the ping itself then goes
 * with the next messages, and the parent is not woken up at the beginning of each run. The code of skills can write the
 * file too, but no line that the parent has not written.
 */
import { closeSync, readSync, writeSync } from 'node:fs';
import { openUnnamedFile } from '../../kernel/unnamed-file.ts';

const bytes = Float64Array.BYTES_PER_ELEMENT;

/** The parent's side. */
export class LineMark {
  /** File descriptor, for the child. */
  readonly fd: number;
  readonly #value = new Float64Array(1);
  #isOpen = true;

  /** Throws when no file can be made. */
  constructor() {
    this.fd = openUnnamedFile('line');
  }

  /** The number of the last line that the child has begun to handle; 0 before the first. */
  last(): number {
    if (this.#isOpen && readSync(this.fd, this.#value, 0, bytes, 0) !== bytes) return 0;
    return this.#value[0] ?? 0;
  }

  /** To be called when the child is gone and nothing more is read. */
  close(): void {
    if (this.#isOpen) closeSync(this.fd);
    this.#isOpen = false;
  }
}

/** The child's side: writes the number of a line. */
export function createLineMarker(fd: number): (line: number) => void {
  const value = new Float64Array(1);
  return (line) => {
    value[0] = line;
    writeSync(fd, value, 0, bytes, 0);
  };
}
