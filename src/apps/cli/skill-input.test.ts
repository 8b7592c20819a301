import { expect, test } from 'vitest';
import { readSettingValues, readSkillInput } from './skill-input.ts';

const stdin = {
  isTTY: false,
  read: async () => '[1]',
  async *lines() {},
  askSecret: async () => '',
};
const read = (...words: string[]) => readSkillInput({ stdin, cwd: import.meta.dirname }, words);

test('no words are an empty object, JSON is taken as it is, - is stdin', async () => {
  expect(await read()).toEqual({});
  expect(await read('{"a":1}')).toEqual({ a: 1 });
  expect(await read('"x=y"')).toBe('x=y');
  expect(await read('-')).toEqual([1]);
});

test('the value of a pair is JSON if it can be, and dots in its key make objects', async () => {
  const pairs = ['n=3', 'on=true', 'text=a=b c', 'who.name=Ada', 'who.tags=["a"]', 'empty='];
  expect(await read(...pairs)).toEqual({
    n: 3,
    on: true,
    text: 'a=b c',
    who: { name: 'Ada', tags: ['a'] },
    empty: '',
  });
});

test('the value of a setting is text, whatever it looks like, and null is none', async () => {
  const words = ['PIN=123456', 'FLAG=true', 'LIST=["a"]', 'TEXT=a=b', 'EMPTY=', 'OLD=null'];
  expect(await readSettingValues({ stdin, cwd: '' }, words)).toEqual({
    ...{ PIN: '123456', FLAG: 'true', LIST: '["a"]', TEXT: 'a=b', EMPTY: '', OLD: null },
  });
  expect(await readSettingValues({ stdin, cwd: '' }, ['{"PIN":"1"}'])).toEqual({ PIN: '1' });
});

test('a key that an assignment would treat in its own way is a key like any other', async () => {
  const input = (await read('__proto__.polluted=1', 'toString=2')) as object;
  expect(Object.keys(input)).toEqual(['__proto__', 'toString']);
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
});

test.each([
  ['words that are no pairs', ['a=1', 'b'], /b is no key=value pair/],
  ['a file that is not there', ['@none.json'], /none\.json cannot be read: there is no such file/],
  ['a file that is no JSON', ['@skill-input.ts'], /skill-input\.ts is no JSON/],
  ['text', ['hello'], /The input is no JSON/],
])('%s are refused with a sentence', async (_what, words, sentence) => {
  await expect(read(...words)).rejects.toThrow(sentence);
});
