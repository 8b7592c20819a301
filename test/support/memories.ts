import { expect } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';

/** Holds what is kept beside the memories, their counts and their index, against them. */
export async function expectMemoriesConsistent(database: Database): Promise<void> {
  const db = database.read.kysely;
  const rows = await db
    .selectFrom('memories')
    .select(['owner', 'together', 'tag', 'seq'])
    .execute();
  const owners = await db
    .selectFrom('memory_owners')
    .select(['id', 'count'])
    // The others are being deleted in steps, and no query reads their counts.
    .where('removed', '=', 0)
    .execute();
  const there = new Set(owners.map(({ id }) => id));
  const tags = await db.selectFrom('memory_tags').selectAll().execute();
  const index = await db.selectFrom('memory_index').select('rowid').orderBy('rowid').execute();

  // Memories of users are counted for all users together, too.
  const counted = rows.flatMap(({ owner, together, tag }) =>
    together === null
      ? [{ owner, tag }]
      : [
          { owner, tag },
          { owner: together, tag },
        ],
  );
  const byOwner = Map.groupBy(counted, ({ owner }) => owner);
  for (const { id, count } of owners) {
    expect(count, `memories of owner ${id}`).toBe(byOwner.get(id)?.length ?? 0);
  }
  const byTag = Map.groupBy(
    counted.filter(({ owner }) => there.has(owner)),
    ({ owner, tag }) => `${owner} ${tag}`,
  );
  const tagCounts = tags.filter(({ owner }) => there.has(owner));
  expect(
    new Map(tagCounts.map(({ owner, tag, count }) => [`${owner} ${tag}`, count])),
    'counts of tags',
  ).toEqual(new Map([...byTag].map(([key, all]) => [key, all.length])));
  const seqs = rows.map(({ seq }) => seq).sort((a, b) => a - b);
  const codes = await db.selectFrom('memory_codes').select('seq').orderBy('seq').execute();
  const vectors = await db.selectFrom('memory_vectors').select('seq').orderBy('seq').execute();
  const withVectors = codes.map(({ seq }) => Number(seq));
  expect(withVectors, 'codes of vectors').toEqual(vectors.map(({ seq }) => Number(seq)));
  expect(
    withVectors.filter((seq) => !seqs.includes(seq)),
    'vectors without a memory',
  ).toEqual([]);
  expect(
    index.map(({ rowid }) => rowid),
    'entries of the index',
  ).toEqual(seqs);
}
