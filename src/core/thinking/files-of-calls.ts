/**
 * The files of a dialogue in a call of a model: their bytes are read for the call and dropped after it. Those of
 * answers and results of tools are in a message of the user after them, because providers differ in what these may have. A file that is
 * gone, or for which the call has no room, is a line of text.
 */
import type {
  AttachedFile,
  DialogueMessage,
  FileContent,
  GivenFile,
} from '../../adapters/models/model.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { LostBytes } from '../files/checked-bytes.ts';
import type { FileRow } from '../files/files.ts';
import { type ThinkingAttempt, userOf } from './attempt.ts';
import { filesIn, givenWith, inWords, noRoom } from './message-files.ts';
import { ThinkingError } from './thinking-error.ts';

/** Bytes of all files of one call: providers take some 20 MB in a request. */
export const sentBytesMax = 14 * 1024 * 1024;
/** What a byte of a file takes while it is encoded or sent: as base64, in the text of the request, and in its bytes. */
export const heldPerByte = 4;
/** Files of a call that are read at a time. */
const readAtOnce = 4;
/** The files of a call that its step names, the last ones. */
const givenMax = 40;

/** What is sent in a call, and to which model. */
interface FilesOfCall {
  readonly messages: readonly DialogueMessage[];
  readonly model: string;
  readonly takesFiles: boolean;
  readonly signal: AbortSignal;
}

/** Messages as a model gets them, and how it is given their files; null where they have none. */
interface SentMessages {
  readonly messages: readonly DialogueMessage[];
  readonly files: readonly GivenFile[] | null;
}

/** What is said in place of a file; null of one that is sent. */
type NoteOf = (file: AttachedFile) => string | null;

/**
 * Makes a call with the contents of the files of its messages, which count until it ends within the bytes that all calls of the
 * process may hold at a time. A model that sees no pictures is told of them.
 */
export async function withFiles<T>(
  attempt: ThinkingAttempt,
  { messages, model, takesFiles, signal }: FilesOfCall,
  makeCall: (sent: SentMessages) => Promise<T>,
): Promise<T> {
  const isUnseen: NoteOf = (file) => cannotSee(model, file);
  if (!(takesFiles && messages.some(hasFiles))) {
    const files = givenFiles(messages, isUnseen);
    return makeCall({ messages: withoutFiles(messages, model), files });
  }
  const rows = await usableRows(attempt, messages);
  const { sent, bytes } = sentWithin(messages, rows);
  const { organization_id } = attempt.run.job;
  const release = await attempt.parts.fileBytes.take(heldPerByte * bytes, organization_id, signal);
  try {
    const contents = await readAll(attempt, [...sent.values()]);
    for (const { id } of sent.values()) if (!contents.has(id)) rows.delete(id);
    const note: NoteOf = (file) => noteWithin(rows, contents, file);
    const files = givenFiles(messages, note);
    return await makeCall({ messages: withGiven(messages, note, contents), files });
  } finally {
    release();
  }
}

/** The contents of files that are not gone, by their ids. */
async function readAll(attempt: ThinkingAttempt, left: FileRow[]) {
  const contents = new Map<string, FileContent>();
  const readNext = async () => {
    for (let row = left.pop(); row !== undefined; row = left.pop()) {
      const read = await readUpTo(attempt, row, Number(row.bytes));
      const base64 = read?.toString('base64');
      const { id, name, media_type: mediaType } = row;
      if (base64 !== undefined) contents.set(id, { name, mediaType, base64 });
    }
  };
  try {
    await Promise.all(Array.from({ length: readAtOnce }, readNext));
    return contents;
  } finally {
    left.length = 0;
  }
}

/** The messages as they are kept: with the ids, sizes and digests of files in place of their bytes. */
export async function withFileNames(
  attempt: ThinkingAttempt,
  { messages, model, takesFiles }: Omit<FilesOfCall, 'signal'>,
): Promise<readonly DialogueMessage[]> {
  if (!messages.some(hasFiles)) return messages;
  if (!takesFiles) return withoutFiles(messages, model);
  const rows = await usableRows(attempt, messages);
  const contents = new Map<string, FileContent>();
  for (const { id, name, media_type, bytes, sha256 } of sentWithin(messages, rows).sent.values()) {
    const base64 = `[the file ${id}, ${bytes} bytes, SHA-256 ${sha256}]`;
    contents.set(id, { name, mediaType: media_type, base64 });
  }
  return withGiven(messages, (file) => noteWithin(rows, contents, file), contents);
}

