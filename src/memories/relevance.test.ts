import { describe, expect, test } from 'vitest';
import { hasWords, joinWords, rank, relevance } from './relevance.ts';
import { wordsOf } from './words.ts';

const memory = (content: string, id = content) => {
  const words = wordsOf(content);
  return { id, words: joinWords(words), word_count: words.length };
};
const order = (query: string, ...contents: string[]) =>
  rank(
    contents.map((content) => memory(content)),
    wordsOf(query),
  ).map(({ id }) => id);

describe('relevance', () => {
  test('grows with the mentions of a word, neighbours among them', () => {
    expect(order('tea', 'tea milk', 'tea tea')).toEqual(['tea tea', 'tea milk']);
    expect(relevance(memory('tea tea tea'), ['tea'])).toBeGreaterThan(
      relevance(memory('tea tea sea'), ['tea']),
    );
  });

  test('falls with what else is said', () => {
    expect(order('tea', 'tea and a lot more', 'tea too')).toEqual([
      'tea too',
      'tea and a lot more',
    ]);
  });

  test('counts every word of the query', () => {
    expect(order('tea milk', 'tea tea tea sugar', 'tea milk, no sugar')).toEqual([
      'tea milk, no sugar',
      'tea tea tea sugar',
    ]);
  });

  test('is of whole words', () => {
    expect(relevance(memory('teapot steam'), ['tea'])).toBe(0);
  });

  test('is equal for equals, of which the newest comes first', () => {
    const memories = ['1', '3', '2'].map((id) => memory('tea', id));

    expect(rank(memories, ['tea']).map(({ id }) => id)).toEqual(['3', '2', '1']);
  });
});

test('a memory has the words of a query when it has all of them', () => {
  expect(hasWords(memory('tea and milk'), ['milk', 'tea'])).toBe(true);
  expect(hasWords(memory('tea and milk'), ['milk', 'sugar'])).toBe(false);
  expect(hasWords(memory('tea'), [])).toBe(false);
  expect(hasWords(memory('!'), ['tea'])).toBe(false);
});
