import { expect, test } from 'vitest';
import { executableArguments, nodeArguments } from './node-program.ts';

test('Node takes its flags as they are', () => {
  expect(nodeArguments(['--permission'])).toEqual(['--permission']);
});

test('the executable takes them as one argument, in which a path may have spaces and quotes', () => {
  const [options, marker] = executableArguments(['--permission', '--allow-fs-read=/a b/"c"/*']);

  expect(options).toMatch(/^--node-options=--/);
  expect(options?.endsWith(' --permission "--allow-fs-read=/a b/\\"c\\"/*"')).toBe(true);
  expect(marker).toBe('--run-module');
});
