import { expect, test } from 'vitest';
import { findLarge } from './check-deps.ts';

const fields = (n: number) =>
  Array.from({ length: n }, (_, i) => `  /** One. */\n  readonly f${i}: {\n    deep: 1;\n  };`);
const named = (name: string, n: number) =>
  `import 'x';\n\nexport interface ${name} {\n${fields(n).join('\n')}\n}\n`;

test('dependencies of more than five fields are named with their line', () => {
  expect(findLarge(named('JobsDeps', 6))).toEqual([{ line: 3, name: 'JobsDeps', fields: 6 }]);
});

test('methods and optional fields count, nested ones do not', () => {
  const method = '  stop?(id: string): void;\n  readonly clock?: Clock;\n';
  expect(findLarge(named('Deps', 4).replace(/\}\n$/, `${method}}\n`))).toHaveLength(1);
  expect(findLarge(named('Deps', 5))).toEqual([]);
});

test('other interfaces may have more', () => {
  expect(findLarge(named('JobRow', 9))).toEqual([]);
});
