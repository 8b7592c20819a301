import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { iconsFile, iconsModule } from './console-icons.ts';

test('the console has the icons that it imports, as Lucide draws them, and no others', () => {
  expect(readFileSync(iconsFile, 'utf8'), 'not as `node scripts/console-icons.ts` writes it').toBe(
    iconsModule(),
  );
});
