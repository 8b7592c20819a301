/** Decodes bytes to text: detects the encoding, and whether the bytes are text. */

import { isUtf8 } from 'node:buffer';
import { cleanText } from './clean-text.ts';

/** The first bytes of HTML in which a `<meta>` may name the encoding. */
const metaBytesMax = 4_096;

/**
 * Decodes by the byte order mark, else by the charset of the content type, else by the charset that the
 * document names, else as UTF-8 if the bytes are valid, else as Windows-1252, which is always valid.
 */
export function decodeText(bytes: Uint8Array, contentType = ''): string {
  const named = [byteOrderMark(bytes), charsetOf(contentType), charsetInside(bytes)];
  for (const label of named) {
    const decoder = label === null ? null : decoderFor(label);
    if (decoder !== null) return cleanText(decoder.decode(bytes));
  }
  return cleanText(new TextDecoder(isUtf8(bytes) ? 'utf-8' : 'windows-1252').decode(bytes));
}

/** True for bytes that are UTF-8 (or have a byte order mark) without control characters. */
export function looksLikeText(bytes: Uint8Array): boolean {
  return byteOrderMark(bytes) !== null || (isUtf8(bytes) && !hasControls(bytes));
}

/** True for bytes with control characters, which text in UTF-8 or a one-byte encoding does not have. */
export function looksBinary(bytes: Uint8Array): boolean {
  return byteOrderMark(bytes) === null && hasControls(bytes);
}

/** Whether there are control characters besides white space and escape. */
function hasControls(bytes: Uint8Array): boolean {
  return bytes.some((byte) => byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b);
}

/** The media type of a content type, in lower case and without parameters. */
export function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

function byteOrderMark(bytes: Uint8Array): string | null {
  const [a, b, c] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8';
  if (a === 0xfe && b === 0xff) return 'utf-16be';
  if (a === 0xff && b === 0xfe) return 'utf-16le';
  return null;
}

function charsetOf(contentType: string): string | null {
  return /charset\s*=\s*["']?([^\s"';,]+)/i.exec(contentType)?.[1] ?? null;
}

/** The charset of `<meta charset>`, `<meta http-equiv>` or an XML declaration. */
function charsetInside(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, metaBytesMax)).toString('latin1');
  const declared = /^\s*<\?xml\s[^>]*encoding\s*=\s*["']([^"']+)/i.exec(head)?.[1];
  if (declared !== undefined) return declared;
  const meta = /<meta\s[^>]*charset\s*=\s*["']?([^\s"'/>;]+)/i.exec(head)?.[1] ?? null;
  // A tag that is readable at one byte per character is not in UTF-16.
  return meta !== null && /^utf-?16/i.test(meta) ? 'utf-8' : meta;
}

function decoderFor(label: string): TextDecoder | null {
  try {
    return new TextDecoder(label);
  } catch {
    return null;
  }
}
