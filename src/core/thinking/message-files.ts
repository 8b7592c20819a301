/** The files of one message of a dialogue. Pure. */
import type { AttachedFile, DialogueMessage, GivenFile } from '../../adapters/models/model.ts';

/** Tokens of a picture: the most that providers count. */
export const pictureTokens = 5_000;

interface Named {
  readonly name: string;
}

interface NamedFile extends Named {
  readonly id: string;
}

export const filesIn = (message: DialogueMessage): readonly AttachedFile[] => message.files ?? [];

/**
 * The message with a line of text for each of its files that has a note, instead of the file. The text of a model stays as it
 * is, because its provider may have signed it.
 */
export function inWords(
  message: DialogueMessage,
  noteOf: (file: AttachedFile) => string | null,
): DialogueMessage {
  const given = filesIn(message).map((file) => givenWith(file, noteOf(file)));
  const noted = given.filter(({ as }) => as === 'note');
  if (noted.length === 0) return message;
  const left = filesIn(message).filter((_, i) => given[i]?.as === 'file');
  if (message.role === 'assistant') {
    const { files = [], ...rest } = message;
    return left.length > 0 ? { ...rest, files: files.filter((one) => left.includes(one)) } : rest;
  }
  const { files: _, worded = [], ...rest } = message;
  const notes = noted.map(({ reason }) => `[${reason}]`);
  const texts = message.role === 'tool' ? [message.text, ...notes] : [...notes, message.text];
  const made = { ...rest, text: texts.join('\n\n'), worded: [...worded, ...noted] };
  return left.length > 0 ? { ...made, files: left } : made;
}

/** How a file is given that has this note, or none. */
export function givenWith({ id, name }: NamedFile, note: string | null): GivenFile {
  return { id, name, as: note === null ? 'file' : 'note', reason: note };
}

/** In place of a file for which a dialogue has no room any more. */
export const leftOutLater = ({ name }: Named) =>
  `The file ${JSON.stringify(name)} was shown before, and is left out`;

/** In place of a file for which a request has no room. */
export const noRoom = ({ name }: Named) =>
  `The file ${JSON.stringify(name)} is left out: the files of a request are too large together.`;
