import { expect, test } from 'vitest';
import { ExcessError } from './answer.ts';
import { EventDataReader } from './event-data.ts';

/** The data of the events in a text that arrives in chunks of `size` characters. */
function dataOf(text: string, size: number): string[] {
  const reader = new EventDataReader();
  const found: string[] = [];
  for (let at = 0; at < text.length; at += size) {
    found.push(...reader.push(text.slice(at, at + size)));
  }
  const rest = reader.rest();
  return rest === null ? found : [...found, rest];
}

test.each([1, 2, 3, 7, 1_000])('events are complete in chunks of %i characters', (size) => {
  const text =
    ': hi\n\nevent: a\ndata: one\nid: 1\n\ndata:two\r\n\r\ndata: a\ndata: b\n\n\ndata: last';

  expect(dataOf(text, size)).toEqual(['one', 'two', 'a\nb', 'last']);
});

test.each([1, 2, 3, 1_000])('lines may end with CR alone, in chunks of %i characters', (size) => {
  const text = 'event: a\rdata: one\r\rdata: two\r\n\r\ndata: three\r\r';

  expect(dataOf(text, size)).toEqual(['one', 'two', 'three']);
});

test('only the first space after the colon is removed', () => {
  expect(dataOf('data:  two\n\n', 100)).toEqual([' two']);
});

test.each([
  ['a line', 'x'.repeat(1024 * 1024)],
  ['lines', 'data: x\n'.repeat(128 * 1024)],
  ['many empty lines', 'data:\n'.repeat(64 * 1024)],
])('an event without end is refused before it takes much memory: %s', (_what, piece) => {
  const reader = new EventDataReader();

  expect(() => {
    for (let n = 0; n < 33; n += 1) reader.push(piece);
  }).toThrow(ExcessError);
});

test('an event may have all the pictures of an answer', () => {
  const piece = 'x'.repeat(1024 * 1024);
  const reader = new EventDataReader();
  reader.push('data: ');
  for (let n = 0; n < 25; n += 1) reader.push(piece);

  expect(reader.push('\n\n').map(({ length }) => length)).toEqual([25 * piece.length]);
});

test('many complete events do not count as one event without end', () => {
  const reader = new EventDataReader();
  const piece = `data: ${'x'.repeat(1024 * 1024)}\n\n`;

  for (let n = 0; n < 20; n += 1) expect(reader.push(piece)).toHaveLength(1);
});
