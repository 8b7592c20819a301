/**
 * Reads the output that a child prints outside of runs: during its load, after a run, from native code.
 * Logs all of it within the budget. Keeps only the end of stderr, where the runtime reports why it died.
 * The output of a run's own code comes over the socket. The secrets of the child's runs are not logged.
 */
import type { Readable } from 'node:stream';
import type { Logger } from '../../kernel/log.ts';
import { Budget } from './console-budget.ts';
import { consoleBytesPerSecond } from './limits.ts';
import { type KnownSecrets, Pieces } from './redaction.ts';

/** Bytes of stderr that are kept. */
const tailBytes = 4_096;

interface OutputStreams {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
}

/** Reads both streams of a child until it is closed. */
export class ConsoleTap {
  readonly #streams: OutputStreams;
  readonly #pid: number | undefined;
  readonly #log: Pick<Logger, 'info' | 'warn'>;
  readonly #budget: Budget;
  #kept: Buffer = Buffer.alloc(0);

  /** `pid` is for the log; `secrets` are those of the runs so far. */
  constructor(
    streams: OutputStreams,
    pid: number | undefined,
    log: Pick<Logger, 'info' | 'warn'>,
    secrets: KnownSecrets,
  ) {
    this.#streams = streams;
    this.#pid = pid;
    this.#log = log;
    this.#budget = new Budget(consoleBytesPerSecond, (bytes) =>
      log.warn({ executor: pid, bytes }, 'skills print too much; bytes were dropped'),
    );
    for (const name of ['stdout', 'stderr'] as const) this.#read(name, secrets);
  }

  /** The end of what the child wrote to stderr. */
  tail(): string {
    return this.#kept.toString('utf8');
  }

  close(): void {
    this.#streams.stdout?.destroy();
    this.#streams.stderr?.destroy();
  }

  #read(name: 'stdout' | 'stderr', secrets: KnownSecrets): void {
    const pieces = new Pieces(() => secrets.forms());
    this.#streams[name]
      ?.on('data', (chunk: Buffer) => {
        if (name === 'stderr') this.#kept = lastBytes(this.#kept, chunk);
        if (this.#budget.spend(chunk.length)) this.#show(name, pieces.take(chunk.toString('utf8')));
      })
      .on('end', () => this.#show(name, pieces.rest()))
      .on('error', () => {});
  }

  #show(name: 'stdout' | 'stderr', text: string): void {
    if (text !== '')
      this.#log.info({ executor: this.#pid, [name]: text.trimEnd() }, 'skill output');
  }
}

function lastBytes(kept: Buffer, chunk: Buffer): Buffer<ArrayBuffer> {
  if (chunk.length >= tailBytes) return Buffer.from(chunk.subarray(-tailBytes));
  return Buffer.concat([kept, chunk]).subarray(-tailBytes);
}
