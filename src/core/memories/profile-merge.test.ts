import { expect, test } from 'vitest';
import { mergedProfile } from './profile-merge.ts';

const seen = 'Name: Ada\nCity: Basel';

test('an otherwise unchanged profile becomes what the run made of it', () => {
  const change = { seen, content: 'Name: Ada\n\nCity: Bern' };
  expect(mergedProfile(change, seen, 100)).toEqual({ content: change.content, rest: '' });
});

test('what another has added or removed since stays so', () => {
  const change = { seen, content: 'Name: Ada\nCity: Bern' };
  const present = 'City: Basel\nLikes: tea';
  expect(mergedProfile(change, present, 100)).toEqual({
    content: 'Likes: tea\nCity: Bern',
    rest: '',
  });
});

test('two changes of one line are both kept, and the same change once', () => {
  const change = { seen, content: 'Name: Ada\nCity: Bern' };
  expect(mergedProfile(change, 'Name: Ada\nCity: Genf', 100).content).toBe(
    'Name: Ada\nCity: Genf\nCity: Bern',
  );
  expect(mergedProfile(change, change.content, 100).content).toBe(change.content);
});

test('an erased profile has only what the run has added', () => {
  expect(mergedProfile({ seen, content: `${seen}\nPet: cat` }, '', 100).content).toBe('Pet: cat');
});

test('lines without room are left over, in whole lines', () => {
  const change = { seen, content: `${seen}\nPet: cat\nLikes: tea` };
  expect(mergedProfile(change, `${seen}\nJob: clerk`, 42)).toEqual({
    content: `${seen}\nJob: clerk\nPet: cat`,
    rest: 'Likes: tea',
  });
});
