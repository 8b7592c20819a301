import { expect, test } from 'vitest';
import { closingLine } from './closing-line-reporter.ts';

test.each([
  [{ passed: 12, failed: 0, skipped: 0 }, '12 passed, 0 failed'],
  [{ passed: 0, failed: 3, skipped: 2 }, '0 passed, 3 failed, 2 skipped'],
])('the closing line of %o', (counts, line) => {
  expect(closingLine(counts)).toBe(line);
});
