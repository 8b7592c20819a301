/** The headers by which a client asks for bytes that it does not have yet (RFC 9110, 13 and 14). Pure. */

/** The first and the last byte. */
interface AskedPart {
  readonly start: number;
  readonly end: number;
}

/** Whether `If-None-Match` names an ETag; the comparison is weak. */
export function namesTag(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  const tags = header?.split(',').map(opaque) ?? [];
  return tags.includes(opaque(etag)) || header?.trim() === '*';
}

/**
 * The part that `Range` asks for; null for all bytes, also where it is of another unit, of several parts or malformed, or
 * where `If-Range` names other bytes; `none` where there are no such bytes.
 */
export function partAsked(
  headers: { readonly range?: string | undefined; readonly 'if-range'?: unknown },
  etag: string,
  bytes: number,
): AskedPart | 'none' | null {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '') ?? [];
  const { 'if-range': condition = etag } = headers;
  const isSuffix = first === '';
  if (condition !== etag || (isSuffix && last === '')) return null;
  if (!isSuffix && last !== '' && Number(last) < Number(first)) return null;
  const start = isSuffix ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = isSuffix || last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1);
  return start > end ? 'none' : { start, end };
}
