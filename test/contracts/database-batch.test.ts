/** What `Batch` promises on every database (`src/adapters/database/batch.ts`). */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Batch, type BatchRunner } from '../../src/adapters/database/batch.ts';
import type { Database } from '../../src/adapters/database/database.ts';
import { engines } from '../support/databases.ts';

const numbers = (n: number) => Array.from({ length: n }, (_, i) => i);
const idOf = (item: number) => `org-${String(item).padStart(5, '0')}`;

async function idsIn(database: Database): Promise<string[]> {
  const query = database.read.kysely.selectFrom('organizations').select('id').orderBy('id');
  return (await query.execute()).map(({ id }) => id);
}

describe.each(await engines())('on $name', (engine) => {
  /** A batch that records a row for each number, and fails at the poisonous ones. */
  async function recorder({ poison = [] as number[], part = 0 } = {}) {
    const database = await engine.fresh();
    const runs: number[][] = [];
    const committed: number[] = [];
    const write: BatchRunner<number, string> = async (tx, items) => {
      runs.push([...items]);
      await tx.insert(
        'organizations',
        items.map((item) => ({ id: idOf(item), created_at: item })),
      );
      tx.afterCommit(() => void committed.push(...items));
      const bad = items.find((item) => poison.includes(item));
      if (bad !== undefined) throw new Error(`poison ${bad}`);
      return items.map((item) => `answer ${item}`);
    };
    const batch = new Batch(database, write, () => part);
    const record = (item: number) => batch.add(item);
    return { database, record, runs, committed };
  }

  test('items that arrive together share one write, and each gets its own answer', async () => {
    const { database, record, runs } = await recorder();

    const answers = await Promise.all(numbers(100).map(record));

    expect(answers).toEqual(numbers(100).map((item) => `answer ${item}`));
    expect(runs.length).toBeLessThanOrEqual(2);
    expect(await idsIn(database)).toEqual(numbers(100).map(idOf));
  });

  test('each write that fails runs the hooks for that, before it is run again, and no others', async () => {
    const database = await engine.fresh();
    const held = new Map<string, number>();
    const hold = (id: string, by: number) => held.set(id, (held.get(id) ?? 0) + by);
    const unit = (id: string, isBad = false) =>
      database.write(async (tx) => {
        hold(id, 1);
        tx.ifNotCommitted(() => hold(id, -1));
        await tx.insert('organizations', [{ id, created_at: 1 }]);
        if (isBad) throw new Error('poison');
      });

    const outcomes = await Promise.allSettled([unit('a'), unit('b', true), unit('c')]);

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(Object.fromEntries(held)).toEqual({ a: 1, b: 0, c: 1 });
  });

  test('items that arrive while a write is under way go into the next one together', async () => {
    const database = await engine.fresh();
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const runs: number[][] = [];
    const batch = new Batch<number, number>(database, async (_tx, items) => {
      runs.push([...items]);
      begun.resolve();
      if (items.includes(0)) await gate.promise;
      return [...items];
    });
    const record = (item: number) => batch.add(item);

    const first = record(0);
    await begun.promise;
    const others = numbers(50).map((item) => record(item + 1));
    gate.resolve();
    await Promise.all([first, ...others]);

    expect(runs).toEqual([[0], numbers(50).map((item) => item + 1)]);
  });

  const turn = () => new Promise(setImmediate);
  const isPostgres = engine.name === 'PostgreSQL';

  /** A recorder with a clock that stands still. */
  async function standing(options = {}) {
    const made = await recorder(options);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    return made;
  }

  test.runIf(isPostgres)(
    'callers that were answered together are written with those that wait already',
    async () => {
      const { record, runs } = await standing();
      const first = Promise.all(numbers(10).map(record));
      while (runs.length === 0) await turn();
      const second = Promise.all(numbers(10).map((item) => record(10 + item)));
      await first;
      // As callers do that are answered over a network.
      await turn();
      const again = Promise.all(numbers(10).map((item) => record(20 + item)));

      await Promise.all([second, again]);

      expect(runs.map((items) => items.length)).toEqual([10, 20]);
    },
  );

  test.runIf(isPostgres)('an item waits for others two milliseconds at most', async () => {
    const { record, runs } = await standing();
    await Promise.all(numbers(10).map(record));

    const next = record(10);
    await turn();
    expect(runs).toHaveLength(1);
    vi.advanceTimersByTime(2);

    await next;
    expect(runs.map((items) => items.length)).toEqual([10, 1]);
  });

  test.runIf(isPostgres)('few items wait for none', async () => {
    const { record, runs } = await standing();
    await Promise.all(numbers(3).map(record));

    await record(3);

    expect(runs.map((items) => items.length)).toEqual([3, 1]);
  });

  test.runIf(isPostgres)('a write that is full of large items waits for no others', async () => {
    const { record, runs } = await standing({ part: 0.1 });

    const all = Promise.all(numbers(40).map(record));
    while (runs.length < 3) await turn();
    // The last one is not full.
    while (runs.length < 4) {
      vi.advanceTimersByTime(2);
      await turn();
    }
    await all;

    expect(runs.map((items) => items.length)).toEqual([10, 10, 10, 10]);
  });

  test('one write takes a bounded number of items, in the order in which they came', async () => {
    const { record, runs, committed } = await recorder();

    await Promise.all(numbers(1_000).map(record));

    expect(runs.flat()).toEqual(numbers(1_000));
    expect(committed).toEqual(numbers(1_000));
    expect(Math.max(...runs.map((items) => items.length))).toBeLessThanOrEqual(256);
    expect(runs.length).toBeLessThanOrEqual(6);
  });

  test('an item is answered after its commit: every reader sees its row', async () => {
    const { database, record } = await recorder();

    const seen = await Promise.all(
      numbers(20).map(async (item) => {
        await record(item);
        return (await idsIn(database)).includes(idOf(item));
      }),
    );

    expect(seen).not.toContain(false);
  });

  test('an item that makes its write fail is refused alone, and its neighbours are recorded', async () => {
    const { database, record, committed } = await recorder({ poison: [7, 13] });

    const outcomes = await Promise.allSettled(numbers(20).map(record));

    const good = numbers(20).filter((item) => item !== 7 && item !== 13);
    expect(
      outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : [])),
    ).toEqual(['poison 7', 'poison 13']);
    expect(outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))).toEqual(
      good.map((item) => `answer ${item}`),
    );
    expect(await idsIn(database)).toEqual(good.map(idOf));
    expect(committed).toEqual(good);
  });

  test('an item that makes its write fail costs few further writes', async () => {
    const { record, runs } = await recorder({ poison: [200] });

    const outcomes = await Promise.allSettled(numbers(256).map(record));

    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    // Two for each of the eight times that 256 can be halved.
    expect(runs.length).toBeLessThanOrEqual(20);
  });

  test('an item that fails on its own is refused with its own error', async () => {
    const { database, record } = await recorder({ poison: [1] });

    await expect(record(1)).rejects.toThrow('poison 1');

    expect(await idsIn(database)).toEqual([]);
    await expect(record(2)).resolves.toBe('answer 2');
  });

  test('a row that is there already fails its item alone', async () => {
    const { database, record } = await recorder();
    await record(5);

    const outcomes = await Promise.allSettled(numbers(10).map(record));

    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(outcomes[5]?.status).toBe('rejected');
    expect(await idsIn(database)).toEqual(numbers(10).map(idOf));
  });

  test('with 10,000 items waiting the next is answered service_unavailable, and all others are done', async () => {
    const database = await engine.fresh();
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const batch = new Batch<number, number>(database, async (_tx, items) => {
      begun.resolve();
      await gate.promise;
      return [...items];
    });
    const record = (item: number) => batch.add(item);
    const first = record(-1);
    await begun.promise;

    const waiting = numbers(10_000).map(record);
    const refused = await Promise.allSettled([record(10_000), record(10_001)]);
    gate.resolve();

    expect(refused).toMatchObject([
      { reason: { code: 'service_unavailable', extras: { retryAfter: 1 } } },
      { reason: { code: 'service_unavailable', extras: { retryAfter: 1 } } },
    ]);
    expect(await Promise.all([first, ...waiting])).toEqual([-1, ...numbers(10_000)]);
    await expect(record(1)).resolves.toBe(1);
  });

  test('an unavailable database refuses all waiting items at once', async () => {
    const { database, record, runs } = await recorder();
    await database.close();

    const outcomes = await Promise.allSettled(numbers(1_000).map(record));

    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ reason: { code: 'service_unavailable' } });
    }
    expect(runs).toEqual([]);
  });

  test('an item given inside a write is refused instead of waiting for that write', async () => {
    const { database, record } = await recorder();
    const nested = /transaction is open already/i;

    await expect(database.write(async () => record(1))).rejects.toThrow(nested);
    // Also while the batch is busy, when the item would only have joined a queue.
    const busy = numbers(10).map((item) => record(item + 10));
    await expect(database.write(async () => record(2))).rejects.toThrow(nested);

    await Promise.all(busy);
    expect(await idsIn(database)).toEqual(numbers(10).map((item) => idOf(item + 10)));
  });
});
