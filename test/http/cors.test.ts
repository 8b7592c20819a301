/** CORS_ORIGINS: which pages of other origins may call the API. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';

interface OpenapiDocument {
  readonly paths: Record<
    string,
    Record<
      string,
      { readonly parameters?: readonly { readonly in: string; readonly name: string }[] }
    >
  >;
}

const origin = 'https://app.example.com';
let platform: Platform;
let closed: Platform;
beforeAll(async () => {
  [platform, closed] = await Promise.all([
    startStaged({ environment: { CORS_ORIGINS: `${origin},https://other.example.com` } }),
    startStaged(),
  ]);
});
afterAll(() => Promise.all([platform.stop(), closed.stop()]));

const preflight = { origin, 'access-control-request-method': 'POST' };
const corsHeaders = (headers: Headers) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'));

test('a preflight of an allowed origin is answered without a key', async () => {
  const { status, headers } = await platform.request('OPTIONS', '/api/util/v1.0/echo', {
    headers: { ...preflight, 'access-control-request-headers': 'x-api-key, idempotency-key' },
  });
  expect(status).toBe(204);
  expect(headers.get('access-control-allow-origin')).toBe(origin);
  expect(headers.get('access-control-allow-methods')).toBe('GET, POST, PUT, PATCH, DELETE');
  expect(headers.get('access-control-allow-headers')).toContain('x-api-key');
  expect(headers.get('access-control-allow-headers')).toContain('last-event-id');
  expect(headers.get('access-control-max-age')).toBe('600');
  expect(headers.get('vary')).toBe('Origin');
});

test('a preflight allows every header of an operation', async () => {
  const { headers } = await platform.request('OPTIONS', '/api/util/v1.0/echo', {
    headers: preflight,
  });
  const document = await platform.request('GET', '/openapi.json');
  const declared = Object.values((document.body as OpenapiDocument).paths)
    .flatMap((operations) => Object.values(operations))
    .flatMap(({ parameters = [] }) => parameters)
    .filter(({ in: place }) => place === 'header')
    .map(({ name }) => name);
  expect(declared).toContain('x-priority');
  const allowed = headers.get('access-control-allow-headers')?.split(', ');
  expect(allowed).toEqual(expect.arrayContaining([...new Set(declared)]));
});

test('an answer shows its headers to an allowed origin, a refusal too, and never allows credentials', async () => {
  const key = await platform.key();
  const found = await platform.request('GET', '/api/jobs', { key, headers: { origin } });
  const refused = await platform.request('GET', '/api/jobs', { headers: { origin } });
  expect([found.status, refused.status]).toEqual([200, 401]);
  for (const { headers } of [found, refused]) {
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    const exposed = headers.get('access-control-expose-headers')?.toLowerCase().split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining(['retry-after', 'x-request-id', 'x-next-offset']),
    );
    expect(headers.has('access-control-allow-credentials')).toBe(false);
  }
});

test('another origin gets no permission, and neither do pages of administrators', async () => {
  const elsewhere = { ...preflight, origin: 'https://evil.example.com' };
  const other = await platform.request('OPTIONS', '/api/jobs', { headers: elsewhere });
  const admin = await platform.request('OPTIONS', '/admin/api-keys', { headers: preflight });
  expect(corsHeaders(other.headers)).toEqual([]);
  expect(corsHeaders(admin.headers)).toEqual([]);
  expect(other.headers.get('vary')).toBe('Origin');
});

const hint = (of: string) =>
  `Pages of ${of} may not call this platform: add the origin to CORS_ORIGINS (CORS_ORIGINS=${of})`;

test.each([
  ['with other origins in the setting', () => platform],
  ['without the setting', () => closed],
])('a refused preflight says what to set, %s', async (_case, at) => {
  const refused = 'http://127.0.0.1:5173';
  const headers = { ...preflight, origin: refused };
  for (const path of ['/api/text/v1.0/word-count', '/mcp', '/health']) {
    const answer = await at().request('OPTIONS', path, { headers });
    expect(answer.status).toBe(405);
    expect(answer.text).toContain(hint(refused));
    expect(answer.headers.get('cors-hint')).toBe(hint(refused));
  }
  const file = await at().request('OPTIONS', '/api/jobs', {
    headers: { ...preflight, origin: 'null' },
  });
  expect(file.body.message).toContain('serve the page');
});

test('without the setting no origin gets any permission', async () => {
  const asked = await closed.request('OPTIONS', '/api/jobs', { headers: preflight });
  const found = await closed.request('GET', '/health', { headers: { origin } });
  expect(corsHeaders(asked.headers)).toEqual([]);
  expect(corsHeaders(found.headers)).toEqual([]);
});
