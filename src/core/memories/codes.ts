/**
 * Codes of vectors (binary quantization): the sign of each dimension as a bit. Similar vectors differ in few bits, and
 * bits are compared 32 at a time. A search compares all codes, then the vectors of the nearest ones exactly. Pure.
 */

/** Dimensions of a vector, at most. */
const dimensionsMax = 8_192;

/** The sign of each dimension, the first in the highest bit of the first byte, padded to words of 32 bits. */
export function codeOf(vector: Float32Array): Uint8Array {
  const code = new Uint8Array(wordsOf(vector.length) * 4);
  for (let i = 0; i < vector.length; i++) {
    if ((vector[i] ?? 0) > 0) code[i >> 3] = (code[i >> 3] ?? 0) | (128 >> (i & 7));
  }
  return code;
}

/** The 32-bit words in a code of this many dimensions. */
export const wordsOf = (dimensions: number) => Math.ceil(dimensions / 32);

/** A vector as it is stored. */
export function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** A stored vector. Copies the bytes, because they may be unaligned in their buffer. */
export function vectorOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

export function similarity(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

/** Writes the Hamming distances of the codes from `from` to `to` to `distances`. */
export function compare(
  codes: Uint32Array,
  asked: Uint32Array,
  distances: Uint16Array,
  { from, to }: { readonly from: number; readonly to: number },
): void {
  const words = asked.length;
  let at = from * words;
  for (let i = from; i < to; i++) {
    let sum = 0;
    for (let w = 0; w < words; w++, at++) {
      let bits = (codes[at] as number) ^ (asked[w] as number);
      bits -= (bits >>> 1) & 0x55555555;
      bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
      sum += Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
    }
    distances[i] = sum;
  }
}

/** The numbers of the `most` nearest codes; of equal distances the greater numbers. */
export function nearestOf(
  seqs: Float64Array,
  distances: Uint16Array,
  most: number,
  mayBe: ((seq: number) => boolean) | null,
): number[] {
  const { length } = distances;
  const isIn = (i: number) => mayBe?.(seqs[i] as number) ?? true;
  const counts = new Uint32Array(dimensionsMax + 1);
  for (let i = 0; i < length; i++) {
    if (isIn(i)) counts[distances[i] as number] = (counts[distances[i] as number] as number) + 1;
  }
  let furthest = 0;
  let nearer = 0;
  while (furthest < dimensionsMax && nearer + (counts[furthest] as number) < most) {
    nearer += counts[furthest] as number;
    furthest += 1;
  }
  const found: number[] = [];
  const last: number[] = [];
  for (let i = 0; i < length; i++) {
    const distance = distances[i] as number;
    if (distance > furthest || !isIn(i)) continue;
    (distance < furthest ? found : last).push(seqs[i] as number);
  }
  last.sort((a, b) => b - a);
  return [...found, ...last.slice(0, most - found.length)];
}
