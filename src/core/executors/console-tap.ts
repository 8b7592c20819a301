/**
 * Reads the output that a child prints outside of runs: during its load, after a run, from native code.
 * Logs all of it within the budget. Keeps only the end of stderr, where the runtime reports why it died.
 * The output of a run's own code comes over the socket. The secrets of the child's runs are not logged.
 */
import type { Readable } from 'node:stream';
import type { Logger } from '../../kernel/log.ts';
import { createByteBudget } from './console-budget.ts';
import { createPieces, type KnownSecrets } from './redaction.ts';

/** Bytes of stderr that are kept. */
const tailBytes = 4_096;

export interface ConsoleTap {
  /** The end of what the child wrote to stderr. */
  tail(): string;
  close(): void;
}

/** Begins to read both streams. `pid` is for the log; `secrets` are those of the runs so far. */
export function tapConsole(
  streams: { stdout: Readable | null; stderr: Readable | null },
  pid: number | undefined,
  log: Pick<Logger, 'info' | 'warn'>,
  secrets: Pick<KnownSecrets, 'forms'>,
): ConsoleTap {
  let kept = Buffer.alloc(0);
  const budget = createByteBudget((bytes) =>
    log.warn({ executor: pid, bytes }, 'skills print too much; bytes were dropped'),
  );
  const show = (name: 'stdout' | 'stderr', text: string): void => {
    if (text !== '') log.info({ executor: pid, [name]: text.trimEnd() }, 'skill output');
  };
  for (const name of ['stdout', 'stderr'] as const) {
    const pieces = createPieces(secrets.forms);
    streams[name]
      ?.on('data', (chunk: Buffer) => {
        if (name === 'stderr') kept = lastBytes(kept, chunk);
        if (budget.spend(chunk.length)) show(name, pieces.take(chunk.toString('utf8')));
      })
      .on('end', () => show(name, pieces.rest()))
      .on('error', () => {});
  }
  return {
    tail: () => kept.toString('utf8'),
    close() {
      streams.stdout?.destroy();
      streams.stderr?.destroy();
    },
  };
}

function lastBytes(kept: Buffer, chunk: Buffer): Buffer<ArrayBuffer> {
  if (chunk.length >= tailBytes) return Buffer.from(chunk.subarray(-tailBytes));
  return Buffer.concat([kept, chunk]).subarray(-tailBytes);
}
