/** The bounds of one write of memories, on every database. */
import { describe, expect, test } from 'vitest';
import { Batch } from '../../src/adapters/database/batch.ts';
import type { Database } from '../../src/adapters/database/database.ts';
import { engines } from '../support/databases.ts';
import { completed, jobsWorld } from '../support/jobs-world.ts';

/** A database, and how many memories each of its writes that recorded any did record. */
function observed(database: Database) {
  const sizes: number[] = [];
  const observing: Database = {
    ...database,
    write: (unit) =>
      database.write(async (tx) => {
        const ids = tx.kysely.selectFrom('memories').select('id');
        const before = (await ids.execute()).length;
        const result = await unit(tx);
        const recorded = (await ids.execute()).length - before;
        if (recorded > 0) tx.afterCommit(() => void sizes.push(recorded));
        return result;
      }),
  };
  return { observing, sizes };
}

describe.each(await engines())('on $name', (engine) => {
  test('runs that remember much and complete together are recorded in several writes', async () => {
    const { observing, sizes } = observed(await engine.emptied());
    const world = await jobsWorld(engine, { database: observing });
    const jobs = await Promise.all(Array.from({ length: 6 }, () => world.submit()));
    const runs = await Promise.all(jobs.map(({ id }) => world.begin(id)));
    for (const [n, { run }] of runs.entries()) {
      for (let i = 0; i < 200; i += 1) {
        await run.ask('remember', { content: `fact ${wordOf(1_000 + n * 200 + i)}` });
      }
    }

    for (const { run } of runs) run.end(completed());
    await Promise.all(runs.map(({ ended }) => ended));

    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_200);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(400);
  });

  test('the items of one write come to one at most, unless a single one is more', async () => {
    const writes: number[][] = [];
    const batch = new Batch<number, void>(
      await engine.emptied(),
      async (_tx, items) => {
        writes.push([...items]);
        return items.map(() => undefined);
      },
      (item) => item,
    );

    await Promise.all([0, 0.5, 0.5, 0.25, 3, 0, 1, 0].map((item) => batch.add(item)));

    expect(writes).toEqual([[0, 0.5, 0.5], [0.25], [3], [0, 1, 0]]);
  });
});

/** A word of its own for each number: memories that differ by a number alone replace each other. */
const wordOf = (n: number) => [...String(n)].map((digit) => 'bcdfghjklm'[Number(digit)]).join('');
