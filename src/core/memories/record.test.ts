import { expect, test } from 'vitest';
import { newMemory } from './record.ts';

test('a memory that waits to be recorded has its words and terms as one text each', () => {
  const memory = newMemory({ content: 'Tea, tea & milk' }, { now: 0 });

  expect(memory).toMatchObject({ words: ' tea tea milk ', word_count: 3 });
  expect(memory.terms.split(' ')).toEqual(expect.arrayContaining(['\u00b7tea', '\u00b7milk']));
  for (const value of Object.values(memory)) expect(value ?? '').not.toBeTypeOf('object');
});
