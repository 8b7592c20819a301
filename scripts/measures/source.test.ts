/** Calls as the type checker follows them, in a small project. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { measureSources } from './source.ts';

function measured(text: string) {
  const root = mkdtempSync(join(tmpdir(), 'skillwright-measures-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'src'));
  writeFileSync(join(root, 'src/a.ts'), text);
  const compilerOptions = { strict: true, noEmit: true, types: [] };
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
  return measureSources(root);
}

test('a call of a member of an interface ends at its signature, also where it was destructured', () => {
  const { lost } = measured(`
    interface JobDeps { accept(): void; readonly settle: () => void }
    type Verbs = { find(): void };
    export function run(deps: JobDeps, { accept, settle }: JobDeps, verbs: Verbs) {
      deps.accept(); deps.settle(); accept(); settle(); verbs.find();
    }`);
  expect(lost.map(({ declaration }) => declaration).sort()).toEqual([
    'src/a.ts: JobDeps.accept',
    'src/a.ts: JobDeps.accept',
    'src/a.ts: JobDeps.settle',
    'src/a.ts: JobDeps.settle',
    'src/a.ts: Verbs.find',
  ]);
});

test('a call of a function, a method of a class, a callback or a port does not', () => {
  const measures = measured(`
    interface Clock { now(): number }
    class Jobs { find() {} }
    function accept(work: () => void) { work(); }
    export function run(jobs: Jobs, clock: Clock) { jobs.find(); clock.now(); accept(() => {}); }`);
  expect(measures.lost).toEqual([]);
  expect(measures.unknownPorts).not.toContain('Clock');
});

test('a call of what a factory returns ends at an object literal', () => {
  const { atLiterals, factoriesCalledOnce } = measured(`
    function createJobs() { const find = () => 1; return { find }; }
    createJobs().find();`);
  expect(atLiterals).toEqual([{ path: 'src/a.ts', declaration: 'src/a.ts: find' }]);
  expect(factoriesCalledOnce).toBe(1);
});

test('comments and blank lines are no code, and texts that look like comments are', () => {
  const text =
    "/** A\n * comment. */\nconst a = '// no comment';\n\n// One.\nconst b = `\n/* b */`;\n";
  expect(measured(`${text}export const c = /\\/\\*/.test(a + b); // Two.\n`).files).toMatchObject([
    { lines: 8, code: 4 },
  ]);
});
