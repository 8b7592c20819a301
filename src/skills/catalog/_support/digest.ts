/**
 * Makes a long text short enough to be read at once: cuts it into pieces, has notes taken on each,
 * and again on the notes while these are too long. Ends always, for notes are cut to a quarter of a
 * piece, whatever the model writes. A text of one piece is its own digest and costs nothing.
 */

import { type SkillContext, SkillError } from '../../definition.ts';
import { inParallel } from './in-parallel.ts';
import { quote } from './quoting.ts';
import { pieceLengthMax, splitText } from './splitting.ts';

/** Characters of the notes on one piece; about 1,000 words. */
const notesLengthMax = pieceLengthMax / 4;

export interface Digest {
  /** At most `pieceLengthMax` characters: the text itself, or notes on its parts in their order. */
  readonly text: string;
  /** Pieces of the text that were read. */
  readonly parts: number;
}

/** What notes are taken for, and in whose run. */
export interface NoteTaking {
  readonly ctx: SkillContext;
  /** What to note; one line each. */
  readonly instructions: readonly string[];
}

/** Digests the text and reports how far that is. */
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
    const asked = quote({
      instructions: [...instructions, 'Answer with the notes alone, in the language of the text.'],
      task: `Take your notes on this text, which is part ${i + 1} of ${pieces.length}.`,
      text: piece,
    });
    const { text, isCut } = await ctx.generate({ ...asked.request, temperature: 0 });
    const note = asked.bare(text);
    // One that breaks off is used, as one that is too long is cut; without a word the part is not read.
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
