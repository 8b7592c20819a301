/**
 * Writes bytes that arrive to a file of this process, and judges them on the way: their number, their digest, their type.
 * Never keeps more than a piece in memory. The file is removed when its caller is done with it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { makeDirectory } from '../../kernel/directory.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { headBytes, mediaTypeOf } from '../../kernel/media-type.ts';
import { TakenAmounts } from '../../kernel/taken-amounts.ts';
import type { BlobSource } from './blobs.ts';

export interface Spooled extends BlobSource {
  readonly mediaType: string;
}

/** Bytes of one file, of all files that wait in the spool of a process, and of those of one organization. */
export interface SpoolBounds {
  readonly file: number;
  readonly all: number;
  readonly organization: number;
}

export class Spool {
  readonly directory: string;
  readonly #bounds: SpoolBounds;
  /** Bytes that wait. */
  readonly #taken = new TakenAmounts();

  constructor(directory: string, bounds: SpoolBounds) {
    this.directory = directory;
    this.#bounds = bounds;
  }

  /**
   * Spools a stream and hands it to `use`. Throws `413` for more than a file may have and `503` for more than the spool has
   * room for, and reads no further; `503` also where the disk fails.
   */
  async receive<T>(
    organizationId: string,
    bytes: AsyncIterable<Uint8Array>,
    name: string,
    use: (spooled: Spooled) => Promise<T>,
  ): Promise<T> {
    const path = join(this.directory, randomUUID());
    let taken = 0;
    const judge = new Judge(this.#bounds.file, (more) => {
      this.#take(organizationId, more);
      taken += more;
    });
    try {
      makeDirectory(this.directory);
      await pipeline(
        bytes,
        (pieces: AsyncIterable<Uint8Array>) => judge.read(pieces),
        createWriteStream(path, { flags: 'wx', mode: 0o600 }),
      );
      return await use({ path, ...judge.verdict(name) });
    } catch (error) {
      throw isOfDisk(error) ? diskFault(error) : error;
    } finally {
      // What stays is removed as stale.
      await rm(path, { force: true }).catch(() => {});
      this.#taken.add(organizationId, -taken);
    }
  }

  #take(organizationId: string, bytes: number): void {
    const { all, organization } = this.#bounds;
    const own = this.#taken.of(organizationId) + bytes;
    if (this.#taken.all + bytes > all || own > organization) {
      const message = 'Too many bytes of files are on their way (FILES_SPOOL_MAX_MB): try again';
      throw new PlatformError('service_unavailable', message, { retryAfter: 1 });
    }
    this.#taken.add(organizationId, bytes);
  }
}

/** Whether a call of the system for a file failed, such as for a full disk. */
const isOfDisk = (error: unknown) =>
  /^(?:open|mkdir|write|fsync|rename)$/.test(`${(error as NodeJS.ErrnoException).syscall}`);

function diskFault(cause: unknown): PlatformError {
  const message = 'The disk of the platform takes no files right now';
  return new PlatformError('service_unavailable', message, { cause, retryAfter: 10 });
}

/** Longer than a file takes to be stored after its last piece: `Files` does not keep one that took longer. */
const staleMs = 2 * 3_600_000;

/** Removes files that no process is receiving or storing any more: their process was ended in the middle. */
export async function removeStale(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    const path = join(directory, name);
    try {
      // The times of files are those of the system, whatever clock the platform has.
      const { mtimeMs } = await stat(path);
      if (mtimeMs < Date.now() - staleMs) await rm(path, { force: true });
    } catch {
      // Another process has removed it, or owns it.
    }
  }
}

class Judge {
  readonly #bytesMax: number;
  readonly #take: (bytes: number) => void;
  readonly #hash = createHash('sha256');
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #head = Buffer.alloc(0);
  #bytes = 0;
  #isText = true;

  /** `take` throws for bytes for which the spool has no room. */
  constructor(bytesMax: number, take: (bytes: number) => void) {
    this.#bytesMax = bytesMax;
    this.#take = take;
  }

  /** Passes the pieces on. */
  async *read(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      this.#bytes += piece.length;
      if (this.#bytes > this.#bytesMax) throw tooLarge(this.#bytesMax);
      this.#take(piece.length);
      this.#hash.update(piece);
      if (this.#head.length < headBytes) {
        this.#head = Buffer.concat([this.#head, piece.subarray(0, headBytes)]).subarray(
          0,
          headBytes,
        );
      }
      if (this.#isText) this.#isText = this.#reads(piece);
      yield piece;
    }
  }

  verdict(name: string) {
    const isText = this.#isText && this.#reads();
    return {
      bytes: this.#bytes,
      sha256: this.#hash.digest('hex'),
      mediaType: mediaTypeOf(this.#head, isText, name),
    };
  }

  /** Whether the bytes so far are text; without a piece, whether no character is cut off. */
  #reads(piece?: Uint8Array): boolean {
    if (piece?.includes(0)) return false;
    try {
      this.#decoder.decode(piece, { stream: piece !== undefined });
      return true;
    } catch {
      return false;
    }
  }
}

/** The refusal of more bytes than a file may have. */
export function tooLarge(bytesMax: number): PlatformError {
  const megabytes = Math.floor(bytesMax / 1024 / 1024);
  return new PlatformError('payload_too_large', `A file may have ${megabytes} MiB (FILE_MAX_MB)`);
}
