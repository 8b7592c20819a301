import { expect, test } from 'vitest';
import { mediaTypeOf } from './media-type.ts';

const typeOf = (start: string) => mediaTypeOf(Buffer.from(start, 'latin1'), false, 'a');

/** The first box of a file of the ISO base media format. */
function branded(...[major, ...others]: string[]): string {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(16 + 4 * others.length);
  const box = `${length.toString('latin1')}ftyp${major}\0\0\0\0${others.join('')}`;
  return `${box}\0\0\0\x08freeisom`;
}

test.each([
  [['avif'], 'image/avif'],
  [['avis', 'avis', 'avif'], 'image/avif'],
  [['mif1', 'mif1', 'heic'], 'image/heic'],
  [['M4A ', 'isom'], 'audio/mp4'],
  [['isom', 'iso2', 'avc1'], 'video/mp4'],
  [['qt  '], 'video/quicktime'],
  [['crx ', 'crx2'], 'application/octet-stream'],
])('of the brands %j', (brands, type) => {
  expect(typeOf(branded(...brands))).toBe(type);
});

/** Entries of an archive, as far as their names. A document is large. */
const archive = (...names: string[]) =>
  names
    .map((name) => `PK\x03\x04${'\0'.repeat(26)}${name}`)
    .map((entry) => entry + 'x'.repeat(entry.endsWith('document.xml') ? 5_000 : 5))
    .join('');

test.each([
  [['word/document.xml', '_rels/.rels', '[Content_Types].xml'], /wordprocessingml/],
  [['[Content_Types].xml', '_rels/.rels', 'xl/workbook.xml'], /spreadsheetml/],
  [['_rels/.rels', 'ppt/presentation.xml'], /presentationml/],
  [['notes/word/a.txt'], /^application\/zip$/],
])('an archive of %j', (names, type) => {
  expect(typeOf(archive(...names))).toMatch(type);
});
