/** The build of the console by a platform that runs: the bundler is a stub, all else is as in production. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { startPlatform } from '../support/platform.ts';
import { waitFor } from '../support/wait-for.ts';

const root = join(import.meta.dirname, '../..');
/** Numbers, of which brotli saves more than gzip. */
const rows = Array.from({ length: 3_000 }, (_, i) => `<p>${(i * 7_919) % 10_007}</p>`);
const page = `<!doctype html><title>Console</title>${rows.join('')}`;
/** Of this one it saves little. */
const style = 'p { color: red } '.repeat(200);
/** Builds when a file named `go` is there; fails if that says so. */
const bundler = `
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
while (!existsSync('go')) await setTimeout(10);
if (readFileSync('go', 'utf8') === 'fail') throw new Error('no');
const directory = process.argv[process.argv.indexOf('--outDir') + 1];
writeFileSync(directory + '/index.html', ${JSON.stringify(page)});
writeFileSync(directory + '/style.css', ${JSON.stringify(style)});
`;

/** A platform whose console was built once, of other sources than it has now, and is being built again. */
async function startWithStaleConsole() {
  const checkout = mkdtempSync(join(tmpdir(), 'skillwright-console-build-'));
  onTestFinished(() => rmSync(checkout, { recursive: true, force: true }));
  const write = (name: string, content: string) => {
    mkdirSync(dirname(join(checkout, name)), { recursive: true });
    writeFileSync(join(checkout, name), content);
  };
  for (const name of ['index.html', 'tsconfig.json', 'vite.config.ts']) {
    write(`console/${name}`, 'a source');
  }
  write('package.json', '{ "type": "module" }');
  write('console/package.json', '{ "type": "module" }');
  write('console/node_modules/vite/package.json', '{ "type": "module" }');
  write('console/node_modules/vite/bin/vite.js', bundler);
  write('console/dist/index.html', '<!doctype html><title>Old</title>');
  write('console/dist/theme.js', 'theme();');
  write('console/dist/assets/jobs-abc.js', 'jobs();');
  for (const name of ['src/apps/console/files.ts', 'src/kernel/errors.ts', 'console/compress.ts']) {
    mkdirSync(dirname(join(checkout, name)), { recursive: true });
    copyFileSync(join(root, name), join(checkout, name));
  }
  const { ConsoleFiles }: typeof import('../../src/apps/console/files.ts') = await import(
    pathToFileURL(join(checkout, 'src/apps/console/files.ts')).href
  );
  const platform = await startPlatform({
    parts: { consoleFiles: new ConsoleFiles(createLogger('silent')) },
  });
  onTestFinished(() => platform.stop());
  const get = (path: string) => platform.request('GET', path);
  return {
    get,
    dist: join(checkout, 'console/dist'),
    /** Lets the bundler end; the answer to a request for the page after the build. */
    async endBuild(how: 'build' | 'fail') {
      write('console/go', how);
      return await waitFor(
        async () => {
          const answer = await get('/console/jobs');
          return answer.status === 200 && answer;
        },
        { describe: 'the page is served' },
      );
    },
  };
}

test('while the console is being built its page says so and loads itself again, and the platform works', async () => {
  const { get, endBuild, dist } = await startWithStaleConsole();

  const during = await get('/console/jobs');
  const health = await get('/health');
  const after = await endBuild('build');

  expect(during.status).toBe(503);
  expect(during.headers.get('retry-after')).toBe('2');
  expect(during.headers.get('content-type')).toContain('text/html');
  expect(during.text).toContain('The console is being built');
  expect(during.text).toContain('<meta http-equiv="refresh" content="2">');
  expect(health.status).toBe(200);
  expect(after.text).toBe(page);
  const built = join(dist, 'index.html');
  expect(gunzipSync(readFileSync(`${built}.gz`)).toString()).toBe(page);
  expect(brotliDecompressSync(readFileSync(`${built}.br`)).toString()).toBe(page);
  expect(
    readdirSync(dist)
      .filter((name) => name.startsWith('style.'))
      .toSorted(),
  ).toEqual(['style.css', 'style.css.gz']);
});

test('pages that are open get the parts of their build, during the next one and after it', async () => {
  const { get, endBuild } = await startWithStaleConsole();
  expect((await get('/console/')).status).toBe(503);

  const part = await get('/console/assets/jobs-abc.js');
  const beside = await get('/console/theme.js');
  const none = await get('/console/assets/none.js');
  await endBuild('build');
  const later = await get('/console/assets/jobs-abc.js');

  expect(part).toMatchObject({ status: 200, text: 'jobs();' });
  expect(beside).toMatchObject({ status: 200, text: 'theme();' });
  expect(none.status).toBe(404);
  expect(later).toMatchObject({ status: 200, text: 'jobs();' });
});

test('where a build fails the console of the last one is served', async () => {
  const { get, endBuild, dist } = await startWithStaleConsole();
  expect((await get('/console/')).status).toBe(503);

  const after = await endBuild('fail');

  expect(after.text).toContain('<title>Old</title>');
  expect(existsSync(join(dist, '.built-from'))).toBe(false);
});
