/** How many statements a run that goes on takes to get what is on record: as many as there are pages. */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { digestOf } from '../../src/kernel/digest.ts';
import { engines } from '../support/databases.ts';
import { completed, jobsWorld } from '../support/jobs-world.ts';
import { waitFor } from '../support/wait-for.ts';

const hour = 3_600_000;
const nap = (nth: number) => ({ kind: 'sleep', name: 'nap', nth, ms: hour });
const step = (nth: number) => ({ kind: 'step', name: 'page', nth, digest: '' });

/** The same database, and how many statements with an answer were run, those of a list as one. */
function counting(on: Database) {
  let statements = 0;
  const counted = <H extends Database['read']>(handle: H): H => ({
    ...handle,
    all(...of) {
      statements += 1;
      return handle.all(...of);
    },
    first(...of) {
      statements += 1;
      return handle.first(...of);
    },
    changes(...of) {
      statements += 1;
      return handle.changes(...of);
    },
  });
  const database: Database = {
    ...on,
    read: counted(on.read),
    write: (unit) => on.write((tx) => unit(counted(tx))),
  };
  return { database, count: () => statements };
}

describe.each(await engines())('on $name', (engine) => {
  /** Statements that a run takes to get so many waits that are due together, and so many recorded steps. */
  async function statementsFor(waits: number, steps: number, result: string): Promise<number> {
    const { database, count } = counting(await engine.fresh());
    const world = await jobsWorld(engine, { database });
    const { id } = await world.submit();
    const numbers = (length: number) => Array.from({ length }, (_, i) => i + 1);
    const settled = (asked: Promise<unknown>) => void asked.catch(() => {});
    await world.attempt(id, { kind: 'waiting' }, async (run) => {
      for (const nth of numbers(waits)) settled(run.ask('wait', nap(nth)));
      await waitFor(() => run.suspensions > 0, { describe: 'the run to be asked to be unloaded' });
    });
    const { epoch } = await world.row(id);
    const recorded = {
      job_id: id,
      epoch,
      kind: 'step',
      name: 'page',
      parent: null,
      status: 'completed',
      result: JSON.stringify({ output: result, said: [] }),
      digest: '',
      attempt: 1,
      started_at: 1,
      finished_at: 1,
    } as const;
    const rows = numbers(steps).map((nth) => {
      const place = { n: waits + nth, turn: nth, told: nth };
      return { ...recorded, ...place, generation: digestOf(JSON.stringify(['', 'page', nth])) };
    });
    await world.database.write((tx) => tx.insert('job_steps', rows));
    world.clock.advance(hour);

    const before = count();
    await world.attempt(id, completed(), async (run) => {
      const slept = numbers(waits).map((nth) => run.ask('wait', nap(nth)));
      for (const nth of numbers(steps)) {
        expect(await run.ask('begin-step', step(nth))).toMatchObject({ output: result });
      }
      await Promise.all(slept);
    });
    const taken = count() - before;
    expect(await world.row(id)).toMatchObject({ status: 'completed' });
    return taken;
  }

  test('a run with twice as many waits and steps takes no more of them, as long as they fit on a page', async () => {
    const some = await statementsFor(100, 400, 'x');
    const more = await statementsFor(200, 790, 'x');

    expect(more).toBe(some);
    expect(some).toBeLessThan(30);
  });

  test('large results come in pages of 2 MiB', async () => {
    const large = 'x'.repeat(200_000);
    const base = await statementsFor(1, 1, large);
    const [some, more] = [await statementsFor(1, 20, large), await statementsFor(1, 40, large)];

    expect([some - base, more - base]).toEqual([1, 3]);
  });
});
