/** The file of `skillwright types`. */
import { createClient } from '@skillwright/client';
import { expect, test } from 'vitest';
import { readSkills, typesOfSkills } from './skill-types.ts';

const id = 'text/v1.0/word-count';
const output = { type: 'object', required: ['words'], properties: { words: { type: 'integer' } } };
const skill = { id, title: 'Counts words.', input: { type: 'object' }, output };

test('each skill has the types of its schemas under its name', async () => {
  const input = {
    title: 'Any title',
    type: 'object',
    required: ['text'],
    properties: { text: { type: 'string' }, unit: { enum: ['words', 'lines'] } },
  };
  const file = await typesOfSkills([{ ...skill, input }]);
  expect(file).toContain("declare module '@skillwright/client'");
  expect(file).toContain(
    '"text/v1.0/word-count": { input: input_of__text__v1_0__word_count.Input; output: output_of__text__v1_0__word_count.Output };',
  );
  expect(file).toContain('text: string');
  expect(file).toContain('unit?: ("words" | "lines")');
  expect(file).toContain('words: number');
  expect(file).not.toContain('[k: string]');
});

test('definitions and references of a schema are types of their own', async () => {
  const component = '#/components/schemas/OwnGrow_v1_0_Input';
  const schemas = {
    OwnGrow_v1_0_Input: {
      type: 'object',
      properties: { root: { $ref: `${component}_node` }, next: { $ref: component } },
    },
    OwnGrow_v1_0_Input_node: {
      type: 'object',
      properties: { under: { type: 'array', items: { $ref: `${component}_node` } } },
    },
    OwnGrow_v1_0_Output: {
      type: 'array',
      minItems: 2,
      prefixItems: [{ type: 'string' }, { type: 'number' }],
      items: false,
    },
  };
  const post = { operationId: 'ownGrow_v1_0', description: 'Grows.' };
  const paths = { '/api/jobs/{jobId}/cancel': { post }, '/api/own/v1.0/grow': { post } };
  const client = createClient({
    url: 'http://platform',
    fetch: async () => Response.json({ paths, components: { schemas } }),
  });

  const skills = await readSkills(client);

  expect(skills.map(({ id: one, title }) => [one, title])).toEqual([['own/v1.0/grow', 'Grows.']]);
  const file = await typesOfSkills(skills);
  expect(file).toContain('root?: Node');
  expect(file).toContain('next?: Input');
  expect(file).toContain('under?: Node[]');
  expect(file).toContain('export type Output = [string, number]');
});

test('nothing in a schema becomes code of the file', async () => {
  const input = {
    type: 'object',
    description: 'ends */ declare const evil: string; /*',
    properties: { a: { type: 'string', tsType: 'Evil', description: '*/ evil()' } },
  };
  const file = await typesOfSkills([{ ...skill, title: '*/ evil()', input }]);
  expect(file).not.toContain('*/ declare');
  expect(file).not.toContain('*/ evil');
  expect(file).not.toContain('Evil');
});

test.each([
  ['a reference out of the schema', { $ref: 'file:///etc/hostname' }],
  ['a reference to the network', { $ref: 'http://127.0.0.1:9/schema.json' }],
  ['a reference to nothing', { $ref: '#/$defs/none' }],
  ['a schema that is too large', { type: 'string', description: 'x'.repeat(300_000) }],
  ['a schema that is not an object', true],
])('%s is unknown', async (_what, input) => {
  const file = await typesOfSkills([{ ...skill, input }]);
  expect(file).toContain('export type Input = unknown;');
  expect(file).toContain('words: number');
});
