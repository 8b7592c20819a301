/**
 * The files that a task names, as a model is sent them: pictures and PDF as they are where it takes them, every other
 * document as its text. A message keeps the ids of the files; the bytes are read for a call and dropped after it.
 */
import type { AttachedFile, GivenFile, UserMessage } from '../../adapters/models/model.ts';
import { speaksPdf } from '../../adapters/models/providers.ts';
import { sizeOfText, tokensOfSize } from '../../adapters/models/text-size.ts';
import { firstUnits } from '../../kernel/cut-text.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { isSeenPicture, isTextType, unknownType } from '../../kernel/media-type.ts';
import type { FileRow } from '../files/files.ts';
import { filesNamedIn } from '../files/references.ts';
import { log, settingsFor, type ThinkingAttempt, userOf } from './attempt.ts';
import { lengthWithin } from './dialogue.ts';
import {
  charactersMax,
  type DocumentText,
  documentBytesMax,
  type UnreadDocument,
} from './document-reader.ts';
import { fetchFile } from './fetched-files.ts';
import { heldPerByte, isGone, readUpTo, sentBytesMax } from './files-of-calls.ts';
import { givenWith, leftOutLater, noRoom, pictureTokens } from './message-files.ts';
import { quoted } from './quoted.ts';
import { ThinkingError } from './thinking-error.ts';
import { type NamedFiles, noFiles } from './tool-results.ts';

/** Bytes of a text that are read. */
const textBytesMax = 1024 * 1024;
/** Tokens of a page of a PDF that is sent as it is, beside the page's text: the most that providers count. */
const pageTokens = 3_000;
/** Tokens of a text with fewer than which it says nothing, and of the words around it. */
const leastTokens = 200;
const aroundText = 100;
/** Characters of the reason for a note. */
const reasonMax = 300;

/** What a message is made of: whose files, which models have to read it. */
export interface AttachingTo {
  readonly models: readonly string[];
  readonly signal: AbortSignal;
  /** Tokens that the files may take. */
  readonly room: number;
  /** Files that are given; of further ones there is a note. */
  readonly filesMax?: number;
  /**
   * The job whose message it is, where that is an earlier one, null if it is not known: then a file that is gone is left
   * out with a note. Else it fails the request.
   */
  readonly earlierJob?: string | null;
  /** Whether turns after the message are on record: then a file that is gone is left out with a note, too. */
  readonly isAnswered?: boolean;
}

/** A message of the user with the files of these names: ids, or urls. */
export async function attached(
  attempt: ThinkingAttempt,
  text: string,
  names: readonly string[],
  to: AttachingTo,
): Promise<UserMessage> {
  if (names.length === 0) return { role: 'user', text };
  const rows: (FileRow | GivenFile)[] = [];
  for (const [n, name] of names.entries()) {
    const row = await fileOf(attempt, name, to);
    const isGiven = n < (to.filesMax ?? Infinity) || 'as' in row;
    rows.push(isGiven ? row : givenWith(row, leftOutLater(row)));
  }
  const { texts, worded, files } = await asSent(attempt, rows, to);
  const made = { role: 'user', text: [...texts, text].join('\n\n'), worded } as const;
  return files.length > 0 ? { ...made, files } : made;
}

/**
 * Files as they are where there is room, and others in words, which share what room is left; of a file that is gone there
 * is the note alone.
 */
async function asSent(
  attempt: ThinkingAttempt,
  rows: readonly (FileRow | GivenFile)[],
  to: AttachingTo,
): Promise<NamedFiles> {
  const takesPdf = await takePdf(attempt, to.models);
  const others: (FileRow | GivenFile)[] = [];
  const files: AttachedFile[] = [];
  let { room } = to;
  let bytes = 0;
  for (const row of rows) {
    const isSent =
      !('as' in row) && (isSeenPicture(row.media_type) || (row.media_type === pdf && takesPdf));
    const hasRoom = isSent && bytes + Number(row.bytes) <= sentBytesMax;
    const tokens = hasRoom ? await tokensOf(attempt, row, to) : 0;
    if (isSent && tokens > 0 && tokens <= room) {
      bytes += Number(row.bytes);
      room -= tokens;
      files.push({ id: row.id, name: row.name, mediaType: row.media_type, tokens });
    } else others.push(row);
  }
  const measure = attempt.estimates.measure(to.models);
  const texts: string[] = [];
  const worded: GivenFile[] = [];
  for (const [n, row] of others.entries()) {
    const share = Math.floor(room / (others.length - n));
    const { text, reason } =
      'as' in row ? noText(row.reason) : await asText(attempt, row, to, share);
    const said = text ?? `[${reason}]`;
    const as = text === null ? 'note' : 'text';
    room -= measure.tokensOf(sizeOfText(said));
    texts.push(said);
    worded.push('as' in row ? row : { id: row.id, name: row.name, as, reason });
  }
  return { texts, worded, files };
}

