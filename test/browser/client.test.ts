/** `@skillwright/client` against a real platform: its README, in each Node of this machine, and in Chromium. */
import { execFile } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, verifyWebhook } from '../../packages/client/src/index.ts';
import { readSkills, typesOfSkills } from '../../src/cli/skill-types.ts';
import { bodySignature, standardSignature } from '../../src/kernel/webhook-signature.ts';
import { openBrowser } from '../support/chromium.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { isInstalled } from '../support/shared-servers.ts';

const root = join(import.meta.dirname, '../..');
const client = join(root, 'packages/client');
const place = mkdtempSync(join(tmpdir(), 'skillwright-client-'));
const compiled = join(place, 'node_modules/@skillwright/client');
let pages: Server;
let origin: string;
let platform: Platform;
let key: string;

beforeAll(async () => {
  compile();
  pages = createServer((request, response) => {
    const file = join(compiled, request.url ?? '/');
    const isScript = file.endsWith('.js') && existsSync(file);
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? readFileSync(file) : '<!doctype html><link rel="icon" href="data:,">');
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

/** As the package is: without types, which is all that its compilation removes. */
function compile(): void {
  for (const name of globSync('**/*.ts', { cwd: join(client, 'src') })) {
    if (name.endsWith('.test.ts')) continue;
    const code = stripTypeScriptTypes(readFileSync(join(client, 'src', name), 'utf8'));
    const file = join(compiled, name.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code.replace(/(from '\.[^']*)\.ts'/g, "$1.js'"));
  }
  const manifest = { name: '@skillwright/client', type: 'module', exports: './index.js' };
  writeFileSync(join(compiled, 'package.json'), JSON.stringify(manifest));
}

/** The examples of the README, as one module. */
function examples(): string {
  const readme = readFileSync(join(client, 'README.md'), 'utf8');
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

test.each(nodes())('the examples of the README run in %s', async (node) => {
  const file = join(place, 'readme.mjs');
  writeFileSync(file, stripTypeScriptTypes(examples()));
  const env = { SKILLWRIGHT_URL: platform.url, SKILLWRIGHT_API_KEY: key };
  const { stdout } = await promisify(execFile)(node, [file], { env });
  const lines = stdout.split('\n');
  expect(stdout).toMatch(/words: 2[\s\S]*hello/);
  expect(lines).toContain('completed');
  expect(lines).toContain('3');
  expect(stdout).toMatch(/queued\nactive\ncompleted/);
  expect(stdout).toMatch(/refused skill_not_found [0-9a-f-]{36}/);
});

test('with the file of `skillwright types` the examples compile, and wrong inputs do not', async () => {
  const skills = await readSkills(createClient({ url: platform.url, apiKey: key }));
  writeFileSync(join(place, 'skills.d.ts'), await typesOfSkills(skills));
  writeFileSync(join(place, 'readme.ts'), examples());
  writeFileSync(
    join(place, 'wrong.ts'),
    `import { createClient } from '@skillwright/client';
     const sw = createClient({ url: 'http://platform' });
     const { words } = await sw.run('text/v1.0/word-count', { text: 'a' });
     export const count: number = words;
     export const own: { a: number } = await sw.run<{ a: number }>('own/v1.0/skill', {});
     // @ts-expect-error The text is missing.
     await sw.run('text/v1.0/word-count', {});
     // @ts-expect-error A misspelt field.
     await sw.skills.text.wordCount.v1_0.run({ text: 'a', txt: 'b' });
     // @ts-expect-error No such skill.
     sw.skills.text.noSuchSkill;
     for await (const event of sw.job('j').events()) {
       if (event.type === 'progress') event.data.fraction.toFixed();
     }
    `,
  );
  const source = join(client, 'src/index.ts');
  const compilerOptions = {
    ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'dom', 'dom.asynciterable'] },
    ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
    ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true },
    ...{ noEmit: true, allowImportingTsExtensions: true, skipLibCheck: false },
    paths: { '@skillwright/client': [source] },
  };
  writeFileSync(join(place, 'package.json'), '{"type":"module"}');
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
    expect(await verifyWebhook(Buffer.from(raw), headers, both, { now })).toMatchObject({
      id: 'e1',
    });
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

test.skipIf(!(await isInstalled('Chromium')))(
  'a page of another origin runs a skill, follows it, and reads lists and errors',
  async () => {
    const browser = await openBrowser(origin);
    try {
      await browser.page.goto(`${origin}/`);
      const seen = await browser.page.evaluate(`(async () => {
        const { createClient, verifyWebhook } = await import('/index.js');
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
  },
);
