import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Io, Output } from './io.ts';
import { runCli } from './program.ts';

const noInput: Io['stdin'] = {
  isTTY: false,
  read: async () => '',
  async *lines() {},
  askSecret: async () => '',
};

const root = join(import.meta.dirname, '../../..');

async function call(cwd: string, ...args: string[]) {
  const said = { out: '', err: '' };
  const output = (name: 'out' | 'err') =>
    new Output(
      (text) => {
        said[name] += text;
      },
      { isTTY: false, hasColors: false },
    );
  const io: Io = {
    ...{ stdin: noInput, stdout: output('out'), stderr: output('err'), env: {}, cwd, fetch },
    ...{ now: Date.now, interrupted: new AbortController().signal },
  };
  const code = await runCli({ io, version: '1.2.3', startPlatform: async () => {} }, args);
  return { code, ...said };
}

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-project-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const skill = (name: string, fields: string) => `export default {
  category: 'own', name: '${name}', version: 'v1.0', displayName: 'Own', description: 'Own.',
  parameters: { type: 'object' }, output: { type: 'object' }, ${fields} };`;

describe('skillwright init', () => {
  test('makes a project, and says what to do next', async () => {
    const folder = emptyFolder();

    const { code, out } = await call(folder, 'init', 'my-skills');

    expect({ code, out }).toMatchObject({ code: 0, out: /cd my-skills\n {2}npm install/ });
    const manifest = JSON.parse(readFileSync(join(folder, 'my-skills/package.json'), 'utf8'));
    expect(manifest).toMatchObject({ name: 'my-skills', scripts: { test: /skillwright test/ } });
    expect(readFileSync(join(folder, 'my-skills/.gitignore'), 'utf8')).toContain('node_modules');
  });

  test('refuses a folder that is not empty, and a name that npm refuses', async () => {
    const folder = emptyFolder();
    mkdirSync(join(folder, 'taken'));
    writeFileSync(join(folder, 'taken/file'), '');

    expect(await call(folder, 'init', 'taken')).toMatchObject({ code: 1, err: /is not empty/ });
    expect(await call(folder, 'init', 'My Skills')).toMatchObject({ code: 2, err: /no name/ });
  });

  test('the tests of the template pass', () => {
    const args = ['--test', 'templates/project/skills/**/*.test.ts'];
    const { NODE_OPTIONS, NODE_TEST_CONTEXT, VITEST, ...env } = process.env;
    const output = execFileSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' });
    expect(output).toMatch(/pass 6\n.*fail 0\n/s);
  });
});

describe('skillwright test', () => {
  test('runs the examples, and names those that failed', async () => {
    const folder = emptyFolder();
    const write = (name: string, fields: string) =>
      writeFileSync(join(folder, `${name}.mjs`), skill(name, fields));
    write('good', 'examples: [{ input: {}, output: { a: 1 } }], run: () => ({ a: 1 })');
    write('wrong', 'examples: [{ input: {}, output: { a: 1 } }], run: () => ({ a: 2 })');
    write('asks', "examples: [{ input: {} }], run: (_, ctx) => ctx.generate({ prompt: 'x' })");

    const { code, out } = await call(folder, 'test', '.', '--json');

    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      ...{ passed: 1, failed: 1, skipped: 1 },
      examples: [
        { skill: 'own/v1.0/asks', status: 'skipped', reason: /answer of the model/ },
        { skill: 'own/v1.0/good', status: 'passed', reason: null },
        {
          skill: 'own/v1.0/wrong',
          status: 'failed',
          reason: 'the output differs',
          difference: /\+ {3}a: 2\n- {3}a: 1/,
        },
      ],
    });
  });

  test('names a skill that blocks its process or does not load, and a folder that is none', async () => {
    const folder = emptyFolder();
    const file = join(folder, 'own.mjs');
    writeFileSync(file, skill('blocks', 'examples: [{ input: {} }], run() { process.exit(0); }'));
    const ended = await call(folder, 'test', '.');
    writeFileSync(file, 'export default 1;');
    const invalid = await call(folder, 'test', '.');

    expect(ended).toMatchObject({ code: 1, err: /own\/v1\.0\/blocks example 1: its code ended/ });
    expect(invalid).toMatchObject({ code: 1, err: /own\.mjs/ });
    expect(await call(folder, 'test', 'none')).toMatchObject({ code: 2, err: /is no folder/ });
  });
});