/** The files that the output of a tool names, as its model is sent them. Names of files that are not there are left alone. */
export async function namedIn(
  attempt: ThinkingAttempt,
  output: unknown,
  to: AttachingTo,
): Promise<NamedFiles> {
  const ids = filesNamedIn(output);
  if (ids.length === 0) return noFiles;
  const { parts, run } = attempt;
  const rows = await parts.files.usable(run.job.organization_id, userOf(attempt), ids);
  const named = ids.flatMap((id) => rows.get(id) ?? []);
  return await asSent(attempt, named, to);
}

const pdf = 'application/pdf';

/** Whether each of the models takes a PDF as it is. */
async function takePdf(attempt: ThinkingAttempt, models: readonly string[]): Promise<boolean> {
  for (const model of models) {
    const sees = attempt.parts.known.of(model).images !== false;
    if (!sees || !speaksPdf(model, await settingsFor(attempt, model))) return false;
  }
  return true;
}

/** The file of a name; how it is given where it is gone. */
async function fileOf(
  attempt: ThinkingAttempt,
  name: string,
  { earlierJob, isAnswered = false, signal }: AttachingTo,
): Promise<FileRow | GivenFile> {
  const { parts, run } = attempt;
  const { organization_id } = run.job;
  if (!isId(name)) {
    return earlierJob === undefined
      ? await fetchFile(attempt, name, signal)
      : ((await fetchedBefore(attempt, name, earlierJob)) ?? gone(name));
  }
  try {
    const [row] = await parts.files.ofRequest(organization_id, userOf(attempt), [name]);
    if (row === undefined) throw notFound('File');
    return row;
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === 'not_found')) throw error;
    if (earlierJob !== undefined || isAnswered) return { ...gone(name), id: name };
    throw new ThinkingError('skill_execution_failed', `There is no file ${name} for this task`);
  }
}

function gone(name: string): GivenFile {
  return { id: null, name, as: 'note', reason: isGone(name) };
}

/** The file that an earlier job has fetched from a url. */
async function fetchedBefore({ parts, run }: ThinkingAttempt, url: string, jobId: string | null) {
  const row = jobId === null ? undefined : await parts.files.fetchedBy([jobId], url);
  return row?.organization_id === run.job.organization_id ? row : undefined;
}

/** A file in words: its text, or a note with the reason for which there is none, or of which only the beginning is given. */
interface InWords {
  readonly text: string | null;
  readonly reason: string | null;
}

const noText = (reason: string | null): InWords => ({ text: null, reason });

/** A file as text of so many tokens at most, between marks, which say that it is data. */
async function asText(
  attempt: ThinkingAttempt,
  row: FileRow,
  to: AttachingTo,
  tokens: number,
): Promise<InWords> {
  const called = JSON.stringify(row.name);
  const isPlain = isPlainText(row.media_type);
  const hasRoom = tokens >= leastTokens && !isUnsentPicture(row);
  const read = hasRoom ? await wordsOf(attempt, row, to) : { fault: null };
  if ('fault' in read) {
    const { fault } = read;
    const reason = fault === null ? noRoom(row) : `The file ${called} cannot be read: ${fault}`;
    log(attempt, fault === null ? reason : `The file ${called} is left out: ${fault}`);
    return noText(reason.slice(0, reasonMax).toWellFormed());
  }
  const measure = attempt.estimates.measure(to.models);
  const length = lengthWithin(read.text, tokens - aroundText, measure);
  const isCut = read.truncated || length < read.text.length;
  const reason = isCut ? beginningOf(called) : null;
  if (!isPlain) log(attempt, `The file ${called} is sent as its text`);
  if (reason !== null) log(attempt, reason);
  const what = isPlain ? 'The file' : 'The text of the file';
  const text = firstUnits(read.text, length).toWellFormed();
  return {
    text: `${what} ${called}${isCut ? ' (its beginning)' : ''}:\n${quoted(text, 'file')}`,
    reason,
  };
}

