import { expect } from 'vitest';
import type { Database } from '../../src/database/database.ts';

/** Holds what is kept beside the memories, their counts and their index, against them. */
export async function expectMemoriesConsistent(database: Database): Promise<void> {
  const db = database.read.kysely;
  const rows = await db.selectFrom('memories').select(['owner', 'tag', 'seq']).execute();
  const owners = await db
    .selectFrom('memory_owners')
    .select(['id', 'count'])
    // The others are being deleted in steps, and no query reads their counts.
    .where('removed', '=', 0)
    .execute();
  const there = new Set(owners.map(({ id }) => id));
  const tags = await db.selectFrom('memory_tags').selectAll().execute();
  const index = await db.selectFrom('memory_index').select('rowid').orderBy('rowid').execute();

  const byOwner = Map.groupBy(rows, ({ owner }) => owner);
  for (const { id, count } of owners) {
    expect(count, `memories of owner ${id}`).toBe(byOwner.get(id)?.length ?? 0);
  }
  const byTag = Map.groupBy(
    rows.filter(({ owner }) => there.has(owner)),
    ({ owner, tag }) => `${owner} ${tag}`,
  );
  const counted = tags.filter(({ owner }) => there.has(owner));
  expect(
    new Map(counted.map(({ owner, tag, count }) => [`${owner} ${tag}`, count])),
    'counts of tags',
  ).toEqual(new Map([...byTag].map(([key, all]) => [key, all.length])));
  const seqs = rows.map(({ seq }) => seq).sort((a, b) => a - b);
  expect(
    index.map(({ rowid }) => rowid),
    'entries of the index',
  ).toEqual(seqs);
}
