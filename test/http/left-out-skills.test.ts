import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { startPlatform } from '../support/platform.ts';

test('a SKILL.md that breaks a rule is left out, logged and listed, and the platform starts', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'skills-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const [folder, name] of [
    ['good', 'good'],
    ['bad', 'other'],
  ] as const) {
    mkdirSync(join(dir, folder));
    writeFileSync(join(dir, folder, 'SKILL.md'), `---\nname: ${name}\ndescription: Reads.\n---\n`);
  }
  const warnings: unknown[] = [];
  const log = createLogger('silent');
  const platform = await startPlatform({
    skillsDirs: [dir],
    log: Object.assign(Object.create(log), { warn: (fields: unknown) => warnings.push(fields) }),
  });
  onTestFinished(() => platform.stop());
  const fault = {
    file: join(dir, 'bad/SKILL.md'),
    reason: 'name must be the name of its folder, "bad", got "other"',
  };

  const listed = await platform.admin('GET', '/admin/left-out-skills');
  const skills = await platform.admin('GET', '/admin/skills');

  expect(listed).toMatchObject({ status: 200, body: [fault] });
  expect(listed.headers.get('x-total-count')).toBe('1');
  expect(warnings).toContainEqual(fault);
  expect(skills.body.map((skill: { skill_name: string }) => skill.skill_name)).toEqual(['good']);
});
