import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { adminSecret, clientOf } from '../support/platform.ts';
import { spawnCommand } from '../support/process.ts';
import { dataDirectory } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

const shout = 'text/v1.0/shout';

/** A module of `shout` that answers with `text`, which may be any expression. */
const moduleOf = (text: string, imports = '', required: string[] = []) => `${imports}
import { defineSkill } from 'skillwright';
export default defineSkill({
  category: 'text', name: 'shout', version: 'v1.0', displayName: 'Shout', description: 'Shouts.',
  parameters: { type: 'object', required: ${JSON.stringify(required)} },
  output: { type: 'object', properties: { text: { type: 'string' } } },
  run: () => ({ text: ${text} }),
});
`;

test('skillwright dev serves what was saved last and loads', async () => {
  const root = dataDirectory();
  const skills = join(root, 'skills');
  const file = join(skills, 'shout.ts');
  mkdirSync(skills);
  writeFileSync(file, moduleOf(`'one'`));
  const environment = { PORT: '0', DATA_DIR: join(root, 'data'), ADMIN_SECRET: adminSecret };
  const { child, exit, output } = spawnCommand('dev', environment, [skills]);
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
  const serves = (text: string) =>
    waitFor(async () => (await client.run(key, shout, {})).body.output?.text === text, {
      describe: () => `it serves ${text}: ${output()}`,
      deadlineMs: 20_000,
    });

  await serves('one');
  writeFileSync(file, moduleOf(`'two'`));
  await serves('two');

  // A fault: file and line are shown, the last good code stays.
  writeFileSync(file, `const a = 1;\nexport default ;;;`);
  await shown(`${file}:2`);
  const fault = await client.admin('GET', '/admin/skills/reload');
  expect(fault.body).toMatchObject({ status: 'refused', trigger: 'watch', file, line: 2 });
  await serves('two');

  // A dependency of the author's own, installed by npm.
  const modules = join(root, 'node_modules');
  const install = (word: string) => {
    mkdirSync(join(modules, 'word'), { recursive: true });
    writeFileSync(join(modules, 'word/package.json'), '{"name":"word","main":"index.js"}');
    writeFileSync(join(modules, 'word/index.js'), `module.exports = '${word}';`);
    writeFileSync(join(modules, '.package-lock.json'), JSON.stringify({ word }));
  };
  install('three');
  writeFileSync(file, moduleOf('word', `import word from 'word';`));
  await serves('three');
  install('three and a half');
  await serves('three and a half');

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
