import { expect, test } from 'vitest';
import { CodeCache, type CodeRow, type OwnerCodes } from './code-cache.ts';

/** Of 32 dimensions, so that an entry has 12 bytes. */
const codeOf = (n: number) => Uint8Array.of(n >> 24, n >> 16, n >> 8, n);

function ownerOf(key: string, rows: CodeRow[]) {
  const asked: number[] = [];
  const owner = (): OwnerCodes => ({
    ...{ key, dimensions: 32, count: rows.length },
    async rows(after, max) {
      asked.push(after);
      return rows.filter(({ n }) => n > after).slice(0, max);
    },
    before: async (last) => rows.at(-last - 1)?.n ?? 0,
  });
  const add = (count: number) => {
    for (let i = 0; i < count; i++) {
      const n = rows.length + 1;
      rows.push({ n, seq: n, code: codeOf(n) });
    }
  };
  return { owner, add, asked };
}

test('an owner has half of the bytes at most, in which its last codes are', async () => {
  const cache = new CodeCache(2 * 1_200);
  const { owner, add, asked } = ownerOf('all', []);
  const nearest = async (n: number) => (await cache.nearest(owner(), codeOf(n), 1, null))[0];
  add(250);
  expect(await nearest(250)).toBe(250);
  expect(asked).toEqual([150]);
  expect(await nearest(151)).toBe(151);
  const found = await cache.nearest(owner(), codeOf(0), 1_000, null);
  expect(Math.min(...found)).toBe(151);

  add(70);

  const later = await cache.nearest(owner(), codeOf(0), 1_000, null);
  expect(later).toHaveLength(100);
  expect(Math.min(...later)).toBe(221);
  expect(Math.max(...later)).toBe(320);
  expect(asked.at(-1)).toBe(250);
});

test('two owners of a search fit together, and are read once', async () => {
  const cache = new CodeCache(2 * 1_200);
  const owners = ['own', 'together', 'other'].map((key) => {
    const one = ownerOf(key, []);
    one.add(500);
    return one;
  });
  const [own, together, other] = owners as [
    (typeof owners)[0],
    (typeof owners)[0],
    (typeof owners)[0],
  ];
  const search = (one: typeof own) => cache.nearest(one.owner(), codeOf(500), 1, null);
  for (const one of [own, together, own, together]) expect(await search(one)).toEqual([500]);
  expect([own.asked, together.asked]).toEqual([
    [400, 500],
    [400, 500],
  ]);

  await search(other);
  await search(own);

  expect(own.asked.at(-1)).toBe(400);
});
