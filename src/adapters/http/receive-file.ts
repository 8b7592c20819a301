/**
 * The file of an upload: the only file of a multipart form, or the body itself. It is a stream, which ends only when the
 * whole request has arrived and is well-formed, so a form that is cut off gives no file.
 */
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import type { Server } from './server.ts';

/** Parts, and bytes, of a form beside its file. */
const limits = {
  files: 1,
  fields: 10,
  parts: 12,
  fieldNameSize: 100,
  fieldSize: 4_096,
  headerPairs: 20,
  headerSize: 8_192,
};

export interface ReceivedFile {
  /** As the form names it; null where nothing does. */
  readonly name: string | null;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Bodies of the routes of `scope` stay unread, of any media type. */
export function leaveBodiesUnread(scope: Server): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _body, parsed) => parsed(null));
}

/**
 * Hands the file of a request to `use`. What `use` leaves unread is not read either: the connection ends after the answer.
 */
export async function receiveFile<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  use: (file: ReceivedFile) => Promise<T>,
): Promise<T> {
  const { raw, headers } = request;
  const type = headers['content-type'] ?? '';
  try {
    if (headers['content-encoding'] !== undefined) {
      throw new PlatformError('unsupported_media_type', 'Send the file without content-encoding');
    }
    if (!/^multipart\//i.test(type)) return await use({ name: null, bytes: wholeBody(raw) });
    return await receiveForm(raw, formReader({ ...headers, 'content-type': type }), use);
  } catch (error) {
    reply.header('connection', 'close');
    throw error;
  }
}

function formReader(headers: BusboyHeaders): BusboyInstance {
  try {
    return new Busboy({
      headers,
      limits,
      isPartAFile: (_field, _type, name) => name !== undefined,
    });
  } catch (error) {
    throw malformed((error as Error).message);
  }
}

async function receiveForm<T>(
  body: Readable,
  form: BusboyInstance,
  use: (file: ReceivedFile) => Promise<T>,
): Promise<T> {
  const found = Promise.withResolvers<{ name: string; bytes: Readable } | null>();
  form.once('file', (_field, bytes, name) => {
    // Its faults are those of the form, which `arrived` has.
    bytes.on('error', () => {});
    found.resolve({ name, bytes });
  });
  const refuse = (what: string) => () => form.destroy(malformed(`it has ${what}`));
  form.once('filesLimit', refuse('more than one file'));
  form.once('fieldsLimit', refuse(`more than ${limits.fields} fields`));
  form.once('partsLimit', refuse(`more than ${limits.parts} parts`));
  const arrived = pipeline(body, form).catch((error: unknown) => {
    throw error instanceof PlatformError ? error : malformed((error as Error).message);
  });
  arrived.then(() => found.resolve(null), found.reject);
  const file = await found.promise;
  if (file === null) throw malformed('it has no file');
  try {
    return await use({ name: file.name, bytes: wholeFile(file.bytes, arrived) });
  } catch (error) {
    form.destroy(error as Error);
    throw error;
  }
}

/** The pieces of a file, and then the end of its form. */
async function* wholeFile(bytes: Readable, arrived: Promise<void>): AsyncGenerator<Uint8Array> {
  // Of a form that fails, the stream of its file may neither end nor fail.
  const pieces = new PassThrough();
  bytes.pipe(pieces);
  arrived.catch((error: Error) => pieces.destroy(error));
  for await (const piece of pieces) yield piece as Uint8Array;
  await arrived;
}

async function* wholeBody(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body) yield piece as Uint8Array;
  } catch {
    throw malformed('it was cut off');
  }
}

const malformed = (why: string) => invalid('body', `is no whole upload: ${why}`);
