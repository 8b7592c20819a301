import { expect, test } from 'vitest';
import { engines } from '../../../test/support/databases.ts';
import type { Database, Handle } from '../../adapters/database/database.ts';
import { CodeCache } from './code-cache.ts';
import { ownerKinds } from './owners.store.ts';
import { insertVectors } from './vectors.store.ts';

const model = 1;
/** Of 32 dimensions, so that an entry has 12 bytes. */
const codeOf = (n: number) => Uint8Array.of(n >> 24, n >> 16, n >> 8, n);

/** An owner whose codes are numbered from 1 in their order; `reads` gets the number after which each read began. */
function ownerOf(database: Database, id: number, first = 1) {
  let count = 0;
  const reads: number[] = [];
  const db = Object.create(database.read, {
    all: {
      value(...[statement, params]: Parameters<Handle['all']>) {
        reads.push((params as { n: number }).n - first + 1);
        return database.read.all(statement, params);
      },
    },
  }) as Handle;
  return {
    reads,
    async add(added: number) {
      const vector = new Uint8Array();
      const rows = Array.from({ length: added }, (_, i) => {
        const seq = first + count + i;
        return { seq, owner: id, together: null, vector, code: codeOf(seq - first + 1) };
      });
      await database.write((tx) => insertVectors(tx, model, rows));
      count += added;
    },
    /** The memories whose codes are nearest to that of number `n`, by their numbers. */
    async nearest(cache: CodeCache, n: number, most: number) {
      const searched = {
        owner: { id, kind: ownerKinds.user, count, next_expiry: null },
        model,
        dimensions: 32,
      };
      const found = await cache.nearest(db, searched, codeOf(n), most, null);
      return found.map((seq) => seq - first + 1);
    },
  };
}

async function sqlite(): Promise<Database> {
  const [engine] = await engines();
  if (engine?.name !== 'SQLite') throw new Error('SQLite is the first engine');
  return engine.fresh();
}

test('an owner has half of the bytes at most, in which its last codes are', async () => {
  const cache = new CodeCache(2 * 1_200);
  const owner = ownerOf(await sqlite(), 1);
  await owner.add(250);
  expect(await owner.nearest(cache, 250, 1)).toEqual([250]);
  expect(owner.reads).toEqual([150]);
  expect(await owner.nearest(cache, 151, 1)).toEqual([151]);
  expect(Math.min(...(await owner.nearest(cache, 0, 1_000)))).toBe(151);

  await owner.add(70);

  const later = await owner.nearest(cache, 0, 1_000);
  expect(later).toHaveLength(100);
  expect(Math.min(...later)).toBe(221);
  expect(Math.max(...later)).toBe(320);
  expect(owner.reads.at(-1)).toBe(250);
});

test('two owners of a search fit together, and are read once', async () => {
  const cache = new CodeCache(2 * 1_200);
  const database = await sqlite();
  const own = ownerOf(database, 1);
  const second = ownerOf(database, 2, 501);
  const other = ownerOf(database, 3, 1_001);
  for (const one of [own, second, other]) await one.add(500);
  for (const one of [own, second, own, second]) {
    expect(await one.nearest(cache, 500, 1)).toEqual([500]);
  }
  expect([own.reads, second.reads]).toEqual([
    [400, 500],
    [400, 500],
  ]);

  await other.nearest(cache, 500, 1);
  await own.nearest(cache, 500, 1);

  expect(own.reads.at(-1)).toBe(400);
});
