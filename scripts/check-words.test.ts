import { describe, expect, test } from 'vitest';
import { findRefused } from './check-words.ts';

describe('a sentence without an actor is found', () => {
  test.each([
    ['in a comment', '// Leases end because nobody renews them.', 'nobody'],
    ['in a title', "test('whoever waits is answered', () => {});", 'whoever'],
    ['in a document', 'Somebody cancelled it.', 'Somebody'],
  ])('%s', (_, text, word) => {
    expect(findRefused(`fine\n${text}`)).toEqual([{ line: 2, word }]);
  });
});

test.each([
  ["{ agent_id: 'nobody' }"],
  ['`GET /api/jobs` agent_id=nobody'],
  ['an agent `nobody`'],
  ['hasNoBody(status)'],
])('quoted data is left alone: %s', (text) => {
  expect(findRefused(text)).toEqual([]);
});
