import { expect, test } from 'vitest';
import { newMemory, readyMemory } from './record.ts';

test('a memory that waits to be recorded has its words as one text', () => {
  const memory = newMemory({ content: 'Tea, tea & milk' }, 0);

  expect(memory).toMatchObject({ words: ' tea tea milk ', word_count: 3 });
  for (const value of Object.values(readyMemory(memory))) expect(typeof value).not.toBe('object');
});
