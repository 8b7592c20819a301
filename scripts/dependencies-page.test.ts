/** The table of packages in docs/decisions/dependencies.md is that of package.json. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const page = readFileSync(join(root, 'docs/decisions/dependencies.md'), 'utf8');
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};

test('the table has a whole row for each package that runs with the platform, in order', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  const cells = rows.slice(1).map((row) => row.split('|').map((cell) => cell.trim()));
  expect(cells.map(([, name]) => name)).toEqual(Object.keys(dependencies));
  for (const [, , reason, own, saved, replacement] of cells) {
    expect([reason, replacement]).toEqual([
      expect.stringMatching(/\w/),
      expect.stringMatching(/\w/),
    ]);
    for (const weight of [own, saved]) expect(weight).toMatch(/^\d+(?:\.\d+)?$/);
  }
  expect(page).toContain(`the ${cells.length} of the table`);
});
