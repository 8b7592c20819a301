/** Server-sent events of a stream of bytes. */
import { expect, test } from 'vitest';
import { readEvents } from './event-stream.ts';

test('events are yielded as they come, in whatever pieces; one that is cut off is left out', async () => {
  const parts = [': connected\n\nid: 1.0\nevent: sta', 'tus\ndata: {"a":1}\n\n', 'event: cut'];
  const bytes = ReadableStream.from(parts.map((part) => new TextEncoder().encode(part)));
  expect(await Array.fromAsync(readEvents(bytes))).toEqual([
    { id: '1.0', event: 'status', data: { a: 1 } },
  ]);
});
