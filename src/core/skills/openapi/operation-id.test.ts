/** Names of skills' operations. */
import { expect, test } from 'vitest';
import { operationIdOf } from './operation-id.ts';

test.each([
  ['text/v1.0/word-count', 'textWordCount_v1_0'],
  ['text/v12.30/count', 'textCount_v12_30'],
  ['text/v1.0/sha-256', 'textSha_256_v1_0'],
  ['web-search/v1.0/find', 'webSearch__find_v1_0'],
  ['text/v1.0/2-columns', 'text__2Columns_v1_0'],
  ['3d/v1.0/turn', '_3dTurn_v1_0'],
])('the operation of %s is %s', (skill, id) => {
  expect(idOf(skill)).toBe(id);
});

test('skills whose words are the same have different names', () => {
  const skills = [
    ...['a/v1.0/b-c', 'a-b/v1.0/c', 'a-b-c/v1.0/d', 'a/v1.0/b-c-d', 'a/v1.0/bc', 'ab/v1.0/c'],
    ...['a/v1.0/b-2', 'a/v1.0/b2', 'a-b/v1.0/2', 'a-b-2/v1.0/2', 'ab/v1.0/2', 'ab2/v1.0/2'],
    ...['a-/v1.0/b', 'a--/v1.0/b', 'a--b/v1.0/c', 'a/v1.1/b', 'a/v11.0/b', 'a/v1.0/b-v1'],
  ];
  expect(new Set(skills.map(idOf)).size).toBe(skills.length);
});

function idOf(skill: string): string {
  const [category = '', version = '', name = ''] = skill.split('/');
  return operationIdOf({ category, version, name });
}
