/** `npm start` runs a bundle of the program, but never one of other sources than those that are there. */
import { execFile } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startProcess } from '../support/process.ts';

const root = join(import.meta.dirname, '../..');

/** A copy of the program that has not been bundled. */
function copyProgram(): string {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-bundle-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const name of ['src', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json']) {
    cpSync(join(root, name), join(directory, name), { recursive: true });
  }
  mkdirSync(join(directory, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    symlinkSync(join(root, 'node_modules', name), join(directory, 'node_modules', name));
  }
  mkdirSync(join(directory, 'data'));
  return directory;
}

test('a start runs the bundle of its sources, and without one the sources, which it says if it could be bundled', async () => {
  const program = copyProgram();
  const source = join(program, 'src/apps/composition/run.ts');
  const bundled = () => {
    const { fingerprint } = JSON.parse(readFileSync(join(program, 'dist/last.json'), 'utf8'));
    return join(program, 'dist', fingerprint, 'run.cjs');
  };
  const start = () => startProcess(join(program, 'data'), {}, join(program, 'src/start.js'));
  const said = async () => {
    const platform = await start();
    onTestFinished(() => platform.signal('SIGKILL'));
    await platform.stop();
    return platform.output();
  };
  appendFileSync(source, "\nprocess.stdout.write(new Error('traced').stack ?? '');\n");
  const line = readFileSync(source, 'utf8').split('\n').length - 1;
  const trace = `${source}:${line}:`;

  const first = await said();
  await promisify(execFile)(process.execPath, [join(program, 'scripts/bundle.ts')]);
  appendFileSync(bundled(), "\nprocess.stdout.write('from the bundle\\n');\n");
  const second = await said();
  appendFileSync(source, "\nprocess.stdout.write('from the sources\\n');\n");
  unlinkSync(join(program, 'node_modules/rolldown'));
  const third = await said();

  expect(first).toContain(trace);
  expect(first).toContain('this start ran the sources');
  expect(second).toContain('from the bundle');
  expect(second).toContain(trace);
  expect(second).not.toContain('this start ran the sources');
  expect(third).toContain('from the sources');
  expect(third).not.toContain('from the bundle');
  expect(third).not.toContain('this start ran the sources');
});
