import { describe, expect, test } from 'vitest';
import { readAnswer } from './read-answer.ts';

const now = Date.parse('2026-01-01T00:00:00Z');

function readOf(status: number, body: string, headers: Record<string, string> = {}) {
  const bytes = Buffer.from(body, 'latin1');
  const answer = { status, headers, body: bytes, truncated: false, url: 'https://a.example' };
  return readAnswer('GET /a', answer, now);
}

function faultOf(...asked: Parameters<typeof readOf>) {
  const read = readOf(...asked);
  return read.kind === 'fault' ? read.fault : undefined;
}

describe('the body of an answer', () => {
  test.each([
    ['application/json; charset=utf-8', '{"a":1}', { a: 1 }],
    ['application/problem+json', '[]', []],
    ['text/plain', 'hello', 'hello'],
    ['application/xml', '<a/>', '<a/>'],
    ['image/png', '\x00\xff', { base64: 'AP8=', content_type: 'image/png' }],
    ['application/json', '', null],
  ])('of type %s is read', (type, body, expected) => {
    const read = readOf(200, body, { 'content-type': type });
    expect(read).toMatchObject({ kind: 'output', output: { status: 200 }, note: null });
    expect(read.kind === 'output' && read.output.body).toEqual(expected);
  });

  test('that is no JSON, although it says so, is text', () => {
    const read = readOf(200, '<html>', { 'content-type': 'application/json' });
    expect(read).toMatchObject({
      output: { body: '<html>' },
      note: expect.stringContaining('JSON'),
    });
  });
});

describe('a refusal', () => {
  test.each([
    [302, 'refused'],
    [400, 'refused'],
    [401, 'credentials'],
    [408, 'unavailable'],
    [429, 'too many requests'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ])('with %i is one of the kind %s', (status, reason) => {
    expect(faultOf(status, '')).toMatchObject({
      reason,
      message: `GET /a was answered with ${status}`,
    });
  });

  test('shows the beginning of what the service says', () => {
    const fault = faultOf(422, `no\n  ${'x'.repeat(5_000)}`, { 'content-type': 'text/plain' });
    expect(fault?.message).toMatch(/^GET \/a was answered with 422: no x{1997}$/);
  });

  test.each([
    ['5', 5_000],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Thu, 01 Jan 2020 00:00:00 GMT', 0],
    ['999999999', 3_600_000],
    ['soon', null],
  ])('with Retry-After: %s asks for %s ms', (text, expected) => {
    expect(faultOf(429, '', { 'retry-after': text })?.retryAfterMs).toBe(expected);
  });
});
