/** The built guides, as `/docs/guide/` serves them. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Platform, startPlatform } from '../support/platform.ts';

/** Files as a build leaves them. */
const folder = mkdtempSync(join(tmpdir(), 'skillwright-guide-'));
for (const name of ['assets', 'decisions']) mkdirSync(join(folder, name));
for (const name of ['index', 'start', 'decisions/index', 'decisions/jobs', '404']) {
  writeFileSync(join(folder, `${name}.html`), `<!doctype html><title>${name}</title>`);
}
writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
writeFileSync(join(folder, 'assets/app.abc.js'), 'run();');
writeFileSync(join(folder, 'assets/app.abc.js.gz'), gzipSync('run(compressed);'));
writeFileSync(join(folder, '.built-from'), 'sources');

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({ parts: { guideFolder: folder } });
});
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${platform.url}${path}`, { headers, redirect: 'manual' });

describe('the guides', () => {
  test('are at /docs/guide, beside the reference', async () => {
    const answer = await get('/docs/guide');

    expect(answer.status).toBe(302);
    expect(answer.headers.get('location')).toBe('/docs/guide/');
    expect(await (await get('/docs')).text()).toContain('Skillwright API');
  });

  test.each([
    ['', 'index'],
    ['start', 'start'],
    ['start.html', 'start'],
    ['decisions/', 'decisions/index'],
    ['decisions/jobs', 'decisions/jobs'],
  ])('/docs/guide/%s is a page, which may load nothing from elsewhere', async (path, title) => {
    const answer = await get(`/docs/guide/${path}`);

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await answer.text()).toContain(`<title>${title}</title>`);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
  });

  test('are not sent again to a browser that has them', async () => {
    const etag = (await get('/docs/guide/start')).headers.get('etag') ?? '';

    // Not by fetch, which asks for no stored answer then.
    const { hostname, port } = new URL(platform.url);
    const headers = { 'if-none-match': etag };
    const [again] = (await once(
      request({ hostname, port, path: '/docs/guide/start', headers }).end(),
      'response',
    )) as [IncomingMessage];
    again.resume();

    expect(again.statusCode).toBe(304);
  });

  test('have files that browsers keep, because their names change with their content', async () => {
    const answer = await get('/docs/guide/assets/app.abc.js', { 'accept-encoding': 'identity' });

    expect(await answer.text()).toBe('run();');
    expect(answer.headers.get('content-type')).toMatch(/^(?:text|application)\/javascript/);
    expect(answer.headers.get('cache-control')).toMatch(/max-age=31536000.*immutable/);
  });

  test('have files that are sent compressed to a browser that accepts that', async () => {
    const answer = await get('/docs/guide/assets/app.abc.js', {
      'accept-encoding': 'gzip, deflate, br, zstd',
    });

    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(await answer.text()).toBe('run(compressed);');
  });

  test.each(['none', 'start/', 'decisions/none', 'decisions/jobs/more'])(
    'answer /docs/guide/%s, which is no page, with a page that says so',
    async (path) => {
      const answer = await get(`/docs/guide/${path}`);

      expect(answer.status).toBe(404);
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(answer.headers.get('etag')).toBeNull();
      expect(await answer.text()).toContain('<title>404</title>');
    },
  );

  test.each([
    'assets/none.js',
    'none.svg',
    '.built-from',
    'assets/..%2f.built-from',
    '..%2f..%2fpackage.json',
    '%2e%2e%2fpackage.json',
    'decisions/..%2fstart',
    'a%00b',
  ])('have no file %s', async (path) => {
    const { status, body } = await platform.request('GET', `/docs/guide/${path}`);

    expect([400, 404]).toContain(status);
    expect(body.error).toMatch(/^(?:not_found|validation_error)$/);
  });

  test('list every operation', async () => {
    const { paths } = (await platform.request('GET', '/openapi.json')).body;
    const guide = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8');
    const rows = guide
      .slice(guide.indexOf('## All operations'))
      .matchAll(/^\| `(\/\S*)` \| (.*?) \|/gm);

    const listed = [...rows].flatMap(([, path, methods = '']) =>
      [...methods.matchAll(/\w+/g)].map(([method]) => `${method} ${path}`),
    );

    const operations = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.sort()).toEqual(operations.sort());
  });

  test('that are not built are not found, with the command that builds them', async () => {
    const without = await startPlatform({ parts: { guideFolder: join(folder, 'none') } });
    onTestFinished(() => without.stop());

    const { status, body } = await without.request('GET', '/docs/guide/start');

    expect(status).toBe(404);
    expect(body).toMatchObject({ error: 'not_found' });
    expect(body.message).toContain('npm run docs:build');
  });
});
