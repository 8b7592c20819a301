import { expect, test } from 'vitest';
import { innerPart, wholeRun } from './run-part.ts';

test('the path of a part consists of the calls that lead to it, the same in every attempt', () => {
  const names = () => innerPart(innerPart(wholeRun, 2, 'a'), 3, 'b');

  expect(names()).toMatchObject({ path: '/a/b', depth: 2 });
  expect(names().path).toBe(names().path);
  expect(wholeRun).toMatchObject({ path: '', depth: 0, step: null });
});

test('a memory change of a part is recorded by it and by all parts around it', () => {
  const outer = innerPart(wholeRun, 2, 'a');
  const inner = innerPart(outer, 3, 'b');

  inner.changes.add({ forgotten: '1' });
  outer.changes.add({ forgotten: '2' });

  expect(inner.changes.list).toEqual([{ forgotten: '1' }]);
  expect(outer.changes.list).toEqual([{ forgotten: '1' }, { forgotten: '2' }]);
});
