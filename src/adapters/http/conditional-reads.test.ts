import { describe, expect, test } from 'vitest';
import { namesTag, partAsked } from './conditional-reads.ts';

const etag = '"abc"';

test.each([
  ['"abc"', true],
  ['W/"abc"', true],
  ['"x", W/"abc" , "y"', true],
  [' * ', true],
  ['"abcd"', false],
  ['abc', false],
  [undefined, false],
])('If-None-Match: %s', (header, isNamed) => {
  expect(namesTag(header, etag)).toBe(isNamed);
});

describe('of 10 bytes', () => {
  test.each([
    ['bytes=0-3', { start: 0, end: 3 }],
    ['bytes=4-', { start: 4, end: 9 }],
    ['bytes=9-99', { start: 9, end: 9 }],
    ['bytes=-3', { start: 7, end: 9 }],
    ['bytes=-99', { start: 0, end: 9 }],
    ['bytes=10-', 'none'],
    ['bytes=-0', 'none'],
    ['bytes=3-2', null],
    ['bytes=-', null],
    ['bytes=0-1,4-5', null],
    ['lines=0-1', null],
    [undefined, null],
  ])('Range: %s', (range, part) => {
    expect(partAsked({ range }, etag, 10)).toEqual(part);
  });

  test('a part of other bytes than those of If-Range is all of them', () => {
    const range = 'bytes=0-3';
    expect(partAsked({ range, 'if-range': '"abcd"' }, etag, 10)).toBeNull();
    expect(partAsked({ range, 'if-range': etag }, etag, 10)).toEqual({ start: 0, end: 3 });
  });
});

test('of no bytes there is no part', () => {
  expect(partAsked({ range: 'bytes=0-' }, etag, 0)).toBe('none');
});
