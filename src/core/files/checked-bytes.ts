/**
 * The bytes of a file as its row has them: the stream fails with `upstream_unavailable` where the storage fails, and with
 * LostBytes where it gives other bytes. The last piece is passed on once all are known to be right, so no reader takes wrong bytes for the file.
 */
import { createHash } from 'node:crypto';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { storageFault } from '../../adapters/blobs/blobs.ts';
import { PlatformError } from '../../kernel/errors.ts';

/** Without a digest only the number of bytes is checked, such as of a part. */
interface Expected {
  readonly bytes: number;
  readonly sha256: string | null;
}

/** The storage answers, but has not the bytes of the file: no repetition helps. */
export class LostBytes extends PlatformError {
  constructor(reason: string) {
    const cause = new Error(`storage of files: ${reason}`);
    super('upstream_unavailable', 'The storage has lost bytes of this file', { cause });
  }
}

export function checkedBytes(source: Readable, expected: Expected): Readable {
  const checked = new CheckedBytes(expected);
  pipeline(source, checked, () => {});
  return checked;
}

class CheckedBytes extends Transform {
  readonly #expected: Expected;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #held: Buffer | null = null;

  constructor(expected: Expected) {
    super();
    this.#expected = expected;
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    const { bytes, sha256 } = this.#expected;
    this.#bytes += piece.length;
    if (sha256 !== null) this.#hash.update(piece);
    const before = this.#held;
    this.#held = piece;
    if (this.#bytes <= bytes) done(null, before);
    else done(new LostBytes(`it has more than ${bytes} bytes of a file`));
  }

  override _flush(done: TransformCallback): void {
    const { bytes, sha256 } = this.#expected;
    if (this.#bytes < bytes)
      done(new LostBytes(`it has ${this.#bytes} of ${bytes} bytes of a file`));
    else if (sha256 !== null && this.#hash.digest('hex') !== sha256) {
      done(new LostBytes('it has other bytes of a file'));
    } else done(null, this.#held);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isOurs = error === null || error instanceof PlatformError;
    done(isOurs ? error : storageFault(error.message, error));
  }
}
