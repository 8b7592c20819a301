/** The skill of docs/skills.md whose schemas zod makes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runSkill } from './testing.ts';

const folder = mkdtempSync(join(tmpdir(), 'zod-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The example as a file, with its imports as an installation would resolve them. */
function example(change: (code: string) => string = (code) => code): string {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/skills.md'), 'utf8');
  const [, code = ''] = /```ts\n(import[^`]*from 'zod';[^`]*)```/.exec(page) ?? [];
  const author = new URL('../../author.ts', import.meta.url).href;
  const file = join(folder, `${Math.random()}.ts`);
  const imported = code
    .replace(`'skillwright'`, `'${author}'`)
    .replace(`'zod'`, `'${import.meta.resolve('zod')}'`);
  writeFileSync(file, change(imported));
  return file;
}

test('input is validated by the JSON Schema that zod made, and parsed with its defaults', async () => {
  const skill = example();

  expect(await runSkill(skill, { text: 'ha' })).toMatchObject({ output: { text: 'haha' } });
  expect(await runSkill(skill, { text: '' })).toMatchObject({
    error: { code: 'validation_error' },
  });
});

test('an error of zod in the code is one sentence, and ends the job at its first attempt', async () => {
  const skill = example((code) => code.replace('Input.parse(input)', 'Input.parse({ text: 1 })'));

  const { error, attempts } = await runSkill(skill, { text: 'ha' }, { attempts: 3 });

  expect(error).toMatchObject({ code: 'skill_execution_failed', retryable: false });
  expect(error?.message).toMatch(/schema of the skill's code: text: Invalid input: [^\n{[]+$/);
  expect(attempts).toBe(1);
});
