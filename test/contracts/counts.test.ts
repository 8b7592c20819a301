/** Counts kept beside the rows (`src/adapters/database/counts.ts`). */
import { describe, expect, test } from 'vitest';
import { type CountChange, Counts } from '../../src/adapters/database/counts.ts';
import type { Database } from '../../src/adapters/database/database.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';

const counts = new Counts('conversation_counts', ['organization_id', 'agent_id', 'trigger_type']);

type Change = CountChange<'conversation_counts'>;
const kind = (agent_id: string) =>
  ({ organization_id: 'default', agent_id, trigger_type: 'api' }) as const;

/** The sums over all writers, those that are nothing left out. */
async function sumsIn(database: Database): Promise<Record<string, number>> {
  const rows = await database.read.kysely
    .selectFrom('conversation_counts')
    .select((eb) => ['agent_id', 'status', eb.fn.sum<number>('count').as('sum')])
    .groupBy(['agent_id', 'status'])
    .execute();
  const found = rows.map((row) => [`${row.agent_id} ${row.status}`, Number(row.sum)] as const);
  return Object.fromEntries(found.filter(([, sum]) => sum !== 0));
}

describe.each(await engines())('on $name', (engine) => {
  test('a row that comes, changes its status and goes counts once at any time', async () => {
    const database = await engine.emptied();
    const apply = (...changes: Change[]) => database.write((tx) => counts.change(tx, 'w', changes));

    await apply({ kind: kind('a'), from: null, to: 'active' });
    expect(await sumsIn(database)).toEqual({ 'a active': 1 });
    await apply({ kind: kind('a'), from: 'active', to: 'failed' });
    expect(await sumsIn(database)).toEqual({ 'a failed': 1 });
    await apply({ kind: kind('a'), from: 'failed', to: null });
    expect(await sumsIn(database)).toEqual({});
    await apply();
  });

  test('many changes in one transaction add up', async () => {
    const database = await engine.emptied();
    const changes = Array.from({ length: 100 }, (_, i): Change[] => [
      { kind: kind(`agent-${i % 3}`), from: null, to: 'active' },
      { kind: kind(`agent-${i % 3}`), from: 'active', to: i < 60 ? 'completed' : 'active' },
    ]).flat();

    await database.write((tx) => counts.change(tx, 'w', changes));

    expect(await sumsIn(database)).toEqual({
      'agent-0 active': 14,
      'agent-0 completed': 20,
      'agent-1 active': 13,
      'agent-1 completed': 20,
      'agent-2 active': 13,
      'agent-2 completed': 20,
    });
  });

  test('one process may count down rows that another has counted up', async () => {
    const database = await engine.emptied();

    await database.write((tx) =>
      counts.change(tx, 'one', [{ kind: kind('a'), from: null, to: 'active' }]),
    );
    await database.write((tx) =>
      counts.change(tx, 'two', [{ kind: kind('a'), from: 'active', to: 'completed' }]),
    );

    expect(await sumsIn(database)).toEqual({ 'a completed': 1 });
  });

  test('a transaction that fails counts nothing', async () => {
    const database = await engine.emptied();

    const write = database.write(async (tx) => {
      await counts.change(tx, 'w', [{ kind: kind('a'), from: null, to: 'active' }]);
      throw new Error('on purpose');
    });

    await expect(write).rejects.toThrow('on purpose');
    expect(await sumsIn(database)).toEqual({});
  });

  test('transactions that count the same kinds in other orders never wait for each other', async () => {
    const place = await engine.place();
    const database = await place.open();
    const agents = Array.from({ length: 8 }, (_, i) => `agent-${i}`);

    await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        const from = i % agents.length;
        const rotated = [...agents.slice(from), ...agents.slice(0, from)];
        const order = i % 2 === 0 ? rotated : rotated.toReversed();
        const changes = order.map((id): Change => ({ kind: kind(id), from: null, to: 'active' }));
        return database.write((tx) => counts.change(tx, 'w', changes));
      }),
    );

    expect(await sumsIn(database)).toEqual(
      Object.fromEntries(agents.map((id) => [`${id} active`, 60])),
    );
    await database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });

  test('folding merges the counts of other processes: the sums stay, and their rows are deleted', async () => {
    const database = await engine.emptied();
    const came = (id: string): Change => ({ kind: kind(id), from: null, to: 'active' });
    await database.write((tx) => counts.change(tx, 'gone', [came('a'), came('b'), came('b')]));
    await database.write((tx) =>
      counts.change(tx, 'gone too', [{ kind: kind('b'), from: 'active', to: 'completed' }]),
    );
    await database.write((tx) => counts.change(tx, 'here', [came('b')]));
    const before = await sumsIn(database);
    expect(before).toEqual({ 'a active': 1, 'b active': 2, 'b completed': 1 });

    await database.write((tx) => counts.fold(tx, 'here'));
    await database.write((tx) => counts.fold(tx, 'here'));

    expect(await sumsIn(database)).toEqual(before);
    const rows = await database.read.kysely
      .selectFrom('conversation_counts')
      .select('writer')
      .distinct()
      .execute();
    expect(rows).toEqual([{ writer: 'here' }]);
  });

  test('folding by several, while all of them count, loses nothing and counts nothing twice', async () => {
    const place = await engine.place();
    const database = await place.open();
    const writers = ['one', 'two', 'three'];

    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        database.write(async (tx) => {
          const writer = writers[i % 3] as string;
          if (i % 10 === 9) return counts.fold(tx, writer);
          const from = i % 4;
          const order = [0, 1, 2, 3].map((n) => `agent-${(from + n) % 4}`);
          await counts.change(
            tx,
            writer,
            order.map((id) => ({ kind: kind(id), from: null, to: 'active' })),
          );
        }),
      ),
    );

    const each = Object.fromEntries([0, 1, 2, 3].map((n) => [`agent-${n} active`, 54]));
    expect(await sumsIn(database)).toEqual(each);
    await database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});
