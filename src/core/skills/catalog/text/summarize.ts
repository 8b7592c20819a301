/** Summarizes a text with the agent's model. A long text is summarized from notes on its pieces. */

import { defineSkill } from '../../definition.ts';
import { digestOf } from '../_support/digest.ts';
import { quote, withoutTags } from '../_support/quoting.ts';
import { integer, objectWith, textWith } from '../_support/schemas.ts';
import { wholeAnswer } from '../_support/whole-answer.ts';

const wordsDefault = 150;
/** Enough notes on few pieces for a long summary, and not too many on a long text. */
const noteWords = { min: 200, max: 600 };

const parameters = objectWith(['text'], {
  text: textWith(1_000_000, 'Text to summarize.'),
  max_words: integer(
    { minimum: 10, maximum: 2_000, default: wordsDefault },
    'Words that the summary should not exceed; the model counts roughly.',
  ),
  focus: textWith(1_000, 'What matters most to the reader.'),
  format: {
    enum: ['paragraph', 'bullets'],
    default: 'paragraph',
    description: 'Whether to write prose or a Markdown list.',
  },
});
const output = objectWith('all', {
  summary: { type: 'string', description: 'The summary.' },
  parts: { type: 'integer', description: 'Parts in which the text was read.' },
});

export default defineSkill({
  category: 'text',
  name: 'summarize',
  version: 'v1.0',
  displayName: 'Summarize',
  description:
    'Says in few words what a text says, in its language, as a paragraph or as a list. Long texts ' +
    'are read in parts.',
  parameters,
  output,
  timeoutMs: 600_000,
  examples: [
    {
      input: {
        text:
          'The committee met on Tuesday. It approved the budget of 40,000 francs by five votes to ' +
          'two, and put the question of the new roof off until May.',
        max_words: 20,
        focus: 'decisions',
        format: 'bullets',
      },
    },
  ],

  async run({ text, max_words: words = wordsDefault, focus, format }, ctx) {
    const interest = focus === undefined ? [] : [`What matters most to the reader: ${focus}`];
    const digest = await digestOf(text, {
      ctx,
      instructions: [
        'You take notes on a part of a longer text, from which a summary of all of it will be written.',
        `Note the main points, names, figures, dates and decisions in at most ${noteLength(words)} words.`,
        ...interest,
      ],
    });
    const isWhole = digest.parts === 1;
    const quoted = quote({
      instructions: [
        isWhole
          ? 'You summarize a text.'
          : 'You summarize a text of which you have notes on all parts, in their order. Write about ' +
            'the text, not about the notes.',
        `Write at most ${words} words, in the language of the text, as ${shapes[format ?? 'paragraph']}.`,
        ...interest,
        'Say only what the text says. Answer with the summary alone, without a heading.',
      ],
      task: 'Summarize this text.',
      text: digest.text,
    });
    const { text: answer, isCut } = await ctx.generate(quoted.request);
    const summary = wholeAnswer(withoutTags(answer, quoted), {
      isCut,
      kind: 'summary',
      remedy: 'ask for fewer words (max_words) or raise MODEL_OUTPUT_TOKENS',
    });
    return { summary, parts: digest.parts };
  },
});

const shapes = {
  paragraph: 'prose in one paragraph, or in a few where it is long',
  bullets: 'a Markdown list whose lines begin with "- "',
};

function noteLength(words: number): number {
  return Math.min(Math.max(words, noteWords.min), noteWords.max);
}
