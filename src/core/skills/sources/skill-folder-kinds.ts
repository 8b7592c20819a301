/** Names what a file that is no text is, by its first bytes, for a model that cannot be shown it. */

const magics: readonly [kind: string, bytes: Buffer][] = [
  ['a PNG image', Buffer.from('\x89PNG', 'latin1')],
  ['a JPEG image', Buffer.from('\xff\xd8\xff', 'latin1')],
  ['a GIF image', Buffer.from('GIF8')],
  ['a PDF document', Buffer.from('%PDF-')],
  ['a ZIP archive', Buffer.from('PK\x03\x04')],
  ['a gzip archive', Buffer.from('\x1f\x8b', 'latin1')],
  ['a font', Buffer.from('\0\x01\0\0')],
  ['a font', Buffer.from('OTTO')],
  ['a font', Buffer.from('wOF')],
  ['an executable', Buffer.from('\x7fELF')],
  ['an SQLite database', Buffer.from('SQLite format 3\0')],
  ['UTF-16 text', Buffer.from('\xff\xfe', 'latin1')],
  ['UTF-16 text', Buffer.from('\xfe\xff', 'latin1')],
];

/** A ZIP archive under these names is a document. */
const zipped = /\.(docx|pptx|xlsx|odt|ods|odp|epub|jar|skill)$/i;

/** `a PNG image`, for example; `binary data` where the kind is not known. */
export function describeBytes(start: Buffer, path: string): string {
  const kind = magics.find(([, magic]) => start.subarray(0, magic.length).equals(magic))?.[0];
  const [, extension] = zipped.exec(path) ?? [];
  if (kind === 'a ZIP archive' && extension !== undefined) return `a .${extension} file`;
  return kind ?? 'binary data';
}
