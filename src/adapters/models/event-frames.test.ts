import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { frame } from '../../../test/support/scripted-converse.ts';
import { EventFrameReader } from './event-frames.ts';

const text = (words: string) => frame('contentBlockDelta', { delta: { text: words } });
const padding = { p: 'abcdefgh' };

function read(bytes: Buffer, chunkBytes: number) {
  const reader = new EventFrameReader();
  const events: unknown[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    reader.push(bytes.subarray(at, at + chunkBytes), (event) => events.push(event));
  }
  reader.end();
  return events;
}

test.each([1, 7, 12, 100, 100_000])('frames in chunks of %i bytes are whole events', (size) => {
  const bytes = Buffer.concat([text('Grüße'), text('x'.repeat(5_000)), frame('messageStop', {})]);

  expect(read(bytes, size)).toEqual([
    { type: 'contentBlockDelta', delta: { text: 'Grüße' }, ...padding },
    { type: 'contentBlockDelta', delta: { text: 'x'.repeat(5_000) }, ...padding },
    { type: 'messageStop', ...padding },
  ]);
});

test('an exception is an error of its kind', () => {
  const bytes = frame('throttlingException', { message: 'Too many requests' }, 'exception');

  expect(read(bytes, 1_000)).toEqual([
    { type: 'error', error: { type: 'throttlingException', message: 'Too many requests' } },
  ]);
});

test('a stream that ends within a frame is refused', () => {
  expect(() => read(text('Hello').subarray(0, -1), 1_000)).toThrow('ends within a frame');
});

describe('bytes that are no frames', () => {
  const changed = (change: (bytes: Buffer) => void) => {
    const bytes = Buffer.from(text('Hello'));
    change(bytes);
    return bytes;
  };

  test.each<[string, Buffer, string]>([
    ['a changed payload', changed((bytes) => bytes.write('J', bytes.length - 30)), 'checksum'],
    ['a changed length', changed((bytes) => bytes.writeUInt32BE(0xffff_ffff, 0)), 'checksum'],
    ['text', Buffer.from('data: {"an": "event"}\n\n'), 'checksum'],
    ['noise', Buffer.concat([Buffer.alloc(1), randomBytes(63)]), 'checksum'],
  ])('%s', (_, bytes, why) => {
    expect(() => read(bytes, 1_000)).toThrow(why);
  });

  test('a length beyond the bound is refused before its bytes are there', () => {
    const reader = new EventFrameReader();
    const long = frame('contentBlockDelta', { delta: { text: 'x'.repeat(9 * 1024 * 1024) } });

    expect(() => reader.push(long.subarray(0, 12), () => {})).toThrow('8388608 bytes of one frame');
  });
});

test('any change of one byte is refused or leaves the stream waiting', () => {
  const whole = text('Hello');
  for (let at = 0; at < whole.length; at++) {
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 0x55;
    expect(() => read(bytes, 1_000)).toThrow();
  }
});