/** Whether it is a picture of a size that models see, for which there is no room. */
const isUnsentPicture = ({ media_type, bytes }: FileRow) =>
  isSeenPicture(media_type) && Number(bytes) <= sentBytesMax;

/** The words of a file. */
async function wordsOf(
  attempt: ThinkingAttempt,
  row: FileRow,
  to: AttachingTo,
): Promise<DocumentText | UnreadDocument> {
  if (!isPlainText(row.media_type)) {
    const read = await textOf(attempt, row, to);
    const isEmpty = !('fault' in read) && read.text.trim() === '';
    return isEmpty ? { fault: 'it has no text' } : read;
  }
  const bytes = await readUpTo(attempt, row, textBytesMax);
  if (bytes === null) return { fault: 'it is not there any more' };
  const whole = new TextDecoder().decode(bytes, { stream: true });
  const text = whole.slice(0, charactersMax).toWellFormed();
  return { text, truncated: text.length < whole.length || bytes.length < Number(row.bytes) };
}

const beginningOf = (called: string) => `Of the file ${called} only its beginning is sent`;

/** Whether its bytes are what a reader reads; a page has marks. */
const isPlainText = (type: string) =>
  type === 'application/json' || (type.startsWith('text/') && type !== 'text/html');

/** Read once in an attempt. */
function textOf(
  attempt: ThinkingAttempt,
  row: FileRow,
  { signal }: AttachingTo,
): Promise<DocumentText | UnreadDocument> {
  const known = attempt.documents.get(row.id);
  if (known !== undefined) return known;
  const reading = readDocument(attempt, row, signal);
  attempt.documents.set(row.id, reading);
  return reading;
}

async function readDocument(attempt: ThinkingAttempt, row: FileRow, signal: AbortSignal) {
  const type = row.media_type;
  const unsent = { fault: `models are sent no ${type}` };
  const isReadable = isTextType(type) || type === pdf || /wordprocessing/.test(type);
  // The reader knows more kinds of texts and archives than the mark of a file tells.
  const mayBeReadable = type === unknownType || type === 'application/zip';
  if (isSeenPicture(type)) return { fault: 'it is larger than models are sent' };
  if (!(isReadable || mayBeReadable)) return unsent;
  if (row.tokens !== null && Number(row.tokens) === 0) {
    return isReadable ? { fault: 'it is broken' } : unsent;
  }
  if (Number(row.bytes) > documentBytesMax) return { fault: 'it is larger than 20 MiB' };
  const { fileBytes, documents, files } = attempt.parts;
  const { organization_id } = row;
  const release = await fileBytes.take(heldPerByte * Number(row.bytes), organization_id, signal);
  try {
    const bytes = await readUpTo(attempt, row, documentBytesMax);
    if (bytes === null) return { fault: 'it is not there any more' };
    const read = await documents.read(bytes, organization_id, signal);
    if ('fault' in read && read.isBroken === true) await files.setTokens(row, 0);
    return 'fault' in read && !isReadable ? unsent : read;
  } finally {
    release();
  }
}

/** What a file counts that is sent as it is; 0 for a PDF that cannot be read. A PDF is read once, and its row keeps the number. */
async function tokensOf(attempt: ThinkingAttempt, row: FileRow, to: AttachingTo): Promise<number> {
  if (row.media_type !== pdf) return pictureTokens;
  if (row.tokens !== null) return Number(row.tokens);
  const read = await textOf(attempt, row, to);
  if ('fault' in read) return 0;
  const tokens = tokensOfSize(sizeOfText(read.text)) + (read.pages ?? 1) * pageTokens;
  await attempt.parts.files.setTokens(row, tokens);
  return tokens;
}
