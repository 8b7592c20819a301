/**
 * `@skillwright/client` as it is packed, against a real platform: its README, in each Node of this machine and in
 * Chromium.
 */
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyWebhook } from '../../packages/client/src/index.ts';
import { bodySignature, standardSignature } from '../../src/kernel/webhook-signature.ts';
import { openBrowser } from '../support/chromium.ts';
import { cli } from '../support/cli.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

const root = join(import.meta.dirname, '../..');
const place = mkdtempSync(join(tmpdir(), 'skillwright-client-'));
const installed = join(place, 'node_modules/@skillwright/client');
const page = `<!doctype html><link rel="icon" href="data:,">
  <script type="importmap">{"imports":{"@skillwright/client":"/dist/index.js"}}</script>`;
let pages: Server;
let origin: string;
let platform: Platform;
let key: string;

beforeAll(async () => {
  await install();
  pages = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://page');
    response.setHeader('content-type', pathname.endsWith('.js') ? 'text/javascript' : 'text/html');
    if (pathname === '/readme.js') response.end(stripTypeScriptTypes(examples()));
    else if (pathname.endsWith('.js')) response.end(readFileSync(join(installed, pathname)));
    else response.end(page);
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  platform = await startPlatform({ environment: { CORS_ORIGINS: origin } });
  key = await platform.key();
});
afterAll(async () => {
  pages.close();
  await platform.stop();
  rmSync(place, { recursive: true, force: true });
});

/** Packs the package as it is published, and installs it in a folder with nothing else. */
async function install(): Promise<void> {
  const build = join(root, 'scripts/packages/build.ts');
  const tarballs = join(place, 'tarballs');
  const args = [build, '--only', 'client', '--out', tarballs];
  await promisify(execFile)(process.execPath, args);
  writeFileSync(join(place, 'package.json'), '{"type":"module"}');
  const [tarball = ''] = globSync('*.tgz', { cwd: tarballs });
  const options = ['--offline', '--no-audit', '--no-fund', '--loglevel=error'];
  await promisify(execFile)('npm', ['install', ...options, join(tarballs, tarball)], {
    cwd: place,
    env: { PATH: process.env['PATH'], HOME: place },
  });
}

/** The examples of the README, as one module. */
function examples(): string {
  const readme = readFileSync(join(installed, 'README.md'), 'utf8');
  return [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code).join('\n');
}

/** The Node that runs the tests, and others on the search path. */
function nodes(): string[] {
  const found = (process.env['PATH'] ?? '')
    .split(':')
    .map((directory) => join(directory, 'node'))
    .filter((file) => !file.includes('node_modules') && existsSync(file));
  return [process.execPath, ...found.slice(0, 1)];
}

/** Holds what the examples print to what the README says. */
function expectPrinted(printed: string): void {
  const lines = printed.split('\n');
  expect(printed).toMatch(/words: 2[\s\S]*hello/);
  expect(lines).toContain('completed');
  expect(lines).toContain('3');
  expect(lines).toContain('cancelled');
  expect(printed).toMatch(/queued\nactive\ncompleted/);
  expect(printed).toMatch(/refused skill_not_found [0-9a-f-]{36}/);
}

test.each(nodes())('the examples of the README run in %s', async (node) => {
  const file = join(place, 'readme.mjs');
  writeFileSync(file, stripTypeScriptTypes(examples()));
  const env = { SKILLWRIGHT_URL: platform.url, SKILLWRIGHT_API_KEY: key };
  const { stdout } = await promisify(execFile)(node, [file], { env });
  expectPrinted(stdout);
});

