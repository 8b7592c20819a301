import { expect, test } from 'vitest';
import { innerPart, wholeRun } from './run-part.ts';

test('the path of a part consists of the calls that lead to it, the same in every attempt', () => {
  const names = () => innerPart(innerPart(wholeRun, 2, 'a').part, 3, 'b').part;

  expect(names()).toMatchObject({ path: '/a/b', depth: 2 });
  expect(names().path).toBe(names().path);
  expect(wholeRun).toMatchObject({ path: '', depth: 0, step: null });
});

test('a memory change of a part is recorded by it and by all parts around it', () => {
  const { part: around, changes: outer } = innerPart(wholeRun, 2, 'a');
  const { part, changes: inner } = innerPart(around, 3, 'b');

  part.note({ forgotten: '1' });
  around.note({ forgotten: '2' });
  // Callers pass the method on alone.
  const { note } = part;
  note({ forgotten: '3' });

  expect(inner).toEqual([{ forgotten: '1' }, { forgotten: '3' }]);
  expect(outer).toEqual([{ forgotten: '1' }, { forgotten: '2' }, { forgotten: '3' }]);
});
