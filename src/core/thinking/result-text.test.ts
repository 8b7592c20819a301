import { expect, test } from 'vitest';
import { resultText } from './result-text.ts';

test('a model reads that an image or sound is there, and not its base64', () => {
  const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
  const left = '(4 characters of base64 are left out)';
  expect(JSON.parse(resultText({ n: 1, _content: [image] }))).toEqual({
    ...{ n: 1, _content: [{ ...image, data: left }] },
  });
  expect(resultText({ type: 'image', data: 'aGk=' })).toBe('{"type":"image","data":"aGk="}');
  expect([resultText('text'), resultText(undefined)]).toEqual(['text', 'null']);
});
