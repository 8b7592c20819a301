/**
 * A text that grows, in pieces that can be drawn one by one: blocks that are complete stay as they are, and only
 * the last one is parsed again. The work for a whole text is proportional to its length. No I/O.
 */
import { lastBlockAt } from './parse.ts';

export interface GrowingText {
  /** Each has one or more whole blocks. */
  readonly pieces: readonly string[];
  /** The last block, which may grow. */
  readonly tail: string;
  /** Characters that are in pieces. */
  readonly piecedTo: number;
}

export const emptyText: GrowingText = { pieces: [], tail: '', piecedTo: 0 };

/** A tail is parsed again once it has grown by this part of it, so that a long one is not parsed for each word. */
const growthMin = 1 / 16;

/** `text` begins with what has been given so far. */
export function grown(before: GrowingText, text: string): GrowingText {
  const from = text.length < before.piecedTo + before.tail.length ? emptyText : before;
  const added = text.length - from.piecedTo - from.tail.length;
  if (added === 0 || added < from.tail.length * growthMin) return from;
  const tail = text.slice(from.piecedTo);
  const at = lastBlockAt(tail);
  if (at === 0) return { ...from, tail };
  return {
    pieces: [...from.pieces, tail.slice(0, at)],
    tail: tail.slice(at),
    piecedTo: from.piecedTo + at,
  };
}
