import { expect, test } from 'vitest';
import { closingLine, flakyTests } from './closing-line-reporter.ts';

test.each([
  [{ passed: 12, failed: 0, skipped: 0 }, '12 passed, 0 failed'],
  [{ passed: 0, failed: 3, skipped: 2 }, '0 passed, 3 failed, 2 skipped'],
])('the closing line of %o', (counts, line) => {
  expect(closingLine(counts)).toBe(line);
});

test('tests that passed only when repeated are named', () => {
  expect(flakyTests([])).toBe('');
  expect(flakyTests(['a.test.ts > waits', 'b.test.ts > ends'])).toBe(
    '\nFlaky, passed only when repeated:\n  a.test.ts > waits\n  b.test.ts > ends\n',
  );
});
