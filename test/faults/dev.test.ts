import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { attachInspector, inspectorOf } from '../support/inspector.ts';
import { adminSecret, clientOf } from '../support/platform.ts';
import { inherited, spawnCommand } from '../support/process.ts';
import { dataDirectory } from '../support/staged.ts';
import { freePort } from '../support/supervised.ts';
import { waitFor } from '../support/wait-for.ts';

const shout = 'text/v1.0/shout';

/** A module of `shout` that answers with `text`, which may be any expression. */
const moduleOf = (text: string, imports = '', required: string[] = []) => `${imports}
import { defineSkill } from 'skillwright';
export default defineSkill({
  category: 'text', name: 'shout', version: 'v1.0', displayName: 'Shout', description: 'Shouts.',
  parameters: { type: 'object', required: ${JSON.stringify(required)} },
  output: { type: 'object', properties: { text: { type: 'string' } } },
  run: function () {
    return { text: ${text} };
  },
});
`;
/** The line of `return` after three lines of types. */
const runLine = 10;

test('skillwright dev serves what was saved last and loads', async () => {
  const root = dataDirectory();
  const skills = join(root, 'skills');
  const file = join(skills, 'shout.ts');
  mkdirSync(skills);
  // A type is erased in place, so the lines stay.
  const typed = 'interface Named {\n  readonly name: string;\n}';
  writeFileSync(file, moduleOf(`'one'`, typed));
  // The start of the others does not depend on it.
  const broken = join(skills, 'broken.ts');
  writeFileSync(broken, 'export default ;');
  const environment = {
    ...{ PORT: '0', DATA_DIR: join(root, 'data'), ADMIN_SECRET: adminSecret },
    RETRY_BACKOFF_MS: '1',
  };
  const port = await freePort();
  const args = [skills, '--inspect', `${port}`];
  const { child, exit, output } = spawnCommand('dev', environment, args);
  onTestFinished(() => void child.kill('SIGKILL'));
  const shown = (text: string) =>
    waitFor(() => output().includes(text), { describe: () => `${text} in ${output()}` });
  const url = await waitFor(() => /"address":"([^"]+)"/.exec(output())?.[1] ?? null, {
    describe: () => `it starts: ${output()}`,
    deadlineMs: 30_000,
  });
  await shown('Watching');
  const client = clientOf(url);
  const key = await client.key();
  const servesOf = (skill: string) => (text: string) =>
    waitFor(async () => (await client.run(key, skill, {})).body.output?.text === text, {
      describe: () => `${skill} gives ${text}: ${output()}`,
      deadlineMs: 20_000,
    });
  const [serves, others] = [servesOf(shout), servesOf('text/v1.0/other')];

  await serves('one');
  // A breakpoint at the line of the source that runs.
  const address = await waitFor(() => inspectorOf(port), { describe: () => 'it can be debugged' });
  const inspector = await attachInspector(address);
  await inspector.breakAt(file, runLine);
  const debugged = client.run(key, shout, { word: 'given' });
  const at = await inspector.paused('arguments[0].word');
  expect(at).toEqual({ url: pathToFileURL(file).href, line: runLine, value: 'given' });
  await inspector.resume();
  expect((await debugged).body.output).toEqual({ text: 'one' });
  inspector.close();

  await shown(`${broken}:1:16\n  cannot be loaded: Expression expected\n  1 | export default ;\n`);
  const left = await client.admin('GET', '/admin/skills/reload');
  expect(left.body).toMatchObject({
    status: 'none',
    faults: [{ file: broken, line: 1, column: 16, serving: null, failing: null }],
  });
  const other = moduleOf('text', `import { text } from './_text.ts';`).replace('shout', 'other');
  writeFileSync(join(skills, '_text.ts'), `export const text = 'helped';`);
  writeFileSync(broken, other);
  writeFileSync(file, moduleOf(`'two'`));
  await serves('two');
  await others('helped');
  await waitFor(async () => ![null, address].includes(await inspectorOf(port)), {
    describe: () => 'the debugger can attach to the new executor',
  });

  // A fault: file and line are shown, the last good code stays with its helpers, and others are reloaded.
  writeFileSync(broken, 'const a = 1;\nexport default ;');
  await shown(`${broken}:2`);
  // It is shown before the reload has ended.
  const fault = await waitFor(
    async () => {
      const { body } = await client.admin('GET', '/admin/skills/reload');
      return body.status === 'running' ? null : body;
    },
    { describe: 'the reload has ended' },
  );
  expect(fault).toMatchObject({
    ...{ status: 'refused', trigger: 'watch', file: broken, line: 2 },
    faults: [{ file: broken, line: 2, serving: 'text/v1.0/other' }],
  });
  expect(output().split(`${broken}:2`)).toHaveLength(2);
  writeFileSync(join(skills, '_text.ts'), `export const text = 'another';`);
  writeFileSync(file, moduleOf(`'two ' + text`, `import { text } from './_text.ts';`));
  await serves('two another');
  await others('helped');

  // An import that does not end holds up nothing but itself.
  writeFileSync(broken, 'for (;;);');
  await waitFor(
    async () => {
      const { status, started_at } = (await client.admin('GET', '/admin/skills/reload')).body;
      // A load that has only begun is not given up.
      return status === 'running' && Date.now() - Date.parse(started_at) > 600;
    },
    { describe: () => 'it is being imported' },
  );
  writeFileSync(file, moduleOf(`'three'`));
  await serves('three');
  writeFileSync(broken, other);
  await others('another');

  // A dependency of the author's own, installed by npm.
  const modules = join(root, 'node_modules');
  const install = (word: string) => {
    mkdirSync(join(modules, 'word'), { recursive: true });
    writeFileSync(join(modules, 'word/package.json'), '{"name":"word","main":"index.js"}');
    writeFileSync(join(modules, 'word/index.js'), `module.exports = '${word}';`);
    writeFileSync(join(modules, '.package-lock.json'), JSON.stringify({ word }));
  };
  install('three of npm');
  writeFileSync(file, moduleOf('word', `import word from 'word';`));
  await serves('three of npm');
  install('three and a half');
  await serves('three and a half');

  // Without it the last version cannot run either; what its runs say names no path.
  rmSync(join(modules, 'word'), { recursive: true });
  writeFileSync(join(modules, '.package-lock.json'), '{}');
  await shown(`Runs of ${shout} fail until it loads`);
  expect(output()).toContain(
    `${file}:1\n  cannot be loaded: Cannot find package 'word'\n  1 | import`,
  );
  const failed = await client.run(key, shout, {});
  expect(failed.body).toMatchObject({
    status: 'failed',
    error: { message: `the skill ${shout} no longer loads; the platform's log says why` },
  });
  install('three of npm');
  await serves('three of npm');

  // A change that a reload in production refuses.
  writeFileSync(file, moduleOf(`'four'`, '', ['text']));
  await shown(`warning: ${shout} would break its callers: input.text is now required`);

  // A folder with a SKILL.md.
  mkdirSync(join(skills, 'note'));
  writeFileSync(join(skills, 'note/SKILL.md'), '---\nname: note\ndescription: A note.\n---\n');
  await waitFor(
    async () =>
      (await client.request('GET', '/api/skills/agent-skills/v1.0/note', { key })).status === 200,
    { describe: 'the SKILL.md is a skill', deadlineMs: 20_000 },
  );

  child.kill('SIGTERM');
  expect(await exit).toEqual({ code: 0, signal: null });
});

