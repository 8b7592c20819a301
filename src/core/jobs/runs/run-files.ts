/**
 * The files that an attempt gives and reads: `ctx.files` in its executor, part by part. Requests are hostile input. A file
 * that a run has not given whole is no file; its parts are removed when the run ends. Equal bytes of one name are one file of
 * their job, so that a repeated run keeps none twice.
 */
import { PassThrough, type Readable } from 'node:stream';
import { PlatformError } from '../../../kernel/errors.ts';
import { fileName } from '../../../kernel/file-name.ts';
import { isObject } from '../../../kernel/json.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { type ReadFile, transferBytes } from '../../executors/file-transfers.ts';
import { type FileOwner, type FileRow, type Files, fileReference } from '../../files/files.ts';
import { type ClaimedJob, memoryUserOf } from '../jobs.store.ts';

/** Transfers of one attempt at a time, and files that it may give. */
const transfersMax = 16;
const filesMax = 1_000;

/** A file on its way: the stream that its parts go into, and what becomes of it. */
interface Upload {
  readonly stream: PassThrough;
  readonly kept: Promise<FileRow>;
}

interface Reading {
  readonly stream: Readable;
  readonly pieces: AsyncIterator<Buffer>;
}

export class RunFiles {
  readonly #files: Files;
  readonly #owner: FileOwner;
  readonly #uploads = new Map<number, Upload>();
  readonly #readings = new Map<number, Reading>();
  #next = 1;
  #given = 0;

  constructor(files: Files, job: ClaimedJob) {
    this.#files = files;
    this.#owner = { organizationId: job.organization_id, userId: memoryUserOf(job), jobId: job.id };
  }

  /** Answers a request. The signal aborts when the run has ended. */
  async ask(kind: FileRequest, payload: unknown, signal: AbortSignal): Promise<unknown> {
    const fields = isObject(payload) ? payload : {};
    try {
      return await (kind === 'file-put' ? this.#put(fields, signal) : this.#get(fields, signal));
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const isTemporary = /^(?:upstream|service)_unavailable$/.test(error.code);
      throw Object.assign(new Error(error.message), { code: error.code, retryable: isTemporary });
    }
  }

  async #put(fields: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown> {
    const { upload: n, name, base64, isLast } = fields;
    if (typeof name !== 'string' || typeof base64 !== 'string') throw permanentError(noTransfer);
    const number = n === null ? this.#begin(name, signal) : (n as number);
    const upload = this.#uploads.get(number);
    if (upload === undefined) throw permanentError(noTransfer);
    let isOver = true;
    try {
      await write(upload, Buffer.from(base64, 'base64'));
      isOver = isLast === true;
      if (!isOver) return number;
      upload.stream.end();
      return fileReference(await upload.kept);
    } finally {
      if (isOver) this.#uploads.delete(number);
    }
  }

  #begin(name: string, signal: AbortSignal): number {
    this.#requireFew();
    if (++this.#given > filesMax) throw permanentError(`an attempt may give ${filesMax} files`);
    const stream = new PassThrough({ highWaterMark: 0 });
    stream.on('error', () => {});
    const number = this.#next++;
    const kept = this.#files.create({ ...this.#owner, isOnce: true }, fileName(name), stream);
    // The next part is answered with the failure.
    kept.catch(() => {});
    this.#uploads.set(number, { stream, kept });
    destroyWith(stream, signal);
    return number;
  }

  async #get(fields: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ReadFile> {
    const { id, reading: n } = fields;
    if (id === undefined) return this.#read(n as number);
    this.#requireFew();
    const { organizationId, userId } = this.#owner;
    const [row] = await this.#files.ofRequest(organizationId, userId, [`${id}`]);
    if (row === undefined) throw permanentError(noTransfer);
    const stream = await this.#files.open(row);
    destroyWith(stream, signal);
    const number = this.#next++;
    this.#readings.set(number, { stream, pieces: pieces(stream) });
    return { file: fileReference(row), ...(await this.#read(number)) };
  }

  async #read(number: number): Promise<ReadFile> {
    const reading = this.#readings.get(number);
    if (reading === undefined) throw permanentError(noTransfer);
    let isOver = true;
    try {
      const { value, done } = await reading.pieces.next();
      isOver = done === true;
      return isOver
        ? { base64: '', reading: null }
        : { base64: (value as Buffer).toString('base64'), reading: number };
    } finally {
      if (isOver) this.#readings.delete(number);
    }
  }

  #requireFew(): void {
    if (this.#uploads.size + this.#readings.size < transfersMax) return;
    throw permanentError(`a run may give and read ${transfersMax} files at a time`);
  }
}

export type FileRequest = 'file-put' | 'file-get';
export const isFileRequest = (kind: string): kind is FileRequest =>
  kind === 'file-put' || kind === 'file-get';

const noTransfer = 'this is no part of a file that a run may give or read';

/** Writes a part once the one before it is on the way; rejects with the reason for which the file is not kept. */
export async function write({ stream, kept }: Upload, piece: Buffer): Promise<void> {
  const written = new Promise<void>((resolve) => {
    stream.write(piece, () => resolve());
  });
  await Promise.race([written, kept]);
}

function destroyWith(stream: Readable, signal: AbortSignal): void {
  const destroy = () => stream.destroy(new Error('The run has ended'));
  if (signal.aborted) destroy();
  signal.addEventListener('abort', destroy, { once: true });
  stream.once('close', () => signal.removeEventListener('abort', destroy));
}

/** The bytes of a stream in parts that fit into an answer. */
async function* pieces(stream: Readable): AsyncGenerator<Buffer> {
  for await (const read of stream) {
    const chunk = read as Buffer;
    for (let from = 0; from < chunk.length; from += transferBytes) {
      yield chunk.subarray(from, from + transferBytes);
    }
  }
}
