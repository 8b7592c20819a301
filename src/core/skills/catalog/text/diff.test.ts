import { applyPatch } from 'diff';
import { expect, test } from 'vitest';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import diff, { compare } from './diff.ts';

test('a patch turns the old text into the new one', async () => {
  const before = Array.from({ length: 50 }, (_, i) => `line ${i}`).join('\n');
  const after = before.replace('line 10\n', '').replace('line 40', 'line forty\nand more');

  const result = await trySkill(diff, { before, after });

  expect(applyPatch(before, result.patch)).toBe(after);
  expect(result).toMatchObject({ identical: false, added_lines: 2, removed_lines: 2, hunks: 2 });
});

test('texts that are the same have an empty patch', async () => {
  const result = await trySkill(diff, { before: 'same\n', after: 'same\n' });

  expect(result).toEqual({
    patch: '',
    identical: true,
    added_lines: 0,
    removed_lines: 0,
    hunks: 0,
  });
});

test('a missing line end at the end is a change, and is marked', async () => {
  const { patch } = await trySkill(diff, { before: 'a\n', after: 'a' });

  expect(patch).toContain('\\ No newline at end of file');
});

test('white space and context are treated as asked', async () => {
  const texts = { before: 'a\nb\nc\n', after: 'a\n  b\nC\n' };

  const exact = await trySkill(diff, { ...texts, context_lines: 0 });
  const loose = await trySkill(diff, { ...texts, ignore_whitespace: true, context_lines: 0 });

  expect([exact.added_lines, loose.added_lines]).toEqual([2, 1]);
  expect(loose.patch).not.toContain(' a\n');
});

test('names with a space or a line that looks like a header do not break the counts', async () => {
  const result = await trySkill(diff, {
    before: '-- a\n',
    after: '++ b\n',
    before_name: 'old file',
    after_name: 'new file',
  });

  expect(result).toMatchObject({ added_lines: 1, removed_lines: 1 });
  expect(result.patch).toContain('--- ');
});

test('two long texts without a line in common are given up in time', async () => {
  const text = (word: string) => Array.from({ length: 20_000 }, (_, i) => `${word}${i}`).join('\n');

  const comparing = compare({ before: text('a'), after: text('b') }, 50);

  await expect(comparing).rejects.toThrow('The texts are too different to compare in time');
});