const loud = (text: string) => `import { defineSkill } from 'skillwright';
export default defineSkill({
  category: 'text', name: 'loud', version: 'v1.0', displayName: 'Loud', description: 'Loud.',
  parameters: { type: 'object' }, output: { type: 'object' }, maxAttempts: 1,
  run() {
    console.log('on its way');
    ${text}
    return {};
  },
});
`;

test('on a terminal, skillwright dev prints a failed run as three lines for a person, and no JSON', async () => {
  const root = dataDirectory();
  const file = join(root, 'skills/loud.ts');
  mkdirSync(join(root, 'skills'));
  writeFileSync(file, loud('undefined.length;'));
  const command = [
    process.execPath,
    join(import.meta.dirname, '../../src/apps/cli/main.ts'),
    'dev',
  ];
  const child = spawn('script', ['-qec', `exec '${command.join("' '")}'`, '/dev/null'], {
    cwd: root,
    env: {
      ...inherited(),
      ...{ PORT: '0', DATA_DIR: join(root, 'data'), ADMIN_SECRET: adminSecret, SHELL: '/bin/sh' },
      // Colours would stand between the words.
      ...{ TERM: 'xterm', NO_COLOR: '1' },
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text.replaceAll('\r\n', '\n');
  });
  const shown = (pattern: RegExp) =>
    waitFor(() => pattern.exec(output), {
      describe: () => `${pattern} in ${output}`,
      deadlineMs: 30_000,
    });
  const [, url = ''] = await shown(/API +(http:\S+)/);
  const client = clientOf(url);
  const key = await client.key();

  const { body } = await client.run(key, 'text/v1.0/loud', {});

  await shown(/\d text\/v1\.0\/loud: on its way\n/);
  const reason = "Cannot read properties of undefined \\(reading 'length'\\)";
  const facts = `skill_execution_failed, attempt 1, job ${body.job_id} is failed`;
  await shown(RegExp(`✗ text/v1\\.0/loud: ${reason}\\n +at skills/loud\\.ts:7:15\\n +${facts}\\n`));

  writeFileSync(file, loud(`throw Object.assign(new Error('shop closed'), { retryable: false });`));
  await shown(/✓.* reloaded/);
  await client.run(key, 'text/v1.0/loud', {});
  await shown(/✗ text\/v1\.0\/loud: shop closed\n +at skills\/loud\.ts:7:\d+\n/);

  child.stdin.write('\x03');
  expect(await exit).toEqual([0, null]);
  expect(output).not.toContain('{"level"');
});
