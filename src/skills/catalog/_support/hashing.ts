/**
 * The browser functions that LiquidJS's filters for hashes and base64 need, for a realm without host
 * objects: SHA-256 (FIPS 180-4), HMAC (RFC 2104) and UTF-8. Passed as text (`hashingCode`).
 */

/** SHA-256 of the bytes. */
export function sha256(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { first, rounds } = sha256Constants();
  const state = Uint32Array.from(first);
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const words = new Uint32Array(64);
  const rotate = (word: number, by: number) => (word >>> by) | (word << (32 - by));
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(block + i * 4);
    for (let i = 16; i < 64; i++) {
      const [x = 0, y = 0] = [words[i - 15], words[i - 2]];
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      words[i] = (words[i - 16] ?? 0) + s0 + (words[i - 7] ?? 0) + s1;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const choice = (e & f) ^ (~e & g);
      const t1 = (h + s1 + choice + (rounds[i] ?? 0) + (words[i] ?? 0)) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const majority = (a & b) ^ (a & c) ^ (b & c);
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + s0 + majority) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => {
      state[i] = (state[i] ?? 0) + word;
    });
  }
  const digest = new Uint8Array(32);
  const out = new DataView(digest.buffer);
  state.forEach((word, i) => {
    out.setUint32(i * 4, word);
  });
  return digest;
}

/** The first 32 bits of the fractions of the square and cube roots of the first primes. */
function sha256Constants(): { first: number[]; rounds: number[] } {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  const fraction = (root: number) => ((root % 1) * 0x1_0000_0000) >>> 0;
  return {
    first: primes.slice(0, 8).map((p) => fraction(Math.sqrt(p))),
    rounds: primes.map((p) => fraction(Math.cbrt(p))),
  };
}

/** HMAC with SHA-256. */
export function hmacSha256(key: Uint8Array, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const padded = (by: number, rest: Uint8Array) => {
    const joined = new Uint8Array(64 + rest.length);
    joined.set(block.map((byte) => byte ^ by));
    joined.set(rest, 64);
    return joined;
  };
  return sha256(padded(0x5c, sha256(padded(0x36, bytes))));
}

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
${[sha256, sha256Constants, hmacSha256, utf8Bytes, utf8Text].map(String).join('\n')}
globalThis.TextEncoder = class { encode(text) { return utf8Bytes(String(text)); } };
globalThis.TextDecoder = class { decode(bytes) { return utf8Text(bytes); } };
globalThis.crypto = {
  subtle: {
    digest: async (_algorithm, bytes) => sha256(bytes).buffer,
    importKey: async (_format, key) => key,
    sign: async (_algorithm, key, bytes) => hmacSha256(key, bytes).buffer,
  },
};`;