test('with the file of `skillwright types` the examples compile, and wrong inputs do not', async () => {
  const types = await cli(['types', '--url', platform.url, '--key', key]);
  expect(types).toMatchObject({ code: 0, stderr: '' });
  writeFileSync(join(place, 'skills.d.ts'), types.stdout);
  writeFileSync(join(place, 'readme.ts'), examples());
  writeFileSync(
    join(place, 'wrong.ts'),
    `import { createClient } from '@skillwright/client';
     const sw = createClient({ url: 'http://platform' });
     const { words } = await sw.run('text/v1.0/word-count', { text: 'a' });
     export const count: number = words;
     export const own: { a: number } = await sw.run<{ a: number }, string>('own/v1.0/skill', {});
     // @ts-expect-error The text is missing.
     await sw.run('text/v1.0/word-count', {});
     // @ts-expect-error A misspelt field.
     await sw.skills.text.wordCount.v1_0.run({ text: 'a', txt: 'b' });
     // @ts-expect-error No such skill.
     sw.skills.text.noSuchSkill;
     // @ts-expect-error A misspelt name.
     await sw.run('text/v1.0/wrod-count', { text: 'a' });
     // @ts-expect-error A misspelt name, where the output is named.
     await sw.start<{ words: number }>('text/v1.0/wrod-count', { text: 'a' });
     const name: string = 'known/v1.0/later';
     export const unknown: unknown = await sw.run(name, { any: 'input' });
     for await (const event of sw.job('j').events()) {
       if (event.type === 'progress') event.data.fraction.toFixed();
     }
    `,
  );
  const compilerOptions = {
    ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'dom', 'dom.asynciterable'] },
    ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
    ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true },
    ...{ noEmit: true, skipLibCheck: false },
  };
  const files = ['skills.d.ts', 'readme.ts', 'wrong.ts'];
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['-p', place]).catch((error) => error);
  expect(stdout).toBe('');
});

