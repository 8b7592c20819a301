import { describe, expect, test } from 'vitest';
import { decodeText, looksBinary, looksLikeText, mediaType } from './decode-text.ts';

const latin1 = (text: string) => Buffer.from(text, 'latin1');

describe('text is decoded', () => {
  test.each([
    ['UTF-8 without being told', Buffer.from('Zürich €'), '', 'Zürich €'],
    ['Windows-1252 where it is not UTF-8', Buffer.from([0x5a, 0xfc, 0x80]), '', 'Zü€'],
    ['by the charset of the header', latin1('Z\xfc'), 'text/html; charset=ISO-8859-1', 'Zü'],
    ['by a quoted charset', latin1('Z\xfc'), 'text/html; Charset="iso-8859-1"', 'Zü'],
    ['by meta charset', latin1('<meta charset=latin1>Z\xfc'), '', '<meta charset=latin1>Zü'],
    [
      'by meta http-equiv',
      latin1('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">\xf0'),
      'text/html',
      '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">П',
    ],
    [
      'by the XML declaration',
      latin1('<?xml version="1.0" encoding="iso-8859-1"?>\xfc'),
      '',
      '<?xml version="1.0" encoding="iso-8859-1"?>ü',
    ],
    ['Japanese', Buffer.from([0x82, 0xb1]), 'text/plain; charset=Shift_JIS', 'こ'],
    ['by a byte order mark before all', Buffer.from('\uFEFFü'), 'text/html; charset=latin1', 'ü'],
    ['UTF-16 with a byte order mark', Buffer.from('\uFEFFhé', 'utf16le'), '', 'hé'],
    ['past an unknown charset', Buffer.from('ü'), 'text/html; charset=klingon', 'ü'],
    [
      'past a meta that cannot be true',
      Buffer.from('<meta charset=utf-16>ü'),
      '',
      '<meta charset=utf-16>ü',
    ],
    ['nothing', Buffer.alloc(0), 'text/plain', ''],
  ])('%s', (_how, bytes, contentType, text) => {
    expect(decodeText(bytes, contentType)).toBe(text);
  });

  test('without NUL or half characters, which no store keeps', () => {
    const text = decodeText(Buffer.from([0x61, 0, 0xd8, 0x00]), 'text/plain; charset=utf-16be');

    expect(text).not.toContain('\0');
    expect(text.isWellFormed()).toBe(true);
    expect(decodeText(Buffer.from('a\0b'))).toBe('a\uFFFDb');
  });
});

test('text and binary data are told apart', () => {
  const texts = ['', 'hello', 'Zürich', 'a\tb\r\nc\f', '\u001b[1mbold'];
  const binaries = [[0], [0x89, 0x50, 0x4e, 0x47], [0xff], [0x61, 0x01], [0xe2, 0x82]];

  expect(texts.every((text) => looksLikeText(Buffer.from(text)))).toBe(true);
  expect(binaries.some((bytes) => looksLikeText(Buffer.from(bytes)))).toBe(false);
  expect(texts.some((text) => looksBinary(Buffer.from(text)))).toBe(false);
  expect(looksBinary(Buffer.from([0x89, 0x50, 0x01]))).toBe(true);
  expect(looksBinary(latin1('Z\xfcrich'))).toBe(false);
});

test('the media type is the content type without its parameters', () => {
  expect(mediaType(' Text/HTML ; charset=utf-8')).toBe('text/html');
  expect(mediaType('')).toBe('');
});
