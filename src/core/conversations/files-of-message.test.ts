import { describe, expect, test } from 'vitest';
import { newId } from '../../kernel/ids.ts';
import { filesOfMessage } from './files-of-message.ts';

const [one, two] = [newId(), newId()];
const named = (id: string) => ({ type: 'file', id, name: 'a.png', media_type: 'image/png' });
const json = JSON.stringify;

describe('the files of a message', () => {
  test('are those that a task of a user names', () => {
    const content = json({ task: 'What is it?', files: [one, 'https://example.com/a.png'] });

    const files = filesOfMessage({ role: 'user', content, data: null });

    expect(files).toEqual([one, 'https://example.com/a.png']);
  });

  test('are those that a model has made or was shown, and those that an output names, each once', () => {
    const content = json({ tool: 'draw', input: named(newId()), output: [named(two), named(one)] });
    const data = json({ role: 'tool', files: [{ id: one, name: 'a.png' }] });

    expect(filesOfMessage({ role: 'tool', content, data })).toEqual([one, two]);
    expect(filesOfMessage({ role: 'assistant', content: 'A harbour.', data })).toEqual([one]);
    expect(filesOfMessage({ role: 'assistant', content: json(named(two)), data: null })).toEqual([
      two,
    ]);
  });

  test('are none until guards have seen the message', () => {
    const data = json({ role: 'assistant', files: [{ id: one, name: 'a.png' }], isHeld: true });

    expect(filesOfMessage({ role: 'assistant', content: '[held]', data })).toEqual([]);
  });

  test('are none of a text that is not what it begins as', () => {
    expect(filesOfMessage({ role: 'assistant', content: '{"files":[', data: null })).toEqual([]);
    expect(filesOfMessage({ role: 'user', content: '["files"]', data: null })).toEqual([]);
  });
});
