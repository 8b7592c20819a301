import { expect, test } from 'vitest';
import { plainEvents, withPlainEvents } from './plain-events.ts';

async function plain(...chunks: string[]): Promise<string[]> {
  const body = ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk)));
  const pieces: string[] = [];
  for await (const piece of plainEvents(body)) pieces.push(Buffer.from(piece).toString());
  return pieces;
}

test.each([
  ['a line feed', 'event: message\nid: 1\ndata: {"a":1}\n\n'],
  ['a carriage return', 'event: message\rid: 1\rdata: {"a":1}\r\r'],
  ['both', 'event: message\r\nid: 1\r\ndata: {"a":1}\r\n\r\n'],
])('an event whose lines end with %s is left, with line feeds', async (_end, text) => {
  const expected = 'event: message\nid: 1\ndata: {"a":1}\n\n';
  expect((await plain(text)).join('')).toBe(expected);
  expect((await plain(...text)).join('')).toBe(expected);
});

test('comments, other fields, blank lines and events without data are left out', async () => {
  const text = ': comment\nretry: 1\nunknown\n\n\n\nid: 7\n\ndata:\n\ndata: {"b":2}\n\n\n';
  expect(await plain(text)).toEqual(['data: {"b":2}\n\n']);
});

test('an event of several lines of data is left whole', async () => {
  const text = 'data: {"a":\ndata: 1}\n\n';
  expect((await plain(text)).join('')).toBe(text);
});

test('many events that arrive together are passed on in many turns', async () => {
  let turns = 0;
  let isReading = true;
  const count = () => {
    turns += 1;
    if (isReading) setImmediate(count);
  };
  setImmediate(count);
  const pieces = await plain('data: {"a":1}\n\n'.repeat(10_000));
  isReading = false;
  expect(pieces).toHaveLength(200);
  expect(turns).toBeGreaterThanOrEqual(199);
});

test('a message that would take long to parse ends the stream with an error', async () => {
  const deep = `data: ${'['.repeat(100_000)}\n\n`;
  await expect(plain(deep)).rejects.toThrow('a message of more than 200 levels');
  const wide = `data: [${'1,'.repeat(300_000)}1]\n\n`;
  await expect(plain(wide)).rejects.toThrow('a message of more than 250000 members');
});

test('a response of another type is left as it is', () => {
  const response = new Response('x\n', { headers: { 'content-type': 'application/json' } });
  expect(withPlainEvents(response)).toBe(response);
});
