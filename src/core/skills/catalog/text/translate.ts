/**
 * Translates a text with the agent's model. The pieces of a long text are translated concurrently and
 * joined with exactly the original white space between them.
 */

import { defineSkill } from '../../definition.ts';
import { inParallel } from '../_support/in-parallel.ts';
import { quote, withoutTags } from '../_support/quoting.ts';
import { objectWith, type Static, textWith } from '../_support/schemas.ts';
import { splitText } from '../_support/splitting.ts';
import { wholeAnswer } from '../_support/whole-answer.ts';

/**
 * Characters of one piece. The answer is as long as the piece, and many models stop at 4,096 tokens. This
 * many characters need fewer tokens in nearly every pair of languages.
 */
export const pieceLengthMax = 4_000;

/** At three bytes a character the translation fits into the 1 MiB of an output. */
const textLengthMax = 300_000;
const termLengthMax = 100;

const parameters = objectWith(['text', 'to'], {
  text: textWith(textLengthMax, 'Text to translate.'),
  to: textWith(100, 'Language to translate into, by name or tag (`de-CH`).'),
  from: textWith(100, 'Language of the text, where the model should not guess.'),
  tone: textWith(200, 'How it should sound: `formal`, `as to a friend`.'),
  glossary: {
    type: 'object',
    maxProperties: 200,
    propertyNames: { type: 'string', minLength: 1, maxLength: termLengthMax },
    additionalProperties: { type: 'string', minLength: 1, maxLength: termLengthMax },
    description: 'Translations of terms, by term.',
  },
});
const output = objectWith('all', { text: { type: 'string', description: 'The translation.' } });
type Input = Static<typeof parameters>;

export default defineSkill({
  category: 'text',
  name: 'translate',
  version: 'v1.0',
  displayName: 'Translate',
  description:
    'Translates a text and keeps its layout: paragraphs, Markdown, code and placeholders. Long texts ' +
    'are translated in parts.',
  parameters,
  output,
  timeoutMs: 1_200_000,
  examples: [
    {
      input: {
        text: '# Opening hours\n\nThe museum is open from **nine to five**.\n',
        to: 'German',
        tone: 'formal',
        glossary: { museum: 'Museum' },
      },
    },
  ],

  async run(input, ctx) {
    const pieces = splitText(input.text, pieceLengthMax);
    const instructions = instructionsFor(input);
    let done = 0;
    const translated = await inParallel(pieces, ctx.signal, async (piece) => {
      const [before, core, after] = withoutSurroundings(piece);
      if (core === '') return piece;
      const quoted = quote({ instructions, task: 'Translate this text.', text: core });
      const { text, isCut } = await ctx.generate(quoted.request);
      const translation = wholeAnswer(withoutTags(text, quoted), {
        isCut,
        kind: 'translation',
        remedy: 'raise MODEL_OUTPUT_TOKENS',
      });
      done += 1;
      if (pieces.length > 1) {
        ctx.progress(done / pieces.length, `translated ${done} of ${pieces.length} parts`);
      }
      return before + translation + after;
    });
    return { text: translated.join('') };
  },
});

function instructionsFor({ to, from, tone, glossary = {} }: Input): string[] {
  const terms = Object.entries(glossary).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `You translate a text${from === undefined ? '' : ` from ${from}`} into ${to}.`,
    ...(tone === undefined ? [] : [`The tone: ${tone}`]),
    'Translate everything and add nothing. What is in that language already stays as it is.',
    'Keep line ends, Markdown, HTML tags, code, links and placeholders such as {name} or %s. The text ' +
      'may be part of a longer one, and begin or end in the middle of a list or of code.',
    ...(terms.length === 0 ? [] : ['These terms are translated so, as JSON:']),
    ...terms.map(([term, translation]) => JSON.stringify({ term, translation })),
    'Answer with the translation alone.',
  ];
}

/** White space before the text, the text, white space after it. */
function withoutSurroundings(piece: string): [string, string, string] {
  const core = piece.trim();
  const begin = piece.indexOf(core);
  return [piece.slice(0, begin), core, piece.slice(begin + core.length)];
}
