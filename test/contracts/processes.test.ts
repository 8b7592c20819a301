/** Membership and clock of the processes of a cluster, on both databases. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { DatabaseClock } from '../../src/adapters/database/clock.ts';
import type { Database } from '../../src/adapters/database/database.ts';
import type { ExecutorPool } from '../../src/core/executors/pool.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import type { LoadedSkill } from '../../src/core/skills/sources/modules.ts';
import { Processes } from '../../src/platform/processes/processes.ts';
import { ThisProcess } from '../../src/platform/processes/this-process.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { anId } from '../support/expectations.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';

const fact = (name: string, description = 'does it') => ({
  category: 'util',
  name,
  version: 'v1.0',
  displayName: name,
  description,
  parameters: {},
  output: {},
});
const echo = fact('echo') as unknown as LoadedSkill;
const loaded = (...definitions: LoadedSkill[]) => ({ definitions }) as unknown as ExecutorPool;

test('an embedded platform lists its one process, with the time of its last claim', async () => {
  const clock = manualClock('2026-01-01T00:00:00.000Z');
  const facts = {
    roles: ['worker', 'api'],
    version: '1.0.0',
    executors: loaded(echo),
    turns: new Map(),
  };
  const single = new ThisProcess(clock, facts);
  clock.advance(3_600_000);
  single.claimed();
  clock.advance(1_000);
  single.begun();
  clock.advance(59_000);

  expect(await single.list()).toEqual([
    {
      id: anId,
      roles: ['api', 'worker'],
      version: '1.0.0',
      skills: ['util/v1.0/echo'],
      started_at: '2026-01-01T00:00:00.000Z',
      seen_at: '2026-01-01T01:01:00.000Z',
      last_claim_at: '2026-01-01T01:00:00.000Z',
      last_job_at: '2026-01-01T01:00:01.000Z',
    },
  ]);
});

describe.each(await engines())('on $name', (engine) => {
  function process(
    database: Database,
    clock: ManualClock,
    roles: string[],
    skills: LoadedSkill[] = [],
    capabilities: string[] = [],
  ) {
    const facts = { roles, version: '1.0.0', executors: loaded(...skills), turns: new Map() };
    return new Processes(contextOf({ database, clock }), facts, capabilities);
  }

  test('each knows how many there are of each role, itself among them', async () => {
    const [database, clock] = [await engine.emptied(), manualClock()];
    const api = process(database, clock, ['api']);
    const worker = process(database, clock, ['worker'], [echo]);

    await worker.beat();
    await api.beat();

    expect([api.live('api'), api.live('worker'), api.live('scheduler')]).toEqual([1, 1, 0]);
    expect(api.skills()).toEqual(new Set(['util/v1.0/echo']));
  });

  test('a process counts on a capability while every live process announces it', async () => {
    const [database, clock] = [await engine.emptied(), manualClock()];
    const able = process(database, clock, ['api'], [], ['to-dance']);
    expect(able.canAll('to-dance')).toBe(false);
    await able.beat();
    expect([able.canAll('to-dance'), able.canAll('to-sing')]).toEqual([true, false]);

    // A process of an older version does not know the column, and has the same version number here.
    const id = '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11';
    const seenAt = clock.now();
    await database.write((tx) =>
      sql`insert into processes (id, roles, version, skills, started_at, seen_at, last_claim_at)
        values (${id}, '["api"]', '1.0.0', '[]', ${seenAt}, ${seenAt}, 0)`.execute(tx.kysely),
    );
    await able.beat();
    expect(able.canAll('to-dance')).toBe(false);
    clock.advance(15_000);
    expect(able.canAll('to-dance')).toBe(false);
    await able.beat();
    expect(able.canAll('to-dance')).toBe(true);
  });

  test('a process without a heartbeat for 15 seconds is not live, and is live again with the next one', async () => {
    const [database, clock] = [await engine.emptied(), manualClock()];
    const api = process(database, clock, ['api']);
    const worker = process(database, clock, ['worker']);
    await worker.beat();

    clock.advance(14_999);
    await api.beat();
    expect(api.live('worker')).toBe(1);
    clock.advance(1);
    await api.beat();
    expect(api.live('worker')).toBe(0);

    await worker.beat();
    await api.beat();
    expect(api.live('worker')).toBe(1);
  });

  test('the list has the live processes, the oldest first, with what each announced', async () => {
    const [database, clock] = [await engine.emptied(), manualClock('2026-01-01T00:00:00.000Z')];
    const worker = process(database, clock, ['worker', 'scheduler'], [echo]);
    clock.advance(1_000);
    const api = process(database, clock, ['api']);
    const silent = process(database, clock, ['api']);
    await silent.beat();
    clock.advance(14_000);
    worker.claimed();
    worker.begun();
    await worker.beat();
    clock.advance(1_000);
    await api.beat();

    expect(await api.list()).toEqual([
      {
        id: anId,
        roles: ['scheduler', 'worker'],
        version: '1.0.0',
        skills: ['util/v1.0/echo'],
        started_at: '2026-01-01T00:00:00.000Z',
        seen_at: '2026-01-01T00:00:15.000Z',
        last_claim_at: '2026-01-01T00:00:15.000Z',
        last_job_at: '2026-01-01T00:00:15.000Z',
      },
      {
        id: anId,
        roles: ['api'],
        version: '1.0.0',
        skills: [],
        started_at: '2026-01-01T00:00:01.000Z',
        seen_at: '2026-01-01T00:00:16.000Z',
        last_claim_at: null,
        last_job_at: null,
      },
    ]);

    await worker.leave();
    expect(await api.list()).toMatchObject([{ roles: ['api'] }]);
  });

  test('a process that stops is not live at once', async () => {
    const [database, clock] = [await engine.emptied(), manualClock()];
    const api = process(database, clock, ['api']);
    const worker = process(database, clock, ['worker']);
    await worker.beat();

    await worker.leave();
    await api.beat();

    expect(api.live('worker')).toBe(0);
  });

  test('all know when one of them last claimed a job', async () => {
    const [database, clock] = [await engine.emptied(), manualClock()];
    const api = process(database, clock, ['api']);
    const worker = process(database, clock, ['worker']);
    await worker.beat();
    await api.beat();
    expect(api.lastClaimAt()).toBe(0);

    worker.claimed();
    const claimedAt = clock.now();
    clock.advance(5_000);
    await worker.beat();
    await api.beat();

    expect(api.lastClaimAt()).toBe(claimedAt);
  });

  test('the row of a process that died is deleted after an hour', async () => {
    const [database, clock] = [await engine.emptied(), manualClock()];
    const api = process(database, clock, ['api']);
    await process(database, clock, ['worker']).beat();
    const kept = () => database.read.kysely.selectFrom('processes').selectAll().execute();

    clock.advance(60 * 60 * 1000);
    await api.beat();
    await api.forgetGone();
    expect(await kept()).toHaveLength(2);
    clock.advance(1);
    await api.beat();
    await api.forgetGone();

    expect(await kept()).toHaveLength(1);
  });

  describe('a skill of several processes', () => {
    test('that a process has just loaded is active at once', async () => {
      const [database, clock] = [await engine.emptied(), manualClock()];
      const old = new SkillRegistry(contextOf({ database, clock }));
      await old.register([]);
      const asOf = clock.now();
      clock.advance(1);
      await new SkillRegistry(contextOf({ database, clock })).register([fact('new')]);

      await old.confirm([], new Set(), asOf);

      expect(old.list('default').map(({ name }) => name)).toEqual(['new']);
    });

    test('is inactive only when no live process has it', async () => {
      const [database, clock] = [await engine.emptied(), manualClock()];
      const old = new SkillRegistry(contextOf({ database, clock }));
      await old.register([fact('old'), fact('both')]);
      const next = new SkillRegistry(contextOf({ database, clock }));

      await next.register(
        [fact('both'), fact('new')],
        new Set(['util/v1.0/old', 'util/v1.0/both']),
      );
      expect(next.list('default').map(({ name }) => name)).toEqual(['both', 'new', 'old']);
      clock.advance(1);
      await next.confirm([fact('both'), fact('new')], new Set(), clock.now());

      expect(next.list('default').map(({ name }) => name)).toEqual(['both', 'new']);
    });

    test('has the definition of the process that started last, which the others do not replace', async () => {
      const [database, clock] = [await engine.emptied(), manualClock()];
      const old = new SkillRegistry(contextOf({ database, clock }));
      await old.register([fact('echo', 'as it was')]);
      await new SkillRegistry(contextOf({ database, clock })).register([fact('echo', 'as it is')]);

      await old.confirm([fact('echo', 'as it was')], new Set(), clock.now());

      expect(old.list('default')[0]?.description).toBe('as it is');
    });

    test('is changed for all of them within a look', async () => {
      const [database, clock] = [await engine.emptied(), manualClock()];
      const [one, other] = [
        new SkillRegistry(contextOf({ database, clock })),
        new SkillRegistry(contextOf({ database, clock })),
      ];
      await one.register([fact('echo')]);
      await other.refresh();
      expect(other.findActive('default', 'util', 'v1.0', 'echo')).toBeDefined();

      clock.advance(1);
      await one.setDeprecated('util', 'v1.0', 'echo', true);
      await other.refresh();

      expect(other.findActive('default', 'util', 'v1.0', 'echo')).toBeUndefined();
      expect(other.definition('default', 'util', 'v1.0', 'echo')).toBeDefined();
    });
  });

  test.runIf(engine.name === 'PostgreSQL')('the time is that of the database', async () => {
    const clock = new DatabaseClock(await engine.emptied());
    await clock.measure();

    // Both run on one machine here, so they have one clock to measure.
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(500);
    await clock.measure();
    const [before, monotonic] = [clock.now(), clock.monotonic()];
    expect(clock.now()).toBeGreaterThanOrEqual(before);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(monotonic);
  });
});
