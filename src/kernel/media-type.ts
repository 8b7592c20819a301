/**
 * What a file is, judged by its bytes: never by what its sender claims. Of texts, which have no marks, a known ending of
 * the name tells which text it is; every text is served as one that no browser renders.
 */

/** Bytes at the start of a file by which it is judged. */
export const headBytes = 4_096;

/** Marks at their place, with the type of files that have them. */
const marks: readonly (readonly [offset: number, mark: string, type: string])[] = [
  [0, '\x89PNG\r\n\x1a\n', 'image/png'],
  [0, '\xff\xd8\xff', 'image/jpeg'],
  [0, 'GIF87a', 'image/gif'],
  [0, 'GIF89a', 'image/gif'],
  [0, '%PDF-', 'application/pdf'],
  [0, 'OggS', 'audio/ogg'],
  [0, 'fLaC', 'audio/flac'],
  [0, 'ID3', 'audio/mpeg'],
  [0, '\xff\xfb', 'audio/mpeg'],
  [0, '\xff\xf3', 'audio/mpeg'],
  [0, '\x1aE\xdf\xa3', 'video/webm'],
  [0, '\x1f\x8b', 'application/gzip'],
];
/** At the start of each entry of an archive. */
const entryMark = 'PK\x03\x04';
/** Of RIFF containers, whose length stands before the mark. */
const riffTypes: Readonly<Record<string, string>> = {
  WEBP: 'image/webp',
  WAVE: 'audio/wav',
};
/** Of the ISO base media format, by the first brand that is known: some name none but a general one before. */
const brandTypes: readonly (readonly [brand: RegExp, type: string])[] = [
  [/^avi[fs]$/, 'image/avif'],
  [/^he(?:i[cxms]|v[cxms])$/, 'image/heic'],
  [/^M4[AB] $/, 'audio/mp4'],
  [/^qt {2}$/, 'video/quicktime'],
  [/^3g[2p].$/, 'video/3gpp'],
  [/^(?:iso[2-9m]|mp4[12]|avc1|dash|M4V |MSNV|f4v )$/, 'video/mp4'],
];
const officeTypes: Readonly<Record<string, string>> = {
  word: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xl: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  ppt: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
};
/** An entry of an archive below the folder that tells the kind of an Office document. */
const officeEntry = new RegExp(`${entryMark}[\\s\\S]{26}(word|xl|ppt)/`);
const textEndings: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  json: 'application/json',
  md: 'text/markdown',
};

/** `head` is how the file begins; `isText` says whether all of it is UTF-8 without NUL. */
export function mediaTypeOf(head: Buffer, isText: boolean, name: string): string {
  const start = head.toString('latin1', 0, headBytes);
  const marked = marks.find(([offset, mark]) => start.startsWith(mark, offset));
  if (marked !== undefined) return marked[2];
  if (start.startsWith('RIFF')) return riffTypes[start.slice(8, 12)] ?? unknownType;
  if (start.slice(4, 8) === 'ftyp') return brandedType(head);
  if (start.startsWith(entryMark)) {
    return officeTypes[officeEntry.exec(start)?.[1] ?? ''] ?? 'application/zip';
  }
  return isText && head.length > 0 ? textType(start, name) : unknownType;
}

export const unknownType = 'application/octet-stream';

function brandedType(head: Buffer): string {
  const box = head.toString('latin1', 8, Math.min(head.readUInt32BE(0), headBytes));
  // After the first brand is its version.
  const brands = [box.slice(0, 4), ...(box.slice(8).match(/[\s\S]{4}/g) ?? [])];
  const types = brands.map((brand) => brandTypes.find(([known]) => known.test(brand))?.[1]);
  return types.find((type) => type !== undefined) ?? unknownType;
}

function textType(start: string, name: string): string {
  const opening = start
    .replace(/^(?:\xef\xbb\xbf)?\s*/, '')
    .slice(0, 1_024)
    .toLowerCase();
  if (opening.startsWith('<!doctype html') || opening.startsWith('<html')) return 'text/html';
  if (opening.startsWith('<') && opening.includes('<svg')) return 'image/svg+xml';
  if (opening.startsWith('<?xml')) return 'application/xml';
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  return textEndings[ending] ?? 'text/plain';
}

/** Pictures that browsers show and, but for AVIF, models see. */
export const isPicture = (type: string) => /^image\/(?:png|jpeg|gif|webp|avif)$/.test(type);

/** Whether models see a picture of the type. */
export const isSeenPicture = (type: string) => isPicture(type) && type !== 'image/avif';

/** Whether a file of the type is text that a reader may be shown as it is. */
export const isTextType = (type: string) =>
  type.startsWith('text/') || /^application\/(?:json|xml)$/.test(type) || type === 'image/svg+xml';
