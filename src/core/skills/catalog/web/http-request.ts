/** Sends one HTTP request and returns the answer with any status. */

import type { EgressResponse } from '../../../../adapters/egress/guarded-fetch.ts';
import { defineSkill, SkillError } from '../../definition.ts';
import { cleanText } from '../_support/clean-text.ts';
import { decodeText, looksLikeText, mediaType } from '../_support/decode-text.ts';
import { assertNotPutOff, fetchOutside, header } from '../_support/fetching.ts';
import { integer, objectWith, type Static, urlWith } from '../_support/schemas.ts';

/** A body is returned as text and also as JSON, and an output may have 1 MiB. */
const bodyBytesMax = 256 * 1024;

/** An output may nest 64 levels, of which `json` is in the second. */
const jsonDepthMax = 63;

const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD']);

const parameters = objectWith(['url'], {
  url: urlWith('Absolute http or https url.'),
  method: {
    type: 'string',
    enum: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    default: 'GET',
    description: 'HTTP method.',
  },
  headers: {
    type: 'object',
    maxProperties: 50,
    propertyNames: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" },
    additionalProperties: { type: 'string', maxLength: 8192 },
    description: 'Headers to send. Host and those of the connection cannot be set.',
  },
  body: {
    type: ['string', 'object', 'array', 'number', 'boolean'],
    description: 'A text is sent as it is, anything else as JSON. Not for GET and HEAD.',
  },
  timeout_ms: integer(
    { minimum: 100, maximum: 55_000, default: 30_000 },
    'Milliseconds for the whole request, redirects included.',
  ),
  max_redirects: integer(
    { minimum: 0, maximum: 5, default: 5 },
    'Redirects to follow; with 0 the redirect itself is returned.',
  ),
});
const output = objectWith(
  ['url', 'status', 'headers', 'body', 'body_encoding', 'truncated', 'duration_ms'],
  {
    url: { type: 'string', description: 'Url that answered, after redirects.' },
    status: { type: 'integer', description: 'HTTP status.' },
    headers: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Headers in lower case; one that came several times is joined by commas.',
    },
    body: { type: 'string', description: 'Body as text, or in base64 when it is binary.' },
    body_encoding: { type: 'string', enum: ['text', 'base64'], description: 'How to read body.' },
    json: { description: 'The parsed body; absent unless it is complete and valid JSON.' },
    truncated: { type: 'boolean', description: 'Whether the body is longer than returned.' },
    duration_ms: { type: 'integer', description: 'Milliseconds from request to last byte.' },
  },
);
type Input = Static<typeof parameters>;

export default defineSkill({
  category: 'web',
  name: 'http-request',
  version: 'v1.0',
  displayName: 'HTTP request',
  description:
    'Sends one HTTP request and returns status, headers and body, with the body parsed where it ' +
    'is JSON. Every status is an answer, but 429 with Retry-After: then the run is tried again after ' +
    'that time. Else only a request without an answer fails. Reaches public addresses only, unless ' +
    'the operator allows others. At most 256 KiB of the body are returned.',
  parameters,
  output,
  examples: [
    { input: { url: 'https://example.com/' } },
    {
      input: {
        url: 'https://example.com/items',
        method: 'POST',
        headers: { authorization: 'Bearer my-token' },
        body: { name: 'Ada', tags: ['new'] },
      },
    },
  ],

  async run(input, ctx) {
    const method = input.method ?? 'GET';
    const { body, headers } = outgoing(method, input);
    const started = performance.now();
    const response = await fetchOutside(input.url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal: ctx.signal,
      timeoutMs: input.timeout_ms ?? 30_000,
      maxBytes: bodyBytesMax,
      overflow: 'truncate',
      redirects: input.max_redirects ?? 5,
    });
    assertNotPutOff(response);
    return {
      url: response.url,
      status: response.status,
      headers: joinedHeaders(response),
      ...incoming(response),
      truncated: response.truncated,
      duration_ms: Math.round(performance.now() - started),
    };
  },
});

/** The body to send, with its content type unless the input gives one. */
function outgoing(method: string, { body, headers = {} }: Input) {
  if (body === undefined) return { headers };
  if (bodiless.has(method)) {
    throw new SkillError(`A ${method} request has no body`, { retryable: false });
  }
  const isText = typeof body === 'string';
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json';
  const named = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  return {
    body: isText ? body : JSON.stringify(body),
    headers: named ? headers : { ...headers, 'content-type': type },
  };
}

/** The returned body: text if it is text, and also JSON if it is valid JSON. */
function incoming(response: EgressResponse) {
  const contentType = header(response, 'content-type');
  const bytes = response.body;
  if (!isText(mediaType(contentType)) && !looksLikeText(bytes)) {
    return { body: bytes.toString('base64'), body_encoding: 'base64' as const };
  }
  const body = decodeText(bytes, contentType);
  const json = response.truncated ? undefined : parsed(body);
  return { body, body_encoding: 'text' as const, ...(json === undefined ? {} : { json }) };
}

function isText(type: string): boolean {
  return (
    type.startsWith('text/') ||
    /^(application|image)\/((.+\+)?(json|xml)|javascript|x-www-form-urlencoded)$/.test(type)
  );
}

/** The parsed text; undefined unless it is JSON that the platform can store unchanged. */
function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isStorable(value, 1) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Escapes can restore characters that decoding removed, and nesting is bounded. */
function isStorable(value: unknown, level: number): boolean {
  if (typeof value === 'string') return cleanText(value) === value;
  if (value === null || typeof value !== 'object') return true;
  if (level > jsonDepthMax) return false;
  return Object.entries(value).every(
    ([key, member]) => cleanText(key) === key && isStorable(member, level + 1),
  );
}

function joinedHeaders(response: EgressResponse): Record<string, string> {
  return Object.fromEntries(
    Object.keys(response.headers).map((name) => [name, header(response, name)]),
  );
}
