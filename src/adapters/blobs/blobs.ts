/**
 * The port of what keeps the bytes of files. A key names bytes that never change. `put` resolves when they are durable;
 * `remove` does nothing where there is none. What cannot be reached rejects with `upstream_unavailable`.
 */
import type { Readable } from 'node:stream';
import { PlatformError } from '../../kernel/errors.ts';

export interface BlobSource {
  /** A file of this process, which `put` may take away. */
  readonly path: string;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

/** The first and the last byte. */
export interface BytePart {
  readonly start: number;
  readonly end: number;
}

export interface Blobs {
  /** The directory in which files wait to be put. */
  readonly spoolDirectory: string;
  put(key: string, source: BlobSource): Promise<void>;
  /** Whether there are so many bytes of this key. */
  has(key: string, bytes: number): Promise<boolean>;
  /** The bytes, or a part; null where there are none of this key. The caller reads the stream or destroys it. */
  read(key: string, part?: BytePart): Promise<Readable | null>;
  remove(key: string): Promise<void>;
  close(): Promise<void>;
}

/** The caller learns that the storage failed; the log has the reason, which may name keys of other organizations. */
export function storageFault(reason: string, cause?: unknown): PlatformError {
  return new PlatformError(
    'upstream_unavailable',
    'The storage of files cannot be used right now',
    {
      cause: new Error(`storage of files: ${reason}`, { cause }),
    },
  );
}
