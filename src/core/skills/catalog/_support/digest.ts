/**
 * Shortens a long text to one piece: splits it, asks the model for notes on each piece, and repeats this
 * on the notes while they are too long. It always ends, because notes are cut to a quarter of a piece. A
 * text of one piece is its own digest and needs no call of the model.
 */

import { type SkillContext, SkillError } from '../../definition.ts';
import { inParallel } from './in-parallel.ts';
import { quote, withoutTags } from './quoting.ts';
import { pieceLengthMax, splitText } from './splitting.ts';

/** Characters of the notes on one piece; about 1,000 words. */
const notesLengthMax = pieceLengthMax / 4;

export interface Digest {
  /** At most `pieceLengthMax` characters: the text itself, or notes on its parts in their order. */
  readonly text: string;
  /** Number of pieces of the text. */
  readonly parts: number;
}

/** The purpose of the notes, and the run that asks for them. */
export interface NoteTaking {
  readonly ctx: SkillContext;
  /** What to note; one line each. */
  readonly instructions: readonly string[];
}

/** Digests the text and reports progress. */
export async function digestOf(text: string, { ctx, instructions }: NoteTaking): Promise<Digest> {
  const parts = piecesToRead(text);
  let read = 0;
  const noteRead = () => {
    read += 1;
    if (read > parts.length) return;
    ctx.progress(read / (parts.length + 1), `read ${read} of ${parts.length} parts`);
  };
  let pieces = parts;
  while (pieces.length > 1) {
    pieces = piecesToRead(await notesOn(pieces, { ctx, instructions }, noteRead));
  }
  return { text: pieces[0] ?? '', parts: parts.length };
}

function piecesToRead(text: string): string[] {
  return splitText(text, pieceLengthMax).filter((piece) => piece.trim() !== '');
}

async function notesOn(
  pieces: readonly string[],
  { ctx, instructions }: NoteTaking,
  noteRead: () => void,
): Promise<string> {
  const notes = await inParallel(pieces, ctx.signal, async (piece, i) => {
    const quoted = quote({
      instructions: [...instructions, 'Answer with the notes alone, in the language of the text.'],
      task: `Take your notes on this text, which is part ${i + 1} of ${pieces.length}.`,
      text: piece,
    });
    const { text, isCut } = await ctx.generate({ ...quoted.request, temperature: 0 });
    const note = withoutTags(text, quoted);
    // Cut notes are used. Empty cut notes fail, because the part would be missing.
    if (isCut && note.trim() === '') {
      const place = `part ${i + 1} of ${pieces.length}`;
      const message = `The model broke off before its first note on ${place}: raise MODEL_OUTPUT_TOKENS`;
      throw new SkillError(message, { retryable: false });
    }
    noteRead();
    return splitText(note, notesLengthMax)[0] ?? '';
  });
  return notes.filter((note) => note.trim() !== '').join('\n\n');
}
