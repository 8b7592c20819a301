import { expect, test } from 'vitest';
import { emptyText, type GrowingText, grown } from './growing.ts';
import { isSafeAddress, type MarkdownNode, parsed } from './parse.ts';

const types = (nodes: readonly MarkdownNode[] = []): string[] =>
  nodes.flatMap(({ token, children }) => [token.type, ...types(children)]);
const depth = (nodes: readonly MarkdownNode[]): number =>
  nodes.reduce((most, { children }) => Math.max(most, 1 + depth(children)), 0);

test.each([
  ['https://example.com/a', true],
  ['HTTP://example.com', true],
  ['mailto:ada@example.com', true],
  ['javascript:alert(1)', false],
  ['java\nscript:alert(1)', false],
  ['data:text/html,x', false],
  ['vbscript:x', false],
  ['//example.com', false],
  ['/console/o/default/jobs', false],
  ['https:///x', false],
  ['#here', false],
])('%j is an address to lead to: %j', (address, is) => {
  expect(isSafeAddress(address)).toBe(is);
});

test.each([
  ['<img src=x onerror=alert(1)>', ['paragraph_open', 'text']],
  ['[x](javascript:alert(1))', ['paragraph_open', 'text']],
  ['![x](https://example.com/x.png)', ['paragraph_open', 'image']],
  ['see https://example.com now', ['paragraph_open', 'text', 'link_open', 'text', 'text']],
  ['run main.sh', ['paragraph_open', 'text']],
])('%s is parsed as %j', (text, expected) => {
  expect(types(parsed(text))).toEqual(expected);
});

test('a tree is bounded in nodes and depth', () => {
  expect(parsed('- a\n'.repeat(20_000))).toBeUndefined();
  expect(parsed('x'.repeat(300_000))).toBeUndefined();
  const nested = parsed(`${'*'.repeat(500)}a${'*'.repeat(500)}`) ?? [];
  expect(depth(nested)).toBeLessThan(40);
  expect(depth(parsed(`${'> '.repeat(5_000)}a`) ?? [])).toBeLessThan(40);
});

const text =
  '# Title\n\nOne.\n\n- a\n\n- b\n\n```js\nx\n\ny\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.';

function written(step: number): GrowingText[] {
  const states = [emptyText];
  for (let to = 0; to <= text.length; to += step) {
    states.push(grown(states.at(-1) ?? emptyText, text.slice(0, to)));
  }
  return [...states, grown(states.at(-1) ?? emptyText, text)];
}

test.each([1, 3, 7, 1_000])('a text written %i characters at a time has whole blocks', (step) => {
  const states = written(step);
  const { pieces, tail } = states.at(-1) as GrowingText;

  expect([...pieces, tail].flatMap((piece) => types(parsed(piece)))).toEqual(types(parsed(text)));
  for (const [i, { pieces }] of states.entries()) {
    expect(pieces.slice(0, states[i - 1]?.pieces.length)).toEqual(states[i - 1]?.pieces ?? []);
  }
});

test('a text that is written word by word is parsed in proportion to its length', () => {
  const code = `\`\`\`\n${'a line of code\n'.repeat(4_000)}`;
  let parses = 0;
  let characters = 0;
  let state = emptyText;
  for (let to = 0; to < code.length; to += 15) {
    const next = grown(state, code.slice(0, to));
    if (next !== state) {
      parses += 1;
      characters += next.tail.length;
    }
    state = next;
  }
  expect(parses).toBeLessThan(200);
  expect(characters).toBeLessThan(code.length * 40);
});

test('a shorter text begins anew', () => {
  expect(grown(grown(emptyText, 'One.\n\nTwo.'), 'Three')).toEqual({
    pieces: [],
    tail: 'Three',
    piecedTo: 0,
  });
});
