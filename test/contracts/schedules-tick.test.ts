/** The outcomes of slots of scheduled jobs, on every database (docs/decisions/schedules.md). */
import { describe, expect, test } from 'vitest';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { insertRuns, newRun } from '../../src/platform/schedules/runs.store.ts';
import { Tick } from '../../src/platform/schedules/tick.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { completed } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type SchedulesWorld, schedulesWorld } from '../support/schedules-world.ts';
import { rounds } from '../support/soak.ts';
import { anyWriter } from '../support/writers.ts';

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

const log = createLogger('silent');

function tickOn(world: SchedulesWorld, database = world.database): () => Promise<number> {
  const tick = new Tick(contextOf({ clock: world.clock, database, log }), world);
  return () => tick.run();
}

/** Adds `n` scheduled jobs that are as the one of that id. */
async function manyOf({ database }: SchedulesWorld, id: string, n: number): Promise<void> {
  await database.write(async (tx) => {
    const row = await tx.kysely
      .selectFrom('scheduled_jobs')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const ids = Array.from({ length: n }, (_, i) => `${id}-${i}`);
    await tx.insert(
      'scheduled_jobs',
      ids.map((one, i) => ({ ...row, id: one, cron_key: `${i}` })),
    );
    await tx.insert(
      'scheduled_job_last_runs',
      ids.map((scheduled_job_id) => ({ scheduled_job_id })),
    );
  });
}

/** The slot that is stored as the next one. */
async function nextRunAt({ database }: SchedulesWorld, id: string): Promise<number> {
  const row = await database.read.kysely
    .selectFrom('scheduled_jobs')
    .select('next_run_at')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return row.next_run_at;
}

/** The world's database, and how many rows each transaction adds to what became of slots. */
function recordingRuns({ database: on }: SchedulesWorld) {
  const recorded: number[] = [];
  const database: Database = {
    ...on,
    write: (unit) =>
      on.write((tx) =>
        unit({
          ...tx,
          async insert(table, rows) {
            if (table === 'scheduled_runs') recorded.push(rows.length);
            await tx.insert(table, rows);
          },
        }),
      ),
  };
  return { database, recorded };
}

/** The same database, in whose transactions `act` happens right after the first statement. */
function afterFirst(on: Database, act: (tx: Transaction) => Promise<void>): Database {
  return {
    ...on,
    write: (unit) =>
      on.write((tx) => {
        let isFirst = true;
        return unit({
          ...tx,
          async all(statement, params) {
            const rows = await tx.all(statement, params);
            if (isFirst) await act(tx);
            isFirst = false;
            return rows;
          },
        });
      }),
  };
}

