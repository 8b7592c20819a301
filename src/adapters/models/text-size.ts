/**
 * The size of a prompt by kinds of text, from which its tokens are estimated: a token of English has four
 * bytes, one of base64 or Arabic two, and a rare character may take a token for each of its bytes. Pure.
 */

import type { DialogueMessage } from './model.ts';

/** UTF-8 bytes of each kind, and the tokens that providers add around messages and tools. */
export interface TextSize {
  /** Words in small Latin letters, with a capital at most, and single spaces. */
  readonly words: number;
  /** Other ASCII: digits, punctuation, code. */
  readonly dense: number;
  /** Letters and digits in runs longer than words: base64, hexadecimal numbers. */
  readonly runs: number;
  /** Characters of two bytes: Cyrillic, Greek, Arabic, Hebrew, letters with accents. */
  readonly two: number;
  /** Characters of three bytes: Chinese, Japanese, Korean, the scripts of India. */
  readonly three: number;
  /** Characters of four bytes: emoji. */
  readonly four: number;
  readonly framing: number;
}

export const textKinds = ['words', 'dense', 'runs', 'two', 'three', 'four'] as const;
export type TextKind = (typeof textKinds)[number];

/** Letters of a word at most; longer runs are no words of a language that tokenizers know. */
const wordMax = 20;

const noText: TextSize = { words: 0, dense: 0, runs: 0, two: 0, three: 0, four: 0, framing: 0 };

/** Classes of the UTF-16 units of a text. */
const [other, small, capital, digit] = [0, 1, 2, 3];
const classes = new Uint8Array(0x1_0000);
classes.fill(small, 0x61, 0x7b);
classes.fill(capital, 0x41, 0x5b);
classes.fill(digit, 0x30, 0x3a);
const space = 0x20;

/** One pass without a call for a character: the first turn of an agent measures its whole prompt. */
export function sizeOfText(text: string): TextSize {
  const size = { ...noText };
  const { length } = text;
  let i = 0;
  while (i < length) {
    const first = text.charCodeAt(i);
    const kind = classes[first];
    const begin = i;
    i += 1;
    if (kind === other) {
      if (first === space && text.charCodeAt(i) !== space) size.words += 1;
      else if (first < 0x80) size.dense += 1;
      else if (first < 0x800) size.two += 2;
      // A pair of surrogates is one character.
      else if (first >> 10 === 0x36 && text.charCodeAt(i) >> 10 === 0x37) {
        size.four += 4;
        i += 1;
      } else size.three += 3;
      continue;
    }
    while (i < length && classes[text.charCodeAt(i)] === small) i += 1;
    /** A word has small letters after a first one, which may be a capital. */
    let isWord = kind !== digit;
    while (i < length && classes[text.charCodeAt(i)] !== other) {
      isWord = false;
      i += 1;
    }
    const run = i - begin;
    if (run > wordMax) size[isRepeated(text, begin, i) ? 'words' : 'runs'] += run;
    else if (isWord) size.words += run;
    else size.dense += run;
  }
  return size;
}

/** One letter again and again has few tokens, too. */
function isRepeated(text: string, from: number, end: number): boolean {
  const code = text.charCodeAt(from);
  for (let i = from + 1; i < end; i++) if (text.charCodeAt(i) !== code) return false;
  return true;
}

export function sumOfSizes(sizes: readonly TextSize[]): TextSize {
  const sum = { ...noText };
  for (const size of sizes) {
    for (const kind of textKinds) sum[kind] += size[kind];
    sum.framing += size.framing;
  }
  return sum;
}

/** UTF-8 bytes of a token, at least on average: English text has four to five, code and other languages three. */
const bytesPerToken = 3;

/** The tokens of a text of which only the bytes are known, rather too many. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** The same for a text of which the kinds are known too. */
export function tokensOfSize(size: TextSize): number {
  return size.framing + tokensOfBytes(textKinds.reduce((sum, kind) => sum + size[kind], 0));
}

/** Tokens that providers add to each message and each tool. */
const tokensAround = 8;
/** Bytes of the marks around the result of a tool (`withMarks`). */
const markBytes = 24;
/** Messages do not change, and each turn sends the earlier ones again. */
const sizes = new WeakMap<DialogueMessage, TextSize>();

export function sizeOfMessages(messages: readonly DialogueMessage[]): TextSize {
  return sumOfSizes(messages.map(sizeOfMessage));
}

function sizeOfMessage(message: DialogueMessage): TextSize {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const calls = message.role === 'assistant' ? message.toolCalls : [];
  const texts = [message.text, ...calls.flatMap(({ name, input }) => [name, input])];
  if (message.role === 'assistant') {
    const { opaque, reasoning } = message;
    texts.push(opaque === undefined ? '' : JSON.stringify(opaque), reasoning?.text ?? '');
  }
  const mark = message.role === 'tool' ? markBytes : 0;
  const files = message.files ?? [];
  const ofFiles = files.reduce((sum, { tokens }) => sum + tokens, 0);
  const around = tokensAround * (1 + calls.length) + ofFiles;
  const framing = { ...noText, dense: mark, framing: around };
  const size = sumOfSizes([framing, ...texts.map(sizeOfText)]);
  sizes.set(message, size);
  return size;
}
