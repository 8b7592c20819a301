/** The pictures that models make: kept as files of the job, and named by the answer. */
import { Readable } from 'node:stream';
import type { AssistantMessage, MadeFile, ModelAnswer } from '../../adapters/models/model.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { headBytes, isPicture, mediaTypeOf } from '../../kernel/media-type.ts';
import type { SkillFile } from '../skills/definition.ts';
import { log, report, type ThinkingAttempt, userOf } from './attempt.ts';
import { cutText } from './dialogue.ts';
import { pictureTokens } from './message-files.ts';
import { messageShownMax } from './tool-results.ts';

/**
 * The message of an answer with its pictures, which are files from now on. One without a text and calls says which pictures it has,
 * because providers take no message without a text. A picture that cannot be kept is lost, and the run says so.
 */
export async function withMadeFiles(
  attempt: ThinkingAttempt,
  { message, pictures = [] }: ModelAnswer,
  step: number,
): Promise<AssistantMessage> {
  if (pictures.length === 0) return message;
  const files: MadeFile[] = [];
  const notes: string[] = [];
  for (const [i, base64] of pictures.entries()) {
    const name = `picture-${step}-${i + 1}`;
    const kept = await keep(attempt, name, base64);
    if (typeof kept !== 'string') files.push(kept);
    const note = typeof kept === 'string' ? `${name} could not be kept: ${kept}` : kept.name;
    if (typeof kept === 'string') log(attempt, `The picture ${note}`);
    notes.push(note);
  }
  const isEmpty = message.text === '' && message.toolCalls.length === 0;
  const text = isEmpty ? `[${notes.join(', ')}]` : message.text;
  return { ...message, text, ...(files.length > 0 && { files }) };
}

/** The file of a picture, or why it is none: whatever fails, the answer was paid for and is recorded. */
async function keep(
  attempt: ThinkingAttempt,
  name: string,
  base64: string,
): Promise<MadeFile | string> {
  const { parts, run } = attempt;
  const { id: jobId, organization_id: organizationId } = run.job;
  const owner = { organizationId, userId: userOf(attempt), jobId, isOnce: true };
  const bytes = Buffer.from(base64, 'base64');
  try {
    const row = await parts.files.create(
      owner,
      `${name}.${endingOf(bytes)}`,
      Readable.from([bytes]),
    );
    return {
      id: row.id,
      name: row.name,
      mediaType: row.media_type,
      tokens: pictureTokens,
      bytes: Number(row.bytes),
      sha256: row.sha256,
    };
  } catch (error) {
    if (error instanceof PlatformError) return error.message;
    parts.context.log.error({ err: error, job_id: jobId }, 'a picture of a model cannot be kept');
    return 'the platform failed';
  }
}

function endingOf(bytes: Buffer): string {
  const type = mediaTypeOf(bytes.subarray(0, headBytes), false, '');
  return isPicture(type) ? type.slice('image/'.length) : 'bin';
}

/** Reports an answer to the clients that follow the job, with the pictures that it has. */
export function reportMessage(
  attempt: ThinkingAttempt,
  step: number,
  { text, files }: AssistantMessage,
): void {
  const content = cutText(text, messageShownMax);
  const made = files === undefined ? {} : { files: files.map(madeFile) };
  report(attempt, { type: 'message', data: { role: 'assistant', content, step, ...made } });
}

/** A file as skills are told of it. */
export const madeFile = ({ id, name, mediaType, bytes, sha256 }: MadeFile): SkillFile => ({
  type: 'file',
  id,
  name,
  media_type: mediaType,
  bytes,
  sha256,
});
