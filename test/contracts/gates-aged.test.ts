/** Work that needs places of several gates, each of which other work keeps full that needs this one alone. */
import { describe, expect, test } from 'vitest';
import { pauseOfAgent } from '../../src/core/limits/limit-names.ts';
import { engines } from '../support/databases.ts';
import { completed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';

const limited = { category: 'test', name: 'limited', version: 'v1.0' };
const facts = {
  displayName: 'limited',
  description: 'limited',
  parameters: { type: 'object' },
  output: {},
  concurrency: (['user', 'client-key', 'agent'] as const).map((per) => ({ limit: 1, per })),
};

/** A place of each is of one user, one key of clients or one agent. */
type Gate = 'a' | 'b' | 'c';
let unique = 0;
function needing(...gates: Gate[]) {
  const [userId, concurrencyKey, agentId] = (['a', 'b', 'c'] as const).map((gate) => {
    unique += 1;
    return gates.includes(gate) ? gate : `other-${unique}`;
  }) as [string, string, string];
  return { skill: limited, userId, concurrencyKey, agentId };
}

describe.each(await engines())('on $name', (engine) => {
  /** The gates are full, and more work waits at each of them alone. */
  async function busyWorld(gates: readonly Gate[] = ['a', 'b', 'c']) {
    const world = await jobsWorld(engine, { clock: manualClock(new Date().toISOString()) });
    await world.skills.register([
      { ...limited, ...facts },
      { ...limited, ...facts, name: 'echo', concurrency: [] },
    ]);
    const running = new Map<string, Awaited<ReturnType<JobsWorld['begin']>>>();
    const gateOf = new Map<string, Gate>();
    const add = async (gate: Gate) => {
      gateOf.set((await world.submit(needing(gate))).id, gate);
    };
    /** Begins what may; the ids of those that are of no gate alone. */
    const beginAll = async () => {
      const rows = await world.database.read.kysely
        .selectFrom('jobs')
        .select('id')
        .where('status', '=', 'queued')
        .where('held_by', 'is', null)
        .execute();
      for (const { id } of rows) running.set(id, await world.begin(id));
      return rows.map(({ id }) => id).filter((id) => !gateOf.has(id));
    };
    const end = async (id: string) => {
      const { run, ended } = running.get(id) ?? {};
      running.delete(id);
      run?.end(completed());
      await ended;
    };
    for (const gate of [...gates, ...gates]) await add(gate);
    await beginAll();
    /** Has the gates, one after the other, go on with further work of theirs alone; the other works that have begun. */
    const goOn = async (seconds: number) => {
      const begun: string[] = [];
      for (let second = 0; second < seconds; second++) {
        world.clock.advance(1_000);
        const gate = gates[second % gates.length] as Gate;
        await add(gate);
        const one = [...running.keys()].find((id) => gateOf.get(id) === gate);
        if (one !== undefined) await end(one);
        for (const id of await beginAll()) {
          begun.push(id);
          await end(id);
        }
        await world.running.renewLeases();
        await world.recovery.sweep();
      }
      return begun;
    };
    return { world, goOn, running };
  }

  test.each<[string, Gate[][]]>([
    ['a work that needs two of them', [['a', 'b']]],
    [
      'two works that need the same two',
      [
        ['a', 'b'],
        ['b', 'a'],
      ],
    ],
    [
      'three works in a circle',
      [
        ['a', 'b'],
        ['b', 'c'],
        ['c', 'a'],
      ],
    ],
    ['a work that needs three', [['a', 'b', 'c']]],
  ])('%s: each begins although no gate is ever idle for long', async (_, works) => {
    const { world, goOn } = await busyWorld();
    const ids: string[] = [];
    for (const gates of works) ids.push((await world.submit(needing(...gates))).id);

    const early = await goOn(24);
    const begun = await goOn(40);

    expect(early).toEqual([]);
    expect(begun.toSorted()).toEqual(ids.toSorted());
    const { kysely } = world.database.read;
    const left = kysely.selectFrom('places').select('job_id').where('is_held', '=', -2);
    expect(await left.execute()).toEqual([]);
  });

  test('a call of a run that needs two of them gets its places', async () => {
    const { world, goOn } = await busyWorld();
    const { places } = world.settler.parts;
    const { id } = await world.submit();
    await world.begin(id);
    const row = await world.row(id);
    const work = { ...row, skill_name: 'limited', user_id: 'a', concurrency_key: 'b' };
    const gates = places.limits.gatesOf(work);
    const claim = { ...row, gated: 1 };
    expect(await places.takeForCall({ claim, n: 3, within: [], gates })).toBe(false);

    await goOn(24);
    expect(await places.callsOf(id)).toEqual(new Map([[3, false]]));
    await goOn(40);

    expect(await places.callsOf(id)).toEqual(new Map([[3, true]]));
  });

  test('a run that has a place for which the work waits gets that of its call', async () => {
    const { world, goOn } = await busyWorld(['b']);
    const { places } = world.settler.parts;
    const { id } = await world.submit(needing('c'));
    await world.begin(id);
    await world.submit(needing('b', 'c'));
    await goOn(40);
    const row = { ...(await world.row(id)), gated: 1 };
    const ofB = places.limits.gatesOf({ ...row, ...needing(), concurrency_key: 'b' });
    const gates = ofB.filter(({ name }) => name.includes('client-key'));

    await places.takeForCall({ claim: row, n: 3, within: [], gates });
    await goOn(4);

    expect(await places.callsOf(id)).toEqual(new Map([[3, true]]));
  });

  test('a work that is paused has no place left to it, and begins once it is resumed', async () => {
    const { world, goOn, running } = await busyWorld();
    const { places } = world.settler.parts;
    const work = needing('a', 'b');
    const { id } = await world.submit(work);
    await goOn(24);
    await places.setPlaces(pauseOfAgent('default', work.agentId), 0);

    expect(await goOn(40)).toEqual([]);

    expect(running.size).toBe(3);
    await places.setPlaces(pauseOfAgent('default', work.agentId), null);
    expect(await goOn(40)).toEqual([id]);
  });

  test('works that are paused, however many, keep no place from one behind them', async () => {
    const { world, goOn } = await busyWorld();
    const { places } = world.settler.parts;
    await places.setPlaces(pauseOfAgent('default', 'paused'), 0);
    const { id } = await world.submit(needing('a', 'b'));
    await goOn(6);
    const { kysely } = world.database.read;
    const passedOver = kysely.selectFrom('places').where('is_held', '=', -2);
    const rows = await passedOver.selectAll().where('job_id', '=', id).execute();
    const older: typeof rows = [];
    for (let i = 0; i < 40; i++) {
      const paused = await world.submit({ ...needing('a', 'b'), agentId: 'paused' });
      const since = `${i}`.padStart(36, '0');
      older.push(...rows.map((row) => ({ ...row, job_id: paused.id, since })));
    }
    await world.database.write((tx) => tx.insert('places', older));

    expect(await goOn(50)).toEqual([id]);

    expect(await passedOver.select('job_id').execute()).toEqual([]);
  });
});