test('a delivery as the platform signs it is verified, any other is refused', async () => {
  const raw = '{"id":"e1","event":"skill.completed","data":{"job_id":"j1"}}';
  const now = Date.parse('2026-01-01T00:00:00Z');
  const seconds = now / 1000;
  for (const secret of ['a-secret-of-16-characters', 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=']) {
    const headers = {
      'x-service-signature': bodySignature(secret, raw),
      'webhook-id': 'd1',
      'webhook-timestamp': String(seconds),
      'webhook-signature': standardSignature(secret, { id: 'd1', timestamp: seconds, body: raw }),
    };
    const verify = (changed: Record<string, string> = {}, body = raw, at = now) =>
      verifyWebhook(body, new Headers({ ...headers, ...changed }), secret, { now: at });

    expect(await verify()).toMatchObject({ event: 'skill.completed', deliveryId: 'd1' });
    const both = ['another-secret-of-16', secret];
    const bytes = new TextEncoder().encode(raw);
    for (const body of [Buffer.from(raw), bytes.buffer, new DataView(bytes.buffer)]) {
      expect(await verifyWebhook(body, headers, both, { now })).toMatchObject({ id: 'e1' });
    }
    const code = 'invalid_signature';
    await expect(verify({}, `${raw} `)).rejects.toMatchObject({ code });
    await expect(verify({ 'webhook-id': 'd2' })).rejects.toMatchObject({ code });
    await expect(verify({ 'webhook-timestamp': String(seconds + 1) })).rejects.toMatchObject({
      code,
    });
    await expect(verify({}, raw, now + 301_000)).rejects.toMatchObject({
      code: 'timestamp_out_of_range',
    });
    const { 'webhook-signature': _signature, ...unsigned } = headers;
    await expect(verifyWebhook(raw, unsigned, secret, { now })).rejects.toMatchObject({
      code: 'missing_header',
    });
  }
});

test.each([
  ['an object that was parsed', { event: 'skill.completed' }],
  ['nothing', undefined],
])('instead of the body, %s is refused with what to pass', async (_what, body) => {
  const call = verifyWebhook(body as never, {}, 'a-secret-of-16-characters');
  await expect(call).rejects.toThrow(TypeError);
  await expect(call).rejects.toThrow(/needs the body as it came.*express\.raw/);
});

test('a secret that is not set, and headers that are missing, are named', async () => {
  for (const secret of [undefined, ['first', undefined]]) {
    const call = verifyWebhook('{}', {}, secret as never);
    await expect(call).rejects.toThrow(/needs the secret.*environment variable/);
  }
  const call = verifyWebhook('{}', undefined as never, 'a-secret-of-16-characters');
  await expect(call).rejects.toThrow(/needs the headers/);
});

describe.skipIf(!(await isInstalled('Chromium')))('in a page of another origin', () => {
  test('the examples of the README run', async () => {
    const browser = await openBrowser(origin);
    try {
      await browser.page.goto(`${origin}/`);
      const printed = await browser.page.evaluate(`(async () => {
        globalThis.process = { env: { SKILLWRIGHT_URL: '${platform.url}', SKILLWRIGHT_API_KEY: '${key}' } };
        const lines = [];
        const text = (value) => typeof value === 'object' ? JSON.stringify(value) : String(value);
        console.log = (...values) => lines.push(values.map(text).join(' '));
        await import('/readme.js');
        return lines.join('\\n');
      })()`);
      // Other consoles show objects without quotes.
      expectPrinted(String(printed).replace(/"(\w+)":/g, '$1: '));
    } finally {
      await browser.close();
    }
  });

  test('a page runs a skill, follows it, and reads lists and errors', async () => {
    const browser = await openBrowser(origin);
    try {
      await browser.page.goto(`${origin}/`);
      const seen = await browser.page.evaluate(`(async () => {
        const { createClient, verifyWebhook } = await import('@skillwright/client');
        const sw = createClient({ url: '${platform.url}', apiKey: '${key}' });
        const job = await sw.start('text/v1.0/word-count', { text: 'a b c' });
        const types = [];
        for await (const { data } of job.events()) types.push(data.status);
        const { total } = await sw.conversations.list({ limit: 1 });
        const refused = await sw.run('no/v1.0/skill', {}).catch(({ code, requestId }) => [code, requestId !== null]);
        const forged = await verifyWebhook('{}', {}, 'x').catch(({ code }) => code);
        return { output: await job.result(), types, counted: total > 0, refused, forged };
      })()`);
      expect(seen).toMatchObject({
        types: ['queued', 'active', 'completed'],
        counted: true,
        refused: ['skill_not_found', true],
        forged: 'missing_header',
      });
    } finally {
      await browser.close();
    }
  });

  test('a page of an origin that CORS_ORIGINS does not name learns what to set', async () => {
    const others = createServer((request, response) => pages.emit('request', request, response));
    await new Promise<void>((resolve) => others.listen(0, '127.0.0.1', resolve));
    const other = `http://127.0.0.1:${(others.address() as AddressInfo).port}`;
    const browser = await openBrowser(other);
    try {
      await browser.page.goto(`${other}/`);
      const seen = await browser.page.evaluate(`(async () => {
        const { createClient } = await import('@skillwright/client');
        const run = (url, retries) => Promise.resolve(createClient({ url, apiKey: '${key}', retries }).agents.list())
          .catch(({ code, message }) => ({ code, message }));
        return { refused: await run('${platform.url}', 1), down: await run('http://127.0.0.1:9', 0) };
      })()`);
      expect(seen).toMatchObject({
        refused: {
          code: 'unreachable',
          message: expect.stringContaining(
            `the setting CORS_ORIGINS of the platform has to name its origin (CORS_ORIGINS=${other})`,
          ),
        },
        down: { code: 'unreachable', message: expect.not.stringContaining('CORS_ORIGINS') },
      });
    } finally {
      await browser.close();
      others.close();
    }
  });

  test('a page outlasts a restart behind a proxy whose own answers it may not read', async () => {
    const refused: string[] = [];
    const proxy = createServer((request, response) => {
      const { method = '', url = '' } = request;
      // A preflight that fails fails its request.
      if (refused.filter((one) => one.startsWith('OPTIONS')).length < 2) {
        refused.push(`${method} ${url}`);
        response.writeHead(502).end('Bad Gateway');
        return;
      }
      const { host: _, ...headers } = request.headers;
      const onward = httpRequest(`${platform.url}${url}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      request.pipe(onward);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const browser = await openBrowser(origin);
    try {
      await browser.page.goto(`${origin}/`);
      const output = await browser.page.evaluate(`(async () => {
        const { createClient } = await import('@skillwright/client');
        return await createClient({ url: '${url}', apiKey: '${key}' }).run('text/v1.0/word-count', { text: 'a b' });
      })()`);
      expect(output).toMatchObject({ words: 2 });
      const start = '/api/text/v1.0/word-count';
      expect(refused).toEqual([`OPTIONS ${start}`, `OPTIONS ${start}`]);
    } finally {
      await browser.close();
      proxy.close();
    }
  });
});
