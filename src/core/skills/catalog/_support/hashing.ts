/**
 * The browser functions that LiquidJS's filters for hashes and base64 need, for a realm without host
 * objects. Passed as text (`hashingCode`).
 */
import { bundleCommonJs } from '../../../../adapters/sandbox/commonjs-bundle.ts';

/** A text as UTF-8. */
export function utf8Bytes(text: string): Uint8Array {
  const binary = encodeURIComponent(text.toWellFormed()).replace(/%(..)/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

/** UTF-8 as a text; a byte that does not fit becomes U+FFFD. */
export function utf8Text(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] ?? 0;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const escaped = Array.from(bytes.subarray(at, at + length), (byte) =>
      byte.toString(16).padStart(2, '0'),
    );
    try {
      parts.push(decodeURIComponent(escaped.map((hex) => `%${hex}`).join('')));
      at += length;
    } catch {
      parts.push('\ufffd');
      at += 1;
    }
  }
  return parts.join('');
}

/** The parts of WebCrypto and of the encoding standard that LiquidJS uses. */
export const hashingCode = `
${bundleCommonJs(['fast-sha256'], import.meta.url)}
${[utf8Bytes, utf8Text].map(String).join('\n')}
globalThis.TextEncoder = class { encode(text) { return utf8Bytes(String(text)); } };
globalThis.TextDecoder = class { decode(bytes) { return utf8Text(bytes); } };
globalThis.crypto = {
  subtle: {
    digest: async (_algorithm, bytes) => bundled('fast-sha256').hash(bytes).buffer,
    importKey: async (_format, key) => key,
    sign: async (_algorithm, key, bytes) => bundled('fast-sha256').hmac(key, bytes).buffer,
  },
};`;
