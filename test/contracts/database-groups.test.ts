/** A unit that throws, and the units that share its commit (`src/adapters/database/group-commit.ts`). */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { engines } from '../support/databases.ts';

const units = 100;
const idOf = (n: number) => `org-${String(n).padStart(3, '0')}`;

/** Commits that the write-ahead log holds: each ends with a frame that tells the database's size. */
function commitsIn(directory: string): number {
  const wal = readFileSync(join(directory, 'skillwright.db-wal'));
  if (wal.length === 0) return 0;
  const pageSize = wal.readUInt32BE(8);
  const salt = wal.subarray(16, 24);
  let commits = 0;
  for (let at = 32; at + 24 <= wal.length; at += 24 + pageSize) {
    const isOfThisLog = wal.subarray(at + 8, at + 16).equals(salt);
    if (isOfThisLog && wal.readUInt32BE(at + 4) !== 0) commits += 1;
  }
  return commits;
}

/** Asks for many writes at once, of which some throw after they have written. */
function writeAll(database: Database, bad: readonly number[], hooks: number[]) {
  return Promise.allSettled(
    Array.from({ length: units }, (_, n) =>
      database.write(async (tx) => {
        tx.afterCommit(() => void hooks.push(n));
        await tx.insert('organizations', [{ id: idOf(n), created_at: n }]);
        if (bad.includes(n)) throw new Error(`bad ${n}`);
        return n;
      }),
    ),
  );
}

describe.each(await engines())('on $name', (engine) => {
  test('units that throw leave nothing behind and cost the others one more commit', async () => {
    const place = await engine.place();
    const database = await place.open();
    const bad = [0, 13, 99];
    const hooks: number[] = [];
    const before = engine.name === 'SQLite' ? commitsIn(place.at) : 0;

    const outcomes = await writeAll(database, bad, hooks);

    const good = Array.from({ length: units }, (_, n) => n).filter((n) => !bad.includes(n));
    expect(
      outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : [])),
    ).toEqual(bad.map((n) => `bad ${n}`));
    expect(hooks.toSorted((a, b) => a - b)).toEqual(good);
    const rows = await database.read.kysely.selectFrom('organizations').select('id').execute();
    expect(rows.map(({ id }) => id).toSorted()).toEqual(good.map(idOf));
    if (engine.name === 'SQLite') expect(commitsIn(place.at) - before).toBe(1);
  });

  test.runIf(engine.name === 'SQLite')('its files are for their user alone', async () => {
    const place = await engine.place();
    const database = await place.open();
    await writeAll(database, [], []);

    for (const file of [
      'skillwright.db',
      'skillwright.db-wal',
      'skillwright.db-shm',
      'skillwright.lock',
    ]) {
      expect(statSync(join(place.at, file)).mode & 0o777, file).toBe(0o600);
    }
  });
});
