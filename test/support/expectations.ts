/** What the specification says of many answers, said once. */
import { expect } from 'vitest';
import type { Answer } from './platform.ts';
import type { RawAnswer } from './raw-http.ts';

export const anId = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
);
/** UTC with milliseconds and Z. */
export const aTimestamp = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);

/** What no refusal may show: paths, stack traces, SQL, names of libraries. A timestamp is none of them. */
const insides =
  /\/src\/|node_modules|node:|(?<!T\d\d):\d+:\d+|\bselect\b|\binsert\b|sqlite|fastify|ajv|FST_|ERR_/i;

const rateLimitHeaders = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

function header(answer: Answer | RawAnswer, name: string): string | null {
  if (answer.headers instanceof Headers) return answer.headers.get(name);
  return answer.headers[name] ?? null;
}

/** The error's code, and nothing of it but what the specification names. */
export function expectRefusal(answer: Answer | RawAnswer, status: number, error: string): void {
  expect({ status: answer.status, body: answer.body }).toMatchObject({
    status,
    body: { error, message: expect.stringMatching(/\S/) },
  });
  const extra = new Set(Object.keys(answer.body));
  extra.delete('error');
  extra.delete('message');
  if (error === 'validation_error') extra.delete('details');
  if (error === 'rate_limit_exceeded') extra.delete('retry_after');
  expect([...extra]).toEqual([]);
  for (const detail of answer.body.details ?? []) {
    expect(detail).toEqual({ field: expect.any(String), issue: expect.any(String) });
  }
  expect(header(answer, 'content-type')).toMatch(/^application\/json\b/);
  expect(header(answer, 'x-request-id')).toMatch(/\S/);
  expect(answer.text).not.toMatch(insides);
}

/** `400 validation_error` whose details name `field`. */
export function expectInvalid(answer: Answer, field: string): void {
  expectRefusal(answer, 400, 'validation_error');
  expect(answer.body.details?.map((one: { field: string }) => one.field)).toContain(field);
}

/** All three X-RateLimit headers, as integers. */
export function expectRateLimitHeaders(answer: Answer | RawAnswer): void {
  for (const name of rateLimitHeaders) expect(header(answer, name), name).toMatch(/^\d+$/);
}

export function expectNoRateLimitHeaders(answer: Answer | RawAnswer): void {
  for (const name of rateLimitHeaders) expect(header(answer, name), name).toBeNull();
}