function givenFiles(
  messages: readonly DialogueMessage[],
  noteOf: NoteOf,
): readonly GivenFile[] | null {
  const given = new Map<string, GivenFile>();
  for (const message of messages) {
    const worded = message.role === 'assistant' ? [] : (message.worded ?? []);
    for (const one of worded) given.set(one.id ?? one.name, one);
    for (const file of filesIn(message)) given.set(file.id, givenWith(file, noteOf(file)));
  }
  return given.size === 0 ? null : [...given.values()].slice(-givenMax);
}

/** Why a file is not sent; null of one that is. */
function noteWithin(
  rows: ReadonlyMap<string, FileRow>,
  contents: ReadonlyMap<string, FileContent>,
  { id, name }: AttachedFile,
): string | null {
  if (contents.has(id)) return null;
  return rows.has(id) ? noRoom({ name }) : isGone(name);
}

/** The messages with the contents of those of their files that are sent; the others are lines of text. */
function withGiven(
  messages: readonly DialogueMessage[],
  noteOf: NoteOf,
  contents: ReadonlyMap<string, FileContent>,
): DialogueMessage[] {
  return withShownFiles(
    messages.map((one) => withContents(inWords(one, noteOf), contents)),
    contents,
  );
}

/** Whether a message has files that its text does not have in words. */
export const hasFiles = (message: DialogueMessage) => filesIn(message).length > 0;

/** The rows of the files of messages that the job may use, by id. */
function usableRows(attempt: ThinkingAttempt, messages: readonly DialogueMessage[]) {
  const { parts, run } = attempt;
  const ids = [...new Set(messages.flatMap(filesIn).map(({ id }) => id))];
  return parts.files.usable(run.job.organization_id, userOf(attempt), ids);
}

/** The messages for a model that sees no files. */
const withoutFiles = (messages: readonly DialogueMessage[], model: string) =>
  messages.map((one) => inWords(one, (file) => cannotSee(model, file)));

/** What is said of a file that a model does not see. */
export const cannotSee = (model: string, { name }: AttachedFile) =>
  `${model} cannot see the file ${JSON.stringify(name)}`;
export const isGone = (name: string) => `The file ${JSON.stringify(name)} is not there any more.`;

/** The files for which a call has room, the newest first. */
function sentWithin(messages: readonly DialogueMessage[], rows: ReadonlyMap<string, FileRow>) {
  const sent = new Map<string, FileRow>();
  let bytes = 0;
  for (const { id } of messages.toReversed().flatMap((message) => filesIn(message))) {
    const row = rows.get(id);
    if (row === undefined || sent.has(id) || bytes + Number(row.bytes) > sentBytesMax) continue;
    sent.set(id, row);
    bytes += Number(row.bytes);
  }
  return { sent, bytes };
}

function withContents(
  message: DialogueMessage,
  contents: ReadonlyMap<string, FileContent>,
): DialogueMessage {
  const files = filesIn(message);
  if (message.role !== 'user' || files.length === 0) return message;
  return { ...message, contents: files.flatMap(({ id }) => contents.get(id) ?? []) };
}

/** The messages, with one of the user after the answers and results that have files: the results of one turn stay together. */
function withShownFiles(
  messages: readonly DialogueMessage[],
  contents: ReadonlyMap<string, FileContent>,
): DialogueMessage[] {
  let shown: { readonly of: string; readonly file: AttachedFile }[] = [];
  return messages.flatMap((message, at) => {
    const of = message.role === 'tool' ? message.name : 'you';
    if (message.role !== 'user') shown.push(...filesIn(message).map((file) => ({ of, file })));
    const next = messages[at + 1];
    const isCalling = message.role === 'assistant' && message.toolCalls.length > 0;
    if (shown.length === 0 || isCalling || next?.role === 'tool') return [message];
    const text = `[The files of the messages above, which are data: ${shown
      .map((one) => `${JSON.stringify(one.file.name)} (of ${one.of})`)
      .join(', ')}]`;
    const files = shown.flatMap(({ file }) => contents.get(file.id) ?? []);
    shown = [];
    return [message, { role: 'user', text, contents: files }];
  });
}

/** The first bytes of a file; null where it is gone, or has lost bytes. Rejects with a ThinkingError, to be retried, where the storage fails. */
export async function readUpTo(
  { parts }: ThinkingAttempt,
  row: FileRow,
  max: number,
): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of await parts.files.open(row)) {
      pieces.push(piece as Buffer);
      length += (piece as Buffer).length;
      if (length >= max) break;
    }
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'not_found') return null;
    parts.context.log.warn({ err: error, file_id: row.id }, 'a file cannot be read');
    if (error instanceof LostBytes) return null;
    const message = `The file ${JSON.stringify(row.name)} cannot be read: the storage of files fails`;
    throw new ThinkingError('upstream_unavailable', message, true);
  }
  return Buffer.concat(pieces).subarray(0, max);
}
