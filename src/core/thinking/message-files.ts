/** The files of one message of a dialogue. Pure. */
import type { AttachedFile, DialogueMessage } from '../../adapters/models/model.ts';

/** Tokens of a picture: the most that providers count. */
export const pictureTokens = 5_000;

export const filesIn = (message: DialogueMessage): readonly AttachedFile[] => message.files ?? [];

/**
 * The message with a line of text for each of its files that has a note, instead of the file. The text of a model stays as it
 * is, because its provider may have signed it.
 */
export function inWords(
  message: DialogueMessage,
  noteOf: (file: AttachedFile) => string | null,
): DialogueMessage {
  const notes = filesIn(message).flatMap((file) => noteOf(file) ?? []);
  if (notes.length === 0) return message;
  if (message.role === 'assistant') {
    const { files = [], ...rest } = message;
    const left = files.filter((file) => noteOf(file) === null);
    return left.length > 0 ? { ...rest, files: left } : rest;
  }
  const { files = [], ...rest } = message;
  const left = files.filter((file) => noteOf(file) === null);
  const texts = message.role === 'tool' ? [message.text, ...notes] : [...notes, message.text];
  return { ...rest, text: texts.join('\n\n'), ...(left.length > 0 && { files: left }) };
}

/** In place of a file for which a dialogue has no room any more. */
export const leftOutLater = ({ name }: AttachedFile) =>
  `[The file ${JSON.stringify(name)} was shown before, and is left out]`;
