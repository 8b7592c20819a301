/**
 * Splits a long text into pieces that a model reads one at a time. Promises that the joined pieces are the
 * text, that no piece exceeds the limit, that there are at most about twice as many as needed, and that
 * no grapheme is cut unless it alone exceeds a piece. A cut is made at the last end of a paragraph in the
 * second half of the piece, else of a sentence, a line, a word. A fenced code block that fits into a piece
 * stays whole.
 */

/** UTF-16 code units of a text, from `start` up to `end`. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** The last boundary of a kind at or before `limit`; 0 when there is none. */
type LastBorder = (window: string, limit: number) => number;

/**
 * Characters of one piece. They are about 6,000 tokens of English and at most about 24,000 of any script.
 * A piece, its instructions and an answer therefore fit into the 32,768 tokens of small models, and a long
 * text still needs few calls.
 */
export const pieceLengthMax = 24_000;

/** Characters after a boundary that decide whether a sentence or word ends there. */
const lookAhead = 128;

type Granularity = 'grapheme' | 'word' | 'sentence';
/** Made when they are used: the data of the first takes 2 MiB in every executor. */
const segmenters = new Map<Granularity, Intl.Segmenter>();
const proseBorders: readonly LastBorder[] = [endOfParagraph, endOfSentence, endOfLine, endOfWord];
const codeBorders: readonly LastBorder[] = [endOfParagraph, endOfLine, endOfWord];

/** The pieces in order; none for an empty text. `lengthMax` is in UTF-16 code units, at least 2. */
export function splitText(text: string, lengthMax: number): string[] {
  const blocks = codeBlocks(text);
  const pieces: string[] = [];
  let start = 0;
  while (text.length - start > lengthMax) {
    const end = endOfPiece(text, { start, end: start + lengthMax }, blocks);
    pieces.push(text.slice(start, end));
    start = end;
  }
  if (start < text.length) pieces.push(text.slice(start));
  return pieces;
}

function segmenterOf(granularity: Granularity): Intl.Segmenter {
  let segmenter = segmenters.get(granularity);
  if (segmenter === undefined) {
    segmenter = new Intl.Segmenter('en', { granularity });
    segmenters.set(granularity, segmenter);
  }
  return segmenter;
}

/** The end of the piece at the start of `longest`, which is the longest possible piece. */
function endOfPiece(text: string, longest: Range, blocks: readonly Range[]): number {
  const { start, end } = longest;
  const lengthMax = end - start;
  const around = (at: number) => blockAround(at, blocks);
  const borders = around(end) === undefined ? proseBorders : codeBorders;
  const cut = start + lastCut(text.slice(start, end + lookAhead), lengthMax, borders);
  const block = around(cut);
  if (block === undefined || block.end - block.start > lengthMax) return cut;
  return block.end <= end ? block.end : block.start;
}

/** The block that contains `at`, by binary search: blocks are in order, and there may be very many. */
function blockAround(at: number, blocks: readonly Range[]): Range | undefined {
  let [low, high] = [0, blocks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((blocks[middle] as Range).end <= at) low = middle + 1;
    else high = middle;
  }
  const block = blocks[low];
  return block !== undefined && block.start < at ? block : undefined;
}

function lastCut(window: string, lengthMax: number, borders: readonly LastBorder[]): number {
  const characters = segmenterOf('grapheme').segment(window);
  const beginOfCharacter = (at: number) => characters.containing(at)?.index ?? 0;
  for (const lastBorder of borders) {
    const at = lastBorder(window, lengthMax);
    if (at >= lengthMax / 2 && beginOfCharacter(at) === at) return at;
  }
  const at = beginOfCharacter(lengthMax);
  return at > 0 ? at : codePointBefore(window, lengthMax);
}

function endOfParagraph(window: string, limit: number): number {
  let end = 0;
  for (const blank of window.slice(0, limit).matchAll(/\n(?:[^\S\n]*\n)+/g)) {
    end = blank.index + blank[0].length;
  }
  return end;
}

/** Hard-wrapped prose has a line end in the middle of its sentences, which Unicode would end. */
function endOfSentence(window: string, limit: number): number {
  const unwrapped = window.replace(
    /(\S)(\r\n|\r|\n)(?=\S)/g,
    (_all, last: string, lineEnd: string) => last + ' '.repeat(lineEnd.length),
  );
  return segmenterOf('sentence').segment(unwrapped).containing(limit)?.index ?? 0;
}

function endOfLine(window: string, limit: number): number {
  return window.lastIndexOf('\n', limit - 1) + 1;
}

function endOfWord(window: string, limit: number): number {
  return segmenterOf('word').segment(window).containing(limit)?.index ?? 0;
}

function codePointBefore(window: string, limit: number): number {
  return (window.codePointAt(limit - 1) ?? 0) > 0xffff ? limit - 1 : limit;
}

/** Fenced code blocks of Markdown, from their first fence to the end of the last one's line. */
function codeBlocks(text: string): Range[] {
  const blocks: Range[] = [];
  let open: { start: number; fence: string } | undefined;
  for (const line of text.matchAll(/^[ \t]*(`{3,}|~{3,})([^\n]*)\n?/gm)) {
    const [all, fence = '', rest = ''] = line;
    if (open === undefined) {
      const isInline = fence.startsWith('`') && rest.includes('`');
      if (!isInline) open = { start: line.index, fence };
    } else if (fence.startsWith(open.fence) && rest.trim() === '') {
      blocks.push({ start: open.start, end: line.index + all.length });
      open = undefined;
    }
  }
  return blocks;
}
