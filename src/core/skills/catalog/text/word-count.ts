/**
 * Counts words, sentences and characters by the rules of Unicode: words without spaces between them count,
 * and a grapheme counts as one character. Long texts are counted in several turns of the event loop, so
 * that the executor's other runs can continue.
 */

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { defineSkill } from '../../definition.ts';
import { objectWith } from '../_support/schemas.ts';

const wordsPerMinute = 200;
const segmentsPerTurn = 10_000;

const parameters = objectWith(['text'], {
  text: { type: 'string', maxLength: 2_000_000, description: 'Text to count.' },
  locale: {
    type: 'string',
    pattern: '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$',
    maxLength: 35,
    description: 'Language tag such as ja or de-CH, where its rules should decide.',
  },
});
const output = objectWith('all', {
  words: { type: 'integer', description: 'Words, numbers included.' },
  characters: { type: 'integer', description: 'Characters as readers see them.' },
  characters_without_spaces: { type: 'integer', description: 'The same without white space.' },
  sentences: { type: 'integer', description: 'Sentences; a single line end does not end one.' },
  lines: { type: 'integer', description: 'Lines; an empty text has none.' },
  reading_time_minutes: {
    type: 'number',
    description: `Minutes at ${wordsPerMinute} words a minute, to a tenth.`,
  },
});

export default defineSkill({
  category: 'text',
  name: 'word-count',
  version: 'v1.0',
  displayName: 'Word count',
  description:
    'Counts words, characters, sentences and lines of a text in any script, and estimates how ' +
    'long it takes to read.',
  parameters,
  output,
  examples: [
    {
      input: { text: 'Skills do one thing. They do it well.' },
      output: {
        words: 8,
        characters: 37,
        characters_without_spaces: 30,
        sentences: 2,
        lines: 1,
        reading_time_minutes: 0.1,
      },
    },
  ],

  async run({ text, locale }, ctx) {
    const count = (granularity: Granularity, counts: Counts) =>
      countSegments(segmentsOf(granularity, text, locale), counts, ctx.signal);
    const words = await count('word', (segment) => segment.isWordLike === true);
    return {
      words,
      characters: await count('grapheme', () => true),
      characters_without_spaces: await count('grapheme', ({ segment }) => /\S/.test(segment)),
      sentences: await count('sentence', ({ segment }) => /[\p{L}\p{N}]/u.test(segment)),
      lines: linesOf(text),
      reading_time_minutes: readingTime(words),
    };
  },
});

type Granularity = 'grapheme' | 'word' | 'sentence';
type Counts = (segment: Intl.SegmentData) => boolean;

/** Hard-wrapped prose has a line end in the middle of its sentences, which Unicode would end. */
function segmentsOf(granularity: Granularity, text: string, locale: string | undefined) {
  const unwrapped =
    granularity === 'sentence' ? text.replace(/(\S)(?:\r\n|\r|\n)(?=\S)/g, '$1 ') : text;
  return new Intl.Segmenter(locale, { granularity }).segment(unwrapped);
}

async function countSegments(
  segments: Intl.Segments,
  counts: Counts,
  signal: AbortSignal,
): Promise<number> {
  let counted = 0;
  let seen = 0;
  for (const segment of segments) {
    if (counts(segment)) counted += 1;
    seen += 1;
    if (seen % segmentsPerTurn === 0) await yieldToEventLoop();
    signal.throwIfAborted();
  }
  return counted;
}

function linesOf(text: string): number {
  if (text === '') return 0;
  const ends = text.match(/\r\n|\n|\r/g)?.length ?? 0;
  return /[\r\n]$/.test(text) ? ends : ends + 1;
}

function readingTime(words: number): number {
  return words === 0 ? 0 : Math.max(0.1, Math.round((words / wordsPerMinute) * 10) / 10);
}
