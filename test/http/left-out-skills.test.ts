import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { startPlatform } from '../support/platform.ts';

test('what is no SKILL.md skill by the rules is left out, logged and listed, and the platform starts', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'skills-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const [folder, name] of [
    ['good', 'good'],
    ['bad', 'other'],
  ] as const) {
    mkdirSync(join(dir, folder));
    writeFileSync(join(dir, folder, 'SKILL.md'), `---\nname: ${name}\ndescription: Reads.\n---\n`);
  }
  mkdirSync(join(dir, 'fifo'));
  execFileSync('mkfifo', [join(dir, 'fifo/SKILL.md')]);
  mkdirSync(join(dir, ...Array.from({ length: 400 }, () => 'd')), { recursive: true });
  const warnings: unknown[] = [];
  const log = createLogger('silent');
  const platform = await startPlatform({
    skillsDirs: [dir],
    log: Object.assign(Object.create(log), { warn: (fields: unknown) => warnings.push(fields) }),
  });
  onTestFinished(() => platform.stop());
  const faults = [
    {
      file: join(dir, 'bad/SKILL.md'),
      reason: 'name must be the name of its folder, "bad", got "other"',
    },
    {
      file: join(dir, ...Array.from({ length: 33 }, () => 'd')),
      reason: 'is more than 32 folders deep: skills in it are not found',
    },
    { file: join(dir, 'fifo/SKILL.md'), reason: 'must be a regular file' },
  ];

  const listed = await platform.admin('GET', '/admin/left-out-skills');
  const skills = await platform.admin('GET', '/admin/skills');

  const byFile = listed.body.toSorted((a: { file: string }, b: { file: string }) =>
    a.file < b.file ? -1 : 1,
  );
  expect(byFile).toEqual(faults);
  expect(listed.status).toBe(200);
  expect(listed.headers.get('x-total-count')).toBe('3');
  expect(warnings).toEqual(expect.arrayContaining(faults));
  expect(skills.body.map((skill: { skill_name: string }) => skill.skill_name)).toEqual(['good']);
});
