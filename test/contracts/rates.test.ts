/** Rates of skills: no window has more starts than the limit, and work beyond it begins once the window lets it. */
import { describe, expect, test } from 'vitest';
import { countsUntil } from '../../src/core/jobs/gates/rates.ts';
import type { LimitScope, SkillRate } from '../../src/core/skills/definition.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';

const facts = (name: string, more: object = {}) => ({
  category: 'test',
  name,
  version: 'v1.0',
  displayName: name,
  description: name,
  parameters: { type: 'object' },
  output: {},
  ...more,
});
const limited = { category: 'test', name: 'limited', version: 'v1.0' };
const words = 'rate of test/v1.0/limited';
const perSeconds = 60;
/** After this long no start counts any more. */
const windowMs = countsUntil(0, 1_000, perSeconds * 1_000);

describe.each(await engines())('on $name', (engine) => {
  async function worldOf(rate: SkillRate | SkillRate[], more: object = {}) {
    const world = await jobsWorld(engine);
    await limitTo(world, rate, more);
    return world;
  }
  const limitTo = (world: JobsWorld, rate: SkillRate | SkillRate[], more: object = {}) =>
    world.skills.register([facts('echo'), facts('limited', { rate, ...more })]);
  const submit = (world: JobsWorld, fields: Parameters<JobsWorld['submit']>[0] = {}) =>
    world.submit({ skill: limited, ...fields });
  const several = async (world: JobsWorld, count: number, fields = {}) => {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) ids.push((await submit(world, fields)).id);
    return ids;
  };
  const waiting = (world: JobsWorld, ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await world.jobs.get('default', id)).waiting_for));
  const pass = async (world: JobsWorld, ms: number) => {
    world.clock.advance(ms);
    await world.recovery.sweep();
  };
  const rows = async ({ database }: JobsWorld, table: 'places' | 'gates' | 'rate_starts') =>
    database.read.kysely.selectFrom(table).selectAll().execute();

  // The first test makes the database, which takes long on a busy machine.
  test('starts beyond the rate wait, say for what, and begin in their order as the window lets them', {
    timeout: 240_000,
  }, async () => {
    const world = await worldOf({ limit: 2, perSeconds });
    const ids = await several(world, 5);
    expect(await waiting(world, ids)).toEqual([null, null, words, words, words]);
    for (const id of ids.slice(0, 2)) expect(await world.attempt(id, completed())).toBe(true);
    expect(await world.attempt(ids[2] ?? '', completed())).toBe(false);

    await pass(world, perSeconds * 1_000);
    expect(await waiting(world, ids.slice(2))).toEqual([words, words, words]);
    await pass(world, windowMs - perSeconds * 1_000);

    expect(await waiting(world, ids.slice(2))).toEqual([null, null, words]);
    expect(world.hints.map(({ id }) => id)).toEqual(ids.slice(0, 4));
    for (const id of ids.slice(2, 4)) expect(await world.attempt(id, completed())).toBe(true);
    await pass(world, windowMs);
    expect(await world.attempt(ids[4] ?? '', completed())).toBe(true);
    expect([await rows(world, 'places'), await rows(world, 'gates')]).toEqual([[], []]);
    expect(await rows(world, 'rate_starts')).toHaveLength(1);
    await expectConsistent(world.database);
  });

  test('in no window start more than the limit, with processes that claim at once, and all jobs end', async () => {
    const world = await worldOf([
      { limit: 2, perSeconds: 10 },
      { limit: 3, perSeconds: 60 },
    ]);
    const workers = ['a', 'b', 'c'].map((name) =>
      world.worker(name, { yieldSlot: () => () => {} }),
    );
    const ids = await several(world, 8);
    const starts: number[] = [];
    const left = new Set(ids);

    for (let round = 0; left.size > 0 && round < 200; round++) {
      await Promise.all(
        // More than may begin; each claim takes a transaction.
        [...left].slice(0, 4).flatMap((id) =>
          workers.map(async (worker) => {
            const began = await worker.attempt(id, completed(), () =>
              starts.push(world.clock.now()),
            );
            if (began) left.delete(id);
          }),
        ),
      );
      await pass(world, 1_300 + 97 * (round % 7));
    }

    const within = (ms: number) =>
      Math.max(...starts.map((at) => starts.filter((one) => one >= at && one < at + ms).length));
    expect([left.size, starts.length]).toEqual([0, 8]);
    expect([within(10_000), within(60_000)]).toEqual([2, 3]);
    await expectConsistent(world.database);
  });

  test.each<[LimitScope, Parameters<JobsWorld['submit']>[0]]>([
    ['user', { userId: 'another' }],
    ['agent', { agentId: 'another' }],
    ['client-key', { concurrencyKey: 'another' }],
  ])('a rate per %s counts what is alike', async (per, other) => {
    const world = await worldOf({ limit: 1, perSeconds, per });

    const ids = [...(await several(world, 2)), ...(await several(world, 1, other))];

    expect(await waiting(world, ids)).toEqual([null, `${words} per ${per}`, null]);
  });

  test('turns go round over organizations', async () => {
    const world = await worldOf({ limit: 1, perSeconds });
    const { organizationId, keyId: apiKeyId } = await world.callerOf('quiet');
    const loud = await several(world, 4);
    await several(world, 2, { organizationId, apiKeyId });

    const order: string[] = [];
    for (let i = 0; i < 6; i++) {
      const id = world.hints.at(-1)?.id ?? '';
      order.push(`${loud.includes(id) ? 'loud' : 'quiet'}`);
      await world.attempt(id, completed());
      await pass(world, windowMs);
    }

    expect(order).toEqual(['loud', 'loud', 'quiet', 'loud', 'quiet', 'loud']);
  });

  test('each attempt counts, those too whose process died', async () => {
    const world = await worldOf({ limit: 1, perSeconds });
    const [id] = (await several(world, 1)) as [string];

    await world.attempt(id, failed());
    await pass(world, 2_000);
    expect(await world.attempt(id, failed())).toBe(false);
    expect(await waiting(world, [id])).toEqual([words]);
    await pass(world, windowMs);
    await world.worker('dead').begin(id);
    await pass(world, leaseMs);
    await pass(world, 4_000);
    expect(await world.attempt(id, completed())).toBe(false);

    await pass(world, windowMs);

    expect(await world.attempt(id, completed())).toBe(true);
    await expectConsistent(world.database);
  });

  test('a run that goes on after a wait does not count again', async () => {
    const world = await worldOf({ limit: 1, perSeconds });
    const [first, second] = (await several(world, 2)) as [string, string];

    await world.attempt(first, { kind: 'waiting' });
    world.clock.advance(10);

    expect(await world.attempt(first, completed())).toBe(true);
    expect(await waiting(world, [second])).toEqual([words]);
    await pass(world, windowMs);
    expect(await world.attempt(second, completed())).toBe(true);
  });

  test('a job that leaves before its code begins gives its place to the next one at once', async () => {
    const world = await worldOf({ limit: 1, perSeconds });
    const [first, second, third] = (await several(world, 3)) as [string, string, string];

    await world.jobs.cancel('default', first);
    expect(await waiting(world, [second, third])).toEqual([null, words]);
    const without = world.worker('without', { canRun: () => false });
    await without.perform(second);

    expect(await waiting(world, [second, third])).toEqual([null, null]);
    expect(await world.attempt(third, completed())).toBe(true);
    await pass(world, 10_000);
    expect(await world.attempt(second, completed())).toBe(false);
  });

  test('a job with a rate and a limit of runs passes both', async () => {
    const world = await worldOf({ limit: 2, perSeconds }, { concurrency: { limit: 1 } });
    const ids = await several(world, 3);
    expect(await waiting(world, ids)).toEqual([
      null,
      ...Array(2).fill('concurrency of test/v1.0/limited'),
    ]);

    for (const id of ids.slice(0, 2)) expect(await world.attempt(id, completed())).toBe(true);

    expect(await world.attempt(ids[2] ?? '', completed())).toBe(false);
    expect(await waiting(world, ids.slice(2))).toEqual([words]);
    await pass(world, windowMs);
    expect(await world.attempt(ids[2] ?? '', completed())).toBe(true);
  });

  test('a clock that is set back by hours blocks for no longer than the window', async () => {
    const world = await worldOf({ limit: 1, perSeconds });
    const [first, second] = (await several(world, 2)) as [string, string];
    await world.attempt(first, completed());
    world.clock.jumpTo(world.clock.now() - 10 * 3_600_000);
    const third = await submit(world);
    // In a process that does not watch the gate.
    await world.worker('another').recovery.sweep();

    await pass(world, windowMs + 5_000);

    expect(await waiting(world, [second, third.id])).toEqual([null, words]);
    expect(await world.attempt(second, completed())).toBe(true);
  });

  test('a rate that is raised or removed lets jobs go', async () => {
    const world = await worldOf({ limit: 1, perSeconds });
    const ids = await several(world, 6);
    await world.attempt(ids[0] ?? '', completed());

    await limitTo(world, { limit: 3, perSeconds });
    await world.recovery.sweep();
    expect(await waiting(world, ids.slice(1))).toEqual([null, null, words, words, words]);
    await limitTo(world, []);
    await world.recovery.sweep();

    expect(await waiting(world, ids.slice(1))).toEqual([null, null, null, null, null]);
    expect(await rows(world, 'gates')).toEqual([]);
  });

  describe('a skill that slows down', () => {
    const pause = 'pause after a refusal of test/v1.0/limited';
    const refused = (retryAfterMs: number) => ({ ...failed(), retryAfterMs }) as const;
    const iso = (ms: number) => new Date(ms).toISOString();

    test('starts nothing before the time for which a service has refused it, then all that waits', async () => {
      const world = await worldOf([], { slowsDown: true });
      const ids = await several(world, 3);
      const until = world.clock.now() + 90_000;

      await world.attempt(ids[0] ?? '', refused(90_000));
      for (const id of ids.slice(1)) expect(await world.attempt(id, completed())).toBe(false);
      const last = await submit(world);

      expect(await waiting(world, [ids[1] ?? '', last.id])).toEqual(
        Array(2).fill(`${pause} until ${iso(until)}`),
      );
      const other = await world.submit();
      expect(await world.attempt(other.id, completed())).toBe(true);
      await pass(world, 89_000);
      expect(await world.worker('another').attempt(last.id, completed())).toBe(false);
      await pass(world, 2_000);
      for (const id of [...ids, last.id]) expect(await world.attempt(id, completed())).toBe(true);
      expect([await rows(world, 'gates'), await rows(world, 'places')]).toEqual([[], []]);
      await expectConsistent(world.database);
    });

    test('pauses for an hour at most, and not for less after a later refusal of less', async () => {
      const world = await worldOf([], { slowsDown: true });
      const ids = await several(world, 3);
      const first = await world.begin(ids[0] ?? '');
      const second = await world.begin(ids[1] ?? '');
      const until = world.clock.now() + 3_600_000;

      first.run.end(refused(Number.MAX_SAFE_INTEGER));
      await first.ended;
      second.run.end(refused(1_000));
      await second.ended;

      expect(await world.attempt(ids[2] ?? '', completed())).toBe(false);
      expect(await waiting(world, ids.slice(2))).toEqual([`${pause} until ${iso(until)}`]);
      await pass(world, 3_600_001);
      expect(await world.attempt(ids[2] ?? '', completed())).toBe(true);
    });

    test('lets go on what has waited, and ends its pause where the clock is set back', async () => {
      const world = await worldOf([], { slowsDown: true });
      const ids = await several(world, 3);
      await world.attempt(ids[0] ?? '', { kind: 'waiting' });
      world.clock.advance(10);
      await world.attempt(ids[1] ?? '', refused(600_000));

      expect(await world.attempt(ids[0] ?? '', completed())).toBe(true);
      expect(await world.attempt(ids[2] ?? '', completed())).toBe(false);
      world.clock.jumpTo(world.clock.now() - 10 * 3_600_000);
      await world.recovery.sweep();
      expect(await waiting(world, ids.slice(2))).toEqual([null]);
    });

    test('another skill does not slow down', async () => {
      const world = await worldOf([]);
      const ids = await several(world, 2);

      await world.attempt(ids[0] ?? '', refused(90_000));

      expect(await world.attempt(ids[1] ?? '', completed())).toBe(true);
    });
  });

  test('few rows hold many starts, and are forgotten once they count no longer', async () => {
    const world = await worldOf({ limit: 1_000, perSeconds: 1 });
    for (let i = 0; i < 12; i++) {
      await world.attempt((await submit(world)).id, completed());
      if (i % 3 === 0) world.clock.advance(1);
    }
    expect((await rows(world, 'rate_starts')).length).toBeLessThan(4);

    world.clock.advance(120_000);
    await world.recovery.sweep();

    expect(await rows(world, 'rate_starts')).toEqual([]);
  });
});
