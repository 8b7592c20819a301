import { invalid } from './errors.ts';

/** Bytes of a content, a description, a metadata object (docs/decisions/json-and-lists.md). */
export const longTextMax = 65_536;

/** Throws `400 validation_error` for a text that has more bytes than it may, which no JSON Schema counts. */
export function refuseLong(field: string, text: string, bytesMax = longTextMax): void {
  if (Buffer.byteLength(text) <= bytesMax) return;
  throw invalid(field, `must be at most ${bytesMax / 1024} KiB`);
}
