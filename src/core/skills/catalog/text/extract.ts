/**
 * Extracts data from a text by a JSON Schema. A text longer than a piece is read in pieces, in one of two
 * ways. If the schema asks for lists only, the model extracts the entries of each piece, and the lists
 * are joined, so no entry is lost. For any other schema one piece is not enough: the model would invent
 * missing values, and joined answers might break the schema. The model then takes notes on each piece,
 * and one last call extracts the data from all notes.
 */

import { defineSkill, type SkillContext } from '../../definition.ts';
import { digestOf } from '../_support/digest.ts';
import { inParallel } from '../_support/in-parallel.ts';
import { joinLists, listsOnly } from '../_support/lists.ts';
import { quote } from '../_support/quoting.ts';
import { jsonSchema, objectWith, type Static, textWith } from '../_support/schemas.ts';
import { pieceLengthMax, splitText } from '../_support/splitting.ts';
import { validate } from '../_support/validating.ts';

const parameters = objectWith(['text', 'schema'], {
  text: textWith(1_000_000, 'Text to take the data out of.'),
  schema: jsonSchema('JSON Schema (draft 2020-12) of the data; descriptions of fields help.'),
  instructions: textWith(4_000, 'What to take and what to leave out.'),
});
const output = objectWith('all', { data: { description: 'The data, valid by the schema.' } });
type Input = Static<typeof parameters>;

export default defineSkill({
  category: 'text',
  name: 'extract',
  version: 'v1.0',
  displayName: 'Extract',
  description:
    'Takes data out of a text, in the shape of a JSON Schema: the parties of a contract, all dates, ' +
    'the entries of a list. Long texts are read in parts.',
  parameters,
  output,
  timeoutMs: 600_000,
  examples: [
    {
      input: {
        text: 'Invoice A-17 of 3 March 2026: two chairs at 80 francs each, a table at 240 francs.',
        schema: {
          type: 'object',
          required: ['number', 'items'],
          additionalProperties: false,
          properties: {
            number: { type: 'string' },
            items: {
              type: 'array',
              items: {
                type: 'object',
                required: ['name', 'price'],
                additionalProperties: false,
                properties: { name: { type: 'string' }, price: { type: 'number' } },
              },
            },
          },
        },
      },
    },
  ],

  async run(input, ctx) {
    const pieces = splitText(input.text, pieceLengthMax).filter((piece) => piece.trim() !== '');
    const [first = '', ...others] = pieces;
    if (others.length === 0) return { data: await dataIn({ text: first }, input, ctx) };
    if (listsOnly(input.schema)) return { data: await listsIn(pieces, input, ctx) };
    return { data: await dataInFindings(input, ctx) };
  },
});

/** Extracts the data from one piece: the text itself, or the notes on all of it. */
async function dataIn(
  { text, areFindings = false }: { text: string; areFindings?: boolean },
  input: Input,
  ctx: SkillContext,
): Promise<unknown> {
  const { request } = quote({
    instructions: [
      'You take data out of a text, in the shape of the schema that you are given.',
      ...(areFindings
        ? [
            'Of the text you have what was found in its parts, in their order; some of it may come twice.',
          ]
        : []),
      ...rules(input),
    ],
    task: 'Take the data out of this text.',
    text,
  });
  return (await ctx.generate({ ...request, schema: input.schema, temperature: 0 })).output;
}

async function listsIn(
  pieces: readonly string[],
  input: Input,
  ctx: SkillContext,
): Promise<unknown> {
  let read = 0;
  const parts = await inParallel(pieces, ctx.signal, async (piece) => {
    const data = await dataIn({ text: piece }, input, ctx);
    read += 1;
    ctx.progress(read / pieces.length, `read ${read} of ${pieces.length} parts`);
    return data;
  });
  return joinLists(input.schema, parts);
}

async function dataInFindings(input: Input, ctx: SkillContext): Promise<unknown> {
  // An invalid schema is refused before any call of the model.
  await validate({ schema: input.schema, data: null, errorsMax: 1 }, ctx.signal);
  const findings = await digestOf(input.text, {
    ctx,
    instructions: [
      'You look through a part of a longer text for the data that a schema asks for. Note all that ' +
        'bears on one of its fields, one finding a line: the field, a colon, and the words or figures ' +
        'of the text. Where the part has nothing of it, note nothing but "none".',
      ...rules(input),
      `The schema: ${JSON.stringify(input.schema)}`,
    ],
  });
  return dataIn({ text: findings.text, areFindings: true }, input, ctx);
}

function rules({ instructions }: Input): string[] {
  return [
    'Take only what the text says, as it says it. What it does not say is left out, or null, as the ' +
      'schema allows. Never make anything up.',
    ...(instructions === undefined ? [] : [`What to take and what to leave out: ${instructions}`]),
  ];
}
