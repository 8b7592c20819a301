/** What becomes of the slots of scheduled jobs, on every database (decisions 9). */
import { describe, expect, test } from 'vitest';
import { engines } from '../support/databases.ts';
import { completed } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type SchedulesWorld, schedulesWorld } from '../support/schedules-world.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** agent.error events. */
async function errorsIn({ events }: SchedulesWorld) {
  const errors = (await events()).filter(({ type }) => type === 'agent.error');
  return errors.map(({ agent_id, data }) => ({ agent_id, ...JSON.parse(data) }));
}

const echo = (more = {}) => ({
  category: 'test',
  name: 'echo',
  version: 'v1.0',
  displayName: 'echo',
  description: 'Does echo',
  parameters: { type: 'object' },
  output: {},
  ...more,
});

describe.each(await engines())('on $name', (engine) => {
  describe('a slot whose minute has come', () => {
    test('fires: a run in the name of the key that made it, with its own conversation', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule({ input: { a: [1] } });
      world.clock.advance(minute);

      expect(await world.tick()).toBe(1);

      const jobId = await world.lastJob(id);
      expect(await world.row(jobId)).toMatchObject({
        agent_id: 'default',
        api_key_id: world.caller.keyId,
        user_id: world.caller.clientName,
        trigger_type: 'scheduled',
        status: 'queued',
        max_attempts: 4,
        input: '{"a":[1]}',
      });
      const slot = world.clock.now();
      expect(await world.slots(id)).toEqual([{ slot, outcome: 'fired', slots: 1, job_id: jobId }]);
      expect(await world.schedules.get('default', id)).toMatchObject({
        last_run_at: new Date(slot).toISOString(),
        last_run_status: 'active',
        next_run_at: new Date(slot + minute).toISOString(),
      });
      expect(world.hints).toMatchObject([{ id: jobId, queue: 'scheduled-jobs' }]);
      expect((await world.events()).map(({ type }) => type)).toEqual(['conversation.created']);
    });

    test('fires once, however often it is looked at', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(minute);

      await Promise.all([world.tick(), world.tick(), world.tick()]);
      await world.tick();

      expect(await world.outcomes(id)).toEqual(['fired']);
    });

    test('does not fire before its minute, nor while it is disabled', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      const disabled = await world.schedule({ cron_expression: '*/1 * * * *', enabled: false });

      world.clock.advance(minute - 1);
      expect(await world.tick()).toBe(0);
      world.clock.advance(1);
      expect(await world.tick()).toBe(1);

      expect(await world.outcomes(id)).toEqual(['fired']);
      expect(await world.outcomes(disabled)).toEqual([]);
    });

    test('is skipped and logged while the last run is still active, and the next one fires', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(minute);
      await world.tick();
      const first = await world.lastJob(id);
      world.clock.advance(minute);

      await world.tick();

      expect(await world.outcomes(id)).toEqual(['fired', 'overlapped']);
      expect(await world.lastJob(id)).toBe(first);
      expect(world.logged).toMatchObject([{ scheduled_job_id: id, outcome: 'overlapped' }]);
      expect(await errorsIn(world)).toEqual([]);
      await world.attempt(first, completed());
      world.clock.advance(minute);
      await world.tick();
      expect(await world.outcomes(id)).toEqual(['fired', 'overlapped', 'fired']);
    });
  });

  describe('a slot that would have run', () => {
    const reasons: [string, string, (world: SchedulesWorld) => Promise<unknown>][] = [
      [
        'agent_paused',
        'agent_paused',
        ({ agents }) => agents.update('default', 'default', { status: 'paused' }),
      ],
      ['key_revoked', 'invalid_api_key', ({ apiKeys, caller }) => apiKeys.revoke(caller.keyId)],
      [
        'skill_inactive',
        'skill_not_found',
        ({ skills }) => skills.setDeprecated('test', 'v1.0', 'echo', true),
      ],
      ['skill_inactive', 'skill_not_found', ({ skills }) => skills.register([])],
      [
        'input_invalid',
        'validation_error',
        ({ skills }) => skills.register([echo({ parameters: { required: ['b'] } })]),
      ],
    ];

    test.each(reasons)('is %s, with agent.error, once a slot', async (outcome, code, breakIt) => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await breakIt(world);

      for (let n = 1; n <= 2; n++) {
        world.clock.advance(minute);
        await world.tick();
        await world.tick();
        expect(await world.outcomes(id)).toEqual(Array(n).fill(outcome));
        const error = { agent_id: 'default', code, message: expect.stringContaining(id) };
        expect(await errorsIn(world)).toEqual(Array(n).fill({ ...error, job_id: null }));
      }
      const { last_run_at, last_run_status } = await world.schedules.get('default', id);
      expect({ last_run_at, last_run_status }).toEqual({
        last_run_at: null,
        last_run_status: null,
      });
      expect(world.hints).toEqual([]);
    });

    test('is key_revoked once the key has expired', async () => {
      const world = await schedulesWorld(engine);
      const expires_at = world.clock.now() + 90 * second;
      const issued = await world.apiKeys.issue({ client_name: 'x', scopes: ['*'], expires_at });
      const maker = await world.apiKeys.verify(issued.plaintext_key);
      const created = await world.schedules.create(maker, {
        agent_id: 'default',
        skill_category: 'test',
        skill_name: 'echo',
        cron_expression: '* * * * *',
      });

      for (let n = 0; n < 2; n++) {
        world.clock.advance(minute);
        await world.tick();
      }

      // Refused for its key, although the first run is still under way as well.
      expect(await world.outcomes(created.id)).toEqual(['fired', 'key_revoked']);
    });

    test('is insufficient_scope when the skill has come to require more', async () => {
      const world = await schedulesWorld(engine);
      const caller = await world.callerOf('default', ['test']);
      const { id } = await world.schedules.create(caller, {
        agent_id: 'default',
        skill_category: 'test',
        skill_name: 'echo',
        cron_expression: '* * * * *',
      });
      await world.skills.register([echo({ requiredScopes: ['test', 'secret'] })]);
      world.clock.advance(minute);

      await world.tick();

      expect(await world.outcomes(id)).toEqual(['insufficient_scope']);
      expect(await errorsIn(world)).toMatchObject([{ code: 'insufficient_scope' }]);
    });

    test('fires again once the reason is gone', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      for (const status of ['paused', 'active'] as const) {
        await world.agents.update('default', 'default', { status });
        world.clock.advance(minute);
        await world.tick();
      }

      expect(await world.outcomes(id)).toEqual(['agent_paused', 'fired']);
    });
  });

  describe('after a downtime', () => {
    test('of five minutes the last slot runs once, and the others are missed', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(5 * minute + 30 * second);

      await world.tick();
      await world.tick();

      expect(await world.outcomes(id)).toEqual([...Array(4).fill('missed'), 'caught_up']);
      expect(world.hints).toHaveLength(1);
      const [first] = await world.slots(id);
      expect(first?.slot).toBe(Date.parse('2026-11-20T12:01:00Z'));
    });

    test('a run that is an hour late or more is skipped', async () => {
      const world = await schedulesWorld(engine);
      const late = await world.schedule({ cron_expression: '1 12 * * *' });
      const inTime = await world.schedule({ cron_expression: '2 12 * * *' });
      world.clock.advance(hour + minute);

      await world.tick();

      expect(await world.outcomes(late)).toEqual(['missed']);
      expect(await world.outcomes(inTime)).toEqual(['caught_up']);
      expect(await world.schedules.get('default', late)).toMatchObject({
        last_run_at: null,
        next_run_at: '2026-11-21T12:01:00.000Z',
      });
    });

    test('of a month the newest thousand missed slots have a row each, all older ones share one', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(30 * day);

      await world.tick();

      const slots = await world.slots(id);
      expect(slots).toHaveLength(1_001);
      expect(slots[0]).toMatchObject({ outcome: 'missed', slots: 30 * 1440 - 1_000 });
      expect(slots.at(-1)).toMatchObject({ outcome: 'fired', slot: world.clock.now() });
      expect(slots.slice(1, -1).every(({ outcome }) => outcome === 'missed')).toBe(true);
    });
  });

  test('a clock that is set back makes no slot run twice', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    const run = async () => {
      await world.tick();
      const jobId = await world.lastJob(id);
      await world.attempt(jobId, completed());
    };
    world.clock.advance(minute);
    await run();
    world.clock.jumpTo(world.clock.now() - 30 * second);
    // Enabling it anew plans from the clock as it is, so the slot is due once more.
    await world.schedules.update(world.caller, id, { enabled: false });
    await world.schedules.update(world.caller, id, { enabled: true });
    world.clock.advance(30 * second);
    await run();
    world.clock.advance(minute);
    await run();

    const slots = await world.slots(id);
    expect(slots.map(({ outcome }) => outcome)).toEqual(['fired', 'fired']);
    expect(new Set(slots.map(({ slot }) => slot)).size).toBe(2);
  });

  test('one that cannot be dealt with harms no other', async () => {
    const world = await schedulesWorld(engine);
    const broken = await world.schedule();
    const other = await world.schedule({ cron_expression: '*/1 * * * *' });
    await world.database.write((tx) =>
      tx.kysely
        .updateTable('scheduled_jobs')
        .set({ cron_expression: 'nonsense' })
        .where('id', '=', broken)
        .execute(),
    );
    world.clock.advance(minute);

    await world.tick().catch(() => {});

    expect(await world.outcomes(other)).toEqual(['fired']);
    expect(await world.outcomes(broken)).toEqual([]);
    expect(world.logged).toMatchObject([{ scheduled_job_id: broken, level: 50 }]);
  });

  test('more than one transaction takes are all fired by one tick', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    await world.database.write(async (tx) => {
      const row = await tx.kysely
        .selectFrom('scheduled_jobs')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      const ids = Array.from({ length: 1_200 }, (_, i) => `${id}-${i}`);
      await tx.insert(
        'scheduled_jobs',
        ids.map((one, i) => ({ ...row, id: one, cron_key: `${i}` })),
      );
      await tx.insert(
        'scheduled_job_last_runs',
        ids.map((scheduled_job_id) => ({ scheduled_job_id })),
      );
    });
    world.clock.advance(minute);

    expect(await world.tick()).toBe(1_201);

    expect(world.hints).toHaveLength(1_201);
    expect(await world.tick()).toBe(0);
  });

  test('five schedulers over a day make exactly one run a slot', { timeout: 120_000 }, async () => {
    const clock = manualClock();
    const place = await engine.place();
    const database = await place.open();
    const world = await schedulesWorld(engine, { clock, database });
    const others = await Promise.all(
      Array.from({ length: 4 }, async () => {
        // SQLite has one process; there the schedulers share the connection.
        const shared = engine.name === 'SQLite' ? database : await place.open();
        return schedulesWorld(engine, { clock, database: shared });
      }),
    );
    const expected = { '* * * * *': 1_440, '*/7 * * * *': 216, '5 */2 * * *': 12, '0 0 * * 6': 1 };
    const ids = new Map<string, string>();
    for (const cron_expression of Object.keys(expected)) {
      ids.set(cron_expression, await world.schedule({ cron_expression }));
    }

    const started = clock.now();
    for (let n = 0; n < 1_440; n++) {
      clock.advance(minute);
      await Promise.all([world, ...others].map(({ tick }) => tick()));
      const active = await world.jobs.list(
        'default',
        { status: 'queued' },
        { limit: 9, offset: 0 },
      );
      // So that no slot finds the last run still active.
      await Promise.all(active.jobs.map((job) => world.jobs.cancel('default', job.job_id)));
    }

    for (const [cron, id] of ids) {
      const slots = await world.slots(id);
      expect(slots.map(({ outcome }) => outcome)).toEqual(
        Array(expected[cron as keyof typeof expected]).fill('fired'),
      );
      expect(new Set(slots.map(({ slot }) => slot)).size).toBe(slots.length);
      expect(slots.every(({ slot }) => (slot ?? 0) > started && (slot ?? 0) % minute === 0)).toBe(
        true,
      );
      expect(new Set(slots.map(({ job_id }) => job_id)).size).toBe(slots.length);
    }
    expect((await world.jobs.list('default', {}, { limit: 1, offset: 0 })).total).toBe(1_669);
  });
});
