import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { CompiledBundle, loadBundle } from './compiled-bundle.ts';

const run = `const part = require('./part.cjs');
exports.sum = (a, b) => part.add(a, b);
exports.separator = require('node:path').sep;`;
const part = `exports.add = (a, b) => a + b;
exports.others = require('./run.cjs');`;
let directory: string;

/** A bundle of two files that need each other, with the code of a start that called its function. */
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'skillwright-bundle-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'run.cjs'), run);
  writeFileSync(join(directory, 'part.cjs'), part);
  const bundle = new CompiledBundle(directory);
  (bundle.load('run.cjs') as Program).sum(1, 2);
  bundle.record(() => {});
});

interface Program {
  readonly sum: (a: number, b: number) => number;
  readonly separator: string;
}

test('a bundle runs with the code of an earlier start', () => {
  const bundle = new CompiledBundle(directory);
  const { sum, separator } = bundle.load('run.cjs') as Program;

  expect(bundle.hasCodeFor('run.cjs')).toBe(true);
  expect(bundle.hasCodeFor('part.cjs')).toBe(true);
  expect([sum(2, 3), separator]).toEqual([5, '/']);
});

test('a file that another one has replaced is compiled, also one of the same length', () => {
  writeFileSync(join(directory, 'part.cjs'), part.replace('a + b', 'a * b'));

  expect((loadBundle(join(directory, 'run.cjs')) as Program).sum(2, 3)).toBe(6);
});

test('code that is not whole is not used', () => {
  const { files } = JSON.parse(readFileSync(join(directory, 'code.json'), 'utf8')) as {
    files: Record<string, { offset: number; length: number }>;
  };
  const { offset = 0, length = 0 } = files['run.cjs'] ?? {};
  truncateSync(join(directory, 'code.bin'), offset + length - 8);

  expect(new CompiledBundle(directory).hasCodeFor('run.cjs')).toBe(false);
  expect((loadBundle(join(directory, 'run.cjs')) as Program).sum(2, 3)).toBe(5);
});

test.each([
  ['of another system', (index: object) => JSON.stringify({ ...index, system: 'other' })],
  ['that cannot be read', (index: object) => JSON.stringify(index).slice(1)],
])('an index %s is ignored', (_which, changed) => {
  const file = join(directory, 'code.json');
  writeFileSync(file, changed(JSON.parse(readFileSync(file, 'utf8')) as object));

  expect(new CompiledBundle(directory).hasCodeFor('run.cjs')).toBe(false);
  expect((loadBundle(join(directory, 'run.cjs')) as Program).sum(2, 3)).toBe(5);
});

test('stack traces name the lines of the files', () => {
  writeFileSync(join(directory, 'fails.cjs'), "\nexports.fail = () => { throw new Error('x'); };");
  const { fail } = new CompiledBundle(directory).load('fails.cjs') as { fail: () => void };

  expect(fail).toThrow(expect.objectContaining({ stack: expect.stringMatching(/fails\.cjs:2:/) }));
});
