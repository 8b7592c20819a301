/**
 * deploy/Dockerfile, executed line by line in folders that have nothing but what it copies (test/support/image.ts): a file
 * that it needs and does not copy, or that .dockerignore keeps out, fails here as it would fail `docker build`.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { Finding } from '../../src/apps/cli/findings/finding.ts';
import { buildImage } from '../support/image.ts';
import { freePort } from '../support/supervised.ts';
import { waitFor } from '../support/wait-for.ts';

const checkout = join(import.meta.dirname, '../..');

/** Most of it are the builds of the program, the console and the guides: a minute on an idle machine. */
const timeout = 900_000;

/** What a builder is sent of a checkout in which `npm run packages` has run. */
async function context(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-context-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['.dockerignore', 'deploy']) {
    cpSync(join(checkout, name), join(folder, name), { recursive: true });
  }
  const script = join(checkout, 'scripts/packages/build.ts');
  const out = join(folder, 'dist-packages');
  await promisify(execFile)(process.execPath, [script, '--out', out]);
  return folder;
}

test('the image is built of the packages, and starts a platform on a read-only file system', {
  timeout,
}, async ({ signal }) => {
  const image = await buildImage(await context(), 'deploy/Dockerfile', {
    signal,
    volumes: ['/data'],
  });
  onTestFinished(() => image.remove());
  // The ports of this machine are also those of the container.
  const environment = { HOST: '127.0.0.1', PORT: String(await freePort()) };
  const url = `http://127.0.0.1:${environment.PORT}`;
  const faults = async () => {
    const { code, output } = await image.run(['skillwright', 'doctor', '--json'], environment);
    const { data } = JSON.parse(output) as { data: Finding[] };
    return { code, faults: data.filter(({ state }) => state === 'fault') };
  };
  expect(await faults()).toEqual({ code: 0, faults: [] });

  const platform = image.start(environment);
  const ended = once(platform, 'exit');
  let output = '';
  for (const stream of [platform.stdout, platform.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const isHealthy = async () => {
    if (platform.exitCode !== null) throw new Error(`It has ended: ${output}`);
    return (await fetch(`${url}/health`).catch(() => null))?.status === 200;
  };
  await waitFor(isHealthy, { describe: () => `it is healthy: ${output}`, deadlineMs: 60_000 });

  expect(await image.run(image.healthcheck, environment)).toMatchObject({ code: 0 });
  expect(await faults()).toEqual({ code: 0, faults: [] });
  expect(await image.run(['skillwright', 'backup', '/data/copy.db'], environment)).toMatchObject({
    code: 0,
  });
  expect(await image.run(['touch', '/app/a'])).toMatchObject({
    output: expect.stringContaining('Read-only file system'),
  });
  for (const path of ['/console/', '/docs/guide/', '/openapi.json']) {
    expect([path, (await fetch(`${url}${path}`)).status]).toEqual([path, 200]);
  }
  expect(output).not.toContain('"level":50');
  image.stop();
  expect(await ended).toEqual([0, null]);
});

/** A folder with these files, as the context of an image. */
function contextOf(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-context-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const lines = (...all: string[]) => ['FROM debian:trixie-slim', 'WORKDIR /app', ...all].join('\n');

test.each<[string, Record<string, string>, RegExp]>([
  [
    'a file that .dockerignore keeps out',
    { 'a.txt': '', '.dockerignore': '*\n!b.txt\n', Dockerfile: lines('COPY a.txt ./') },
    /^Dockerfile:3: COPY a\.txt \.\/\nThere is no a\.txt to copy from$/,
  ],
  [
    'a file that no line copies',
    { 'a.txt': '', '.dockerignore': '', Dockerfile: lines('RUN cat a.txt') },
    /^Dockerfile:3: RUN cat a\.txt\nended with code 1:\ncat: a\.txt: No such file/,
  ],
  [
    'a program that the base image does not have',
    { '.dockerignore': '', Dockerfile: lines('RUN node --version') },
    /^Dockerfile:3: RUN node --version\nended with code 12[67]:/,
  ],
  [
    'several files into what is no folder',
    { a: '', b: '', '.dockerignore': '', Dockerfile: lines('COPY a b c') },
    /^Dockerfile:3: COPY a b c\nc must end with a slash$/,
  ],
])('%s fails the build, with its line', async (_what, files, message) => {
  const building = buildImage(contextOf(files), 'Dockerfile', {
    signal: AbortSignal.timeout(60_000),
  });
  await expect(building).rejects.toThrow(message);
});
