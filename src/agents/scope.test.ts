import { expect, test } from 'vitest';
import type { MemoryChange } from '../memories/run-memory.ts';
import { childScope, runScope, type Scope } from './scope.ts';

test('a part is named by the calls that lead to it, the same in every attempt', () => {
  const names = () => childScope(childScope(runScope, 2, 'a', []), 3, 'b', []);

  expect(names()).toMatchObject({ path: '/a/b', depth: 2 });
  expect(names().path).toBe(names().path);
  expect(runScope).toMatchObject({ path: '', depth: 0, step: null });
});

test('what a part does to the memory is noted by it and all parts around it', () => {
  const outer: MemoryChange[] = [];
  const inner: MemoryChange[] = [];
  const around = childScope(runScope, 2, 'a', outer);
  const part: Scope = childScope(around, 3, 'b', inner);

  part.note({ forgotten: '1' });
  around.note({ forgotten: '2' });
  // Taken apart, as it is handed on.
  const { note } = part;
  note({ forgotten: '3' });

  expect(inner).toEqual([{ forgotten: '1' }, { forgotten: '3' }]);
  expect(outer).toEqual([{ forgotten: '1' }, { forgotten: '2' }, { forgotten: '3' }]);
});
