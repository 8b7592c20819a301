/**
 * The port of what keeps the bytes of files. A key names bytes that never change. `put` resolves when they are durable;
 * `remove` does nothing where there is none. What cannot be reached rejects with `upstream_unavailable`.
 */
import type { Readable } from 'node:stream';

export interface BlobSource {
  /** A file of this process, which `put` may take away. */
  readonly path: string;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

export interface Blobs {
  /** The directory in which files wait to be put. */
  readonly spoolDirectory: string;
  put(key: string, source: BlobSource): Promise<void>;
  /** Whether there are bytes of this key. */
  has(key: string): Promise<boolean>;
  /** The bytes; null where there are none of this key. The caller reads the stream or destroys it. */
  read(key: string): Promise<Readable | null>;
  remove(key: string): Promise<void>;
  close(): Promise<void>;
}
