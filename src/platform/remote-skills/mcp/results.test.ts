import { expect, test } from 'vitest';
import { growthOf, linearGrowthMax } from '../../../../test/support/growth.ts';
import { outputOf } from './results.ts';

const tool = { name: 'echo', output: null };
const outputWith = (result: object) => outputOf(tool, result as never, () => {});
const text = (content: string) => ({ type: 'text', text: content });

test('a block that repeats the structured content is left out, in whatever order its members are', () => {
  const structuredContent = { a: 1, b: [{ c: null }] };
  const content = [text('{"b":[{"c":null}],"a":1}')];
  expect(outputWith({ structuredContent, content })).toEqual(structuredContent);
});

test.each([
  ['null', null],
  ['of no type', {}],
  ['of an unknown type', { type: 'video', data: '' }],
  ['a text without text', { type: 'text' }],
  ['an image without its type', { type: 'image', data: '' }],
  ['a link without a name', { type: 'resource_link', uri: 'a:b' }],
  ['a resource without an address', { type: 'resource', resource: {} }],
])('a block that is %s is refused with its place', (_what, block) => {
  expect(() => outputWith({ content: [text('a'), block] })).toThrow(
    'does not answer as the protocol says: the block 1 of the content of echo is none',
  );
});

test('many blocks beside a structured content of many members take linear time', async () => {
  const resultOf = (length: number) => {
    const names = Array.from({ length: length / 20 }, (_, i) => [`n${i}`, 1]);
    const content = Array.from({ length: length / 60 }, () => text('{}'));
    return JSON.stringify({ structuredContent: Object.fromEntries(names), content });
  };
  const growth = await growthOf(resultOf, (json) => outputWith(JSON.parse(json)));
  expect(growth).toBeLessThan(linearGrowthMax);
});
