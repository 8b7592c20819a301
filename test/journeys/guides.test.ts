/** The guides of the first day are executed as they are written. */
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PlatformProcess, startProcess } from '../support/process.ts';

const root = join(import.meta.dirname, '../..');
const command = join(root, 'bin/skillwright.js');

/** The blocks of a section in a language. */
function blocksOf(page: string, title: string, language: 'sh' | 'ts'): string[] {
  const text = readFileSync(join(root, 'docs', `${page}.md`), 'utf8');
  const section = text.split(/^## /m).find((one) => one.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`docs/${page}.md has no section ${title}`);
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms');
  return [...section.matchAll(fence)].map(([, code]) => code as string);
}

let place: string;
let skills: string;
let platform: PlatformProcess;
let key: string;
beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'skillwright-guides-'));
  skills = join(place, 'skills');
  mkdirSync(skills);
  cpSync(join(root, 'templates/project/skills'), skills, { recursive: true });
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(root, join(place, 'node_modules/skillwright'));
  writeFileSync(join(place, 'package.json'), '{"type":"module"}');
  writeFileSync(join(skills, 'shout.ts'), blocksOf('first-skill', 'Write it', 'ts')[0] as string);
  writeFileSync(
    join(skills, 'shout.test.ts'),
    blocksOf('first-skill', 'Test it', 'ts')[0] as string,
  );
  platform = await startProcess(join(place, 'data'), {
    ADMIN_SECRET: undefined,
    SKILLS_DIR: skills,
  });
});
afterAll(async () => {
  await platform?.stop();
  rmSync(place, { recursive: true, force: true });
});

/** What shell code of a guide prints; it may fail where the guide says so. */
async function shell(code: string, variables = {}, input = ''): Promise<string> {
  const moved = code
    .replaceAll('npx skillwright', `"${process.execPath}" "${command}"`)
    .replaceAll('http://127.0.0.1:3000', platform.url);
  const env = { ...process.env, XDG_CONFIG_HOME: place, SKILLWRIGHT_URL: platform.url };
  const options = { cwd: place, env: { ...env, ...variables } };
  const running = promisify(execFile)('bash', ['--norc', '-euc', moved], options);
  running.child.stdin?.end(input);
  const { stdout, stderr } = await running;
  expect(stderr.replaceAll(/^(?:queued|active|completed|shouting)$/gm, '').trim()).toBe('');
  return stdout;
}

test.each(['start', 'first-skill'])('%s makes a key, which login keeps', async (page) => {
  const isStart = page === 'start';
  const blocks = isStart
    ? blocksOf(page, 'Make a key', 'sh')
    : blocksOf(page, 'A project', 'sh').slice(1);
  const [create, login] = blocks.join('').split(/(?=^npx skillwright login)/m) as [string, string];

  key = /^plaintext_key\t(\S+)$/m.exec(await shell(create))?.[1] ?? '';
  const kept = await shell(login, {}, `${key}\n`);

  expect(kept).toContain(`The profile default is for ${platform.url}.`);
});

test('start runs a skill from a terminal and by HTTP', async () => {
  const [terminal = '', http = ''] = blocksOf('start', 'Run a skill', 'sh');

  const printed = await shell(terminal);
  const answers = await shell(http, { KEY: key });

  expect(printed).toMatch(/^text\/v1\.0\/word-count\t/m);
  expect(printed).toMatch(/^\{"words":2,/m);
  expect(printed).toMatch(/\tcompleted\ttext\/v1\.0\/word-count\t/);
  expect(answers).toMatch(/^HTTP\/1\.1 202 Accepted/);
  expect(answers).toContain('"status":"completed"');
});

test('the first skill runs as its comments say', async () => {
  const [code = ''] = blocksOf('first-skill', 'Run it', 'sh');
  const [first = '', followed = '', refused = ''] = code.trim().split('\n');

  expect(await shell(first)).toBe(`${/# (.*)$/.exec(first)?.[1]}\n`);
  expect(await shell(followed)).toBe('{"text":"HELLO"}\n');
  await expect(shell(refused)).rejects.toMatchObject({
    stderr: expect.stringContaining(/refused: (.*)$/.exec(refused)?.[1] as string),
  });
});

test('the test of the first skill passes, and so do the examples', async () => {
  const tested = await shell(`"${process.execPath}" --test "skills/shout.test.ts"`);
  const examples = await shell('npx skillwright test skills');

  expect(tested).toMatch(/^ℹ pass 2$/m);
  expect(examples).toContain('passed  text/v1.0/shout example 1');
});