describe.each(await engines())('on $name', (engine) => {
  test('a due slot in a zone that the runtime no longer knows is refused, once a day', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule({ timezone: 'Europe/Berlin' });
    const other = await world.schedule({ cron_expression: '*/2 * * * *' });
    await world.tick();
    await world.database.write(async (tx) => {
      const lost = tx.kysely.updateTable('scheduled_jobs').set({ timezone: 'Lost/Zone' });
      await lost.where('id', '=', id).execute();
    });

    for (let i = 0; i < 4; i++) {
      world.clock.advance(minute);
      await world.tick();
    }

    expect(await world.outcomes(id)).toEqual(['input_invalid']);
    expect(await errorsIn(world)).toMatchObject([
      { code: 'validation_error', message: expect.stringContaining('Lost/Zone') },
    ]);
    expect(world.logged.filter(({ scheduled_job_id }) => scheduled_job_id === id)).toHaveLength(1);
    expect(await world.outcomes(other)).toContain('fired');
    world.clock.advance(day);
    await world.tick();
    expect(await world.outcomes(id)).toEqual(['input_invalid', 'input_invalid']);
  });

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
      expect((await world.events()).map(({ type }) => type)).toEqual([
        'agent.created',
        'conversation.created',
      ]);
    });

    test('of a time zone fires at its local time, once through a change of the clock', async () => {
      const clock = manualClock('2026-03-28T12:00:00Z');
      const world = await schedulesWorld(engine, { clock });
      const id = await world.schedule({
        cron_expression: '30 2 * * *',
        timezone: 'Europe/Berlin',
      });

      for (let halfHours = 0; halfHours < 2 * 48; halfHours++) {
        clock.advance(30 * minute);
        await world.tick();
        const [job] = (await world.slots(id)).slice(-1);
        const isNew = job?.job_id && (await world.row(job.job_id)).status === 'queued';
        if (isNew) await world.attempt(job.job_id as string, completed());
      }

      const slots = (await world.slots(id)).map(({ slot }) => new Date(slot ?? 0).toISOString());
      expect(slots).toEqual(['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z']);
      expect(await world.outcomes(id)).toEqual(['fired', 'fired']);
    });

    test('fires once in any number of ticks', async () => {
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

  test('jobs have the priority of their schedule, else that of its agent', async () => {
    const world = await schedulesWorld(engine);
    const { agents, schedules, jobs, caller, clock } = world;
    await agents.update(anyWriter(), 'default', { priority: 'low' });
    const id = await world.schedule({ priority: 'high' });
    const priority = async () => {
      clock.advance(minute);
      await world.tick();
      const jobId = await world.lastJob(id);
      await world.attempt(jobId, completed());
      return (await jobs.find('default', jobId)).priority;
    };
    expect(await priority()).toBe(0);

    await schedules.update(caller, id, { priority: null });

    expect(await priority()).toBe(2);
  });

  describe('a slot that would have run', () => {
    const reasons: [string, string, (world: SchedulesWorld) => Promise<unknown>][] = [
      [
        'agent_paused',
        'agent_paused',
        ({ agents }) => agents.update(anyWriter(), 'default', { status: 'paused' }),
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

    test('fires again once the reason no longer applies', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      for (const status of ['paused', 'active'] as const) {
        await world.agents.update(anyWriter(), 'default', { status });
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

    test('of a month the newest 60 slots have a row each, all older ones share one', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(30 * day);

      await world.tick();

      const slots = await world.slots(id);
      expect(slots).toHaveLength(61);
      expect(slots[0]).toMatchObject({ outcome: 'missed', slots: 30 * 1440 - 60 });
      expect(slots.at(-1)).toMatchObject({ outcome: 'fired', slot: world.clock.now() });
      expect(slots.slice(1, -1).every(({ outcome }) => outcome === 'missed')).toBe(true);
    });
  });

  test('a downtime of many is caught up with in small transactions', async () => {
    const world = await schedulesWorld(engine);
    await manyOf(world, await world.schedule(), 150);
    const { database, recorded } = recordingRuns(world);
    world.clock.advance(day);

    expect(await tickOn(world, database)()).toBe(151);

    expect(recorded.reduce((sum, n) => sum + n)).toBe(151 * 61);
    expect(Math.max(...recorded)).toBeLessThanOrEqual(2_000);
    expect(world.hints).toHaveLength(151);
  });

  test('a run-now that commits while the tick takes its lock makes the slot overlapped', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    world.clock.advance(minute);
    // What a statement that locks has read is older than its lock: another commits in between.
    const now = world.clock.now();
    const record = { slot: null, outcome: 'run_now', slots: 1, message: null } as const;
    const begun = newRun({ id, organization_id: 'default' }, record, 'another', now);
    const database = afterFirst(world.database, (tx) => insertRuns(tx, [begun]));

    await tickOn(world, database)();

    expect((await world.outcomes(id)).toSorted()).toEqual(['overlapped', 'run_now']);
  });

  test('a slot is skipped while a run is active beside which a client began another', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    world.clock.advance(minute);
    await world.tick();
    const first = await world.lastJob(id);
    await world.schedules.runNow(world.caller, id);
    await world.attempt(await world.lastJob(id), completed());
    world.clock.advance(minute);

    await world.tick();

    expect(await world.outcomes(id)).toEqual(['fired', 'run_now', 'overlapped']);
    await world.attempt(first, completed());
    world.clock.advance(minute);
    await world.tick();
    expect((await world.outcomes(id)).at(-1)).toBe('fired');
  });

  describe('a clock that was ahead and is set back by ten days', () => {
    const shownNext = async ({ schedules }: SchedulesWorld, id: string) =>
      (await schedules.get('default', id)).next_run_at;

    test('leaves no last run in the future', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(minute);
      await world.tick();
      world.clock.jumpTo(world.clock.now() - 10 * day);

      await world.tick();

      const now = new Date(world.clock.now()).toISOString();
      expect((await world.schedules.get('default', id)).last_run_at).toBe(now);
    });

    test('leaves the next match after now as the one that is shown', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      const ahead = world.clock.now() + 10 * day;
      world.clock.jumpTo(ahead);
      await world.schedules.update(world.caller, id, { cron_expression: '*/1 * * * *' });
      expect(await shownNext(world, id)).toBe(new Date(ahead + minute).toISOString());

      world.clock.jumpTo(ahead - 10 * day);

      const next = new Date(ahead - 10 * day + minute).toISOString();
      expect(await shownNext(world, id)).toBe(next);
      expect(await world.schedules.list('default')).toMatchObject([{ next_run_at: next }]);
    });

    test.each(['while the scheduler runs', 'before it is started'])(
      '%s: the next slot runs, and none runs twice',
      async (when) => {
        const clock = manualClock();
        const world = await schedulesWorld(engine, { clock });
        const start = clock.now();
        const id = await world.schedule();
        clock.advance(minute);
        await world.tick();
        await world.attempt(await world.lastJob(id), completed());
        await world.schedules.update(world.caller, id, { enabled: false });
        clock.jumpTo(start + 10 * day);
        await world.schedules.update(world.caller, id, { enabled: true });
        const disabled = await world.schedule({ cron_expression: '*/1 * * * *', enabled: false });
        const planned = await nextRunAt(world, disabled);
        await world.tick();

        clock.jumpTo(start + minute - 1_000);
        const tick = when.startsWith('before') ? tickOn(world) : world.tick;
        await tick();
        expect(await nextRunAt(world, id)).toBe(start + minute);
        expect(await nextRunAt(world, disabled)).toBe(planned);
        clock.advance(1_000);
        await tick();
        clock.advance(minute);
        await tick();

        expect((await world.slots(id)).map(({ slot, outcome }) => [slot, outcome])).toEqual([
          [start + minute, 'fired'],
          [start + 2 * minute, 'fired'],
        ]);
      },
    );

    test('is noticed for more scheduled jobs than one look reads', async () => {
      const world = await schedulesWorld(engine);
      const start = world.clock.now();
      world.clock.jumpTo(start + 10 * day);
      await manyOf(world, await world.schedule(), 1_200);
      await world.tick();

      world.clock.jumpTo(start);
      await world.tick();
      world.clock.advance(minute);

      expect(await world.tick()).toBe(1_201);
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
        .set({ input: 'nonsense' })
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
    await manyOf(world, await world.schedule(), 1_200);
    world.clock.advance(minute);

    expect(await world.tick()).toBe(1_201);

    expect(world.hints).toHaveLength(1_201);
    expect(await world.tick()).toBe(0);
  });

  test('five schedulers over hours make exactly one run a slot', { timeout: 120_000 }, async () => {
    const hours = rounds(4, 24);
    const clock = manualClock('2026-11-20T21:00:00.000Z');
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
    const expected = {
      '* * * * *': hours * 60,
      '*/7 * * * *': hours * 9,
      '5 */2 * * *': hours / 2,
      // Within them lies the night to Saturday.
      '0 0 * * 6': 1,
    };
    const ids = new Map<string, string>();
    for (const cron_expression of Object.keys(expected)) {
      ids.set(cron_expression, await world.schedule({ cron_expression }));
    }

    const started = clock.now();
    for (let n = 0; n < hours * 60; n++) {
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
    expect((await world.jobs.list('default', {}, { limit: 1, offset: 0 })).total).toBe(
      Object.values(expected).reduce((sum, count) => sum + count, 0),
    );
  });
});
