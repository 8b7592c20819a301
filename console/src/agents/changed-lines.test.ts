import { expect, test } from 'vitest';
import { changedLines } from './changed-lines.ts';

/** `=` for equal lines, `-` and `+` for changed ones, `…` for a gap. */
const shown = (before: string, after: string) =>
  changedLines(before, after).map((row) =>
    row.kind === 'gap'
      ? '…'
      : row.kind === 'same'
        ? `=${row.before}`
        : [
            row.before === null ? '' : `-${row.before}`,
            row.after === null ? '' : `+${row.after}`,
          ].join(''),
  );

test.each<[string, string, string[]]>([
  ['', 'a', ['+a']],
  ['a', '', ['-a']],
  ['a\nb\nc', 'a\nB\nc', ['=a', '-b+B', '=c']],
  ['a\nc', 'a\nb\nc', ['=a', '+b', '=c']],
  ['a\nb\nc\nd', 'b\nc\nx\nd', ['-a', '=b', '=c', '+x', '=d']],
  ['1\n2\n3\n4\n5\n6', '1\n2\n3\n4\n5\nsix', ['…', '=3', '=4', '=5', '-6+six']],
  ['a', 'a', ['…']],
])('%j and %j', (before, after, rows) => {
  expect(shown(before, after)).toEqual(rows);
});

test('a text without a common line is shown as a whole, however long', () => {
  const long = (letter: string) =>
    Array.from({ length: 3_000 }, (_, i) => `${letter}${i}`).join('\n');

  expect(changedLines(long('a'), long('b'))).toHaveLength(3_000);
});
