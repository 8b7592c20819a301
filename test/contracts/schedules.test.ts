/** Scheduled jobs and their runs on every database (specification: Scheduled jobs; docs/decisions/schedules.md). */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { findRunsWithoutRetry } from '../../src/core/scheduled-runs/scheduled-runs.ts';
import { idFloor } from '../../src/kernel/ids.ts';
import { deleteRuns } from '../../src/platform/schedules/runs.store.ts';
import { schedulesOfAgent } from '../../src/platform/schedules/schedules.store.ts';
import { deleteExpiredRuns } from '../../src/platform/schedules/schedules.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import { completed, failed } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type SchedulesWorld, schedulesWorld } from '../support/schedules-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { anyWriter } from '../support/writers.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const page = { limit: 50, offset: 0 };

/** The next slot comes, and a tick. */
async function nextSlot(world: SchedulesWorld): Promise<void> {
  world.clock.advance(minute);
  await world.tick();
}

const lastRun = async ({ schedules }: SchedulesWorld, id: string) => {
  const { last_run_at, last_run_status, last_run_job_id } = await schedules.get('default', id);
  return { last_run_at, last_run_status, last_run_job_id };
};

/** Events about scheduled jobs, with their data. */
async function toldBy({ events }: SchedulesWorld) {
  const rows = await events();
  return rows
    .filter(({ type }) => type.startsWith('scheduled_job.') || type.startsWith('skill.'))
    .map(({ type, data }) => ({ type, data: JSON.parse(data) }));
}

/** The same database, and how many statements were run in its transactions, those of a list as one. */
function countingStatements(on: Database) {
  let statements = 0;
  const database: Database = {
    ...on,
    write: (unit) =>
      on.write((tx) =>
        unit({
          ...tx,
          all: (...of) => {
            statements++;
            return tx.all(...of);
          },
          first: (...of) => {
            statements++;
            return tx.first(...of);
          },
          each: (...of) => {
            statements++;
            return tx.each(...of);
          },
          insert: (...of) => {
            statements++;
            return tx.insert(...of);
          },
        }),
      ),
  };
  return { database, count: () => statements };
}

describe.each(await engines())('on $name', (engine) => {
  describe('a run', () => {
    test('that completes is recorded and sends its event in addition to skill.completed', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const scheduled_for = new Date(world.clock.now()).toISOString();
      const jobId = await world.lastJob(id);
      const { run, ended } = await world.begin(jobId);
      world.clock.advance(1_500);
      run.end(completed());
      await ended;

      expect(await lastRun(world, id)).toEqual({
        last_run_at: scheduled_for,
        last_run_status: 'completed',
        last_run_job_id: jobId,
      });
      const { conversation_id } = await world.row(jobId);
      expect(await toldBy(world)).toMatchObject([
        { type: 'skill.completed', data: { job_id: jobId } },
        { type: 'scheduled_job.completed', data: {} },
      ]);
      expect((await toldBy(world))[1]?.data).toEqual({
        scheduled_job_id: id,
        job_id: jobId,
        skill_category: 'test',
        skill_name: 'echo',
        skill_version: 'v1.0',
        conversation_id,
        scheduled_for,
        duration_ms: 1_500,
      });
    });

    test('that always fails has exactly 4 attempts with growing delays, then is failed', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const jobId = await world.lastJob(id);
      const delays: number[] = [];

      for (let attempt = 1; attempt <= 4; attempt++) {
        expect(await lastRun(world, id)).toMatchObject({ last_run_status: 'active' });
        expect(await world.attempt(jobId, failed())).toBe(true);
        const { status, run_at, attempt: counted } = await world.row(jobId);
        expect({ status, counted }).toEqual({
          status: attempt === 4 ? 'failed' : 'queued',
          counted: attempt,
        });
        if (attempt < 4) delays.push(run_at - world.clock.now());
        world.clock.advance(10_000);
      }

      expect(delays.map((ms) => Math.ceil(ms / 1_000))).toEqual([1, 2, 4]);
      expect(await world.attempt(jobId, failed())).toBe(false);
      expect(await lastRun(world, id)).toMatchObject({
        last_run_status: 'failed',
        last_run_job_id: jobId,
      });
      const told = await toldBy(world);
      expect(told.map(({ type }) => type)).toEqual(['skill.failed', 'scheduled_job.failed']);
      expect(told[1]?.data).toMatchObject({
        scheduled_job_id: id,
        job_id: jobId,
        error: { code: 'skill_execution_failed', message: 'it broke' },
      });
      expect(told[1]?.data).not.toHaveProperty('duration_ms');
    });

    test('that is cancelled counts as failed, and sends no event', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);

      await world.jobs.cancel('default', await world.lastJob(id));

      expect(await lastRun(world, id)).toMatchObject({ last_run_status: 'failed' });
      expect(await toldBy(world)).toEqual([]);
      await nextSlot(world);
      expect(await world.outcomes(id)).toEqual(['fired', 'fired']);
    });

    test('that ends after run-now has begun another does not end that one', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const first = await world.lastJob(id);
      const job_id = (await world.schedules.runNow(world.caller, id)).job.job_id;

      await world.attempt(first, failed({ retryable: false }));

      expect(await lastRun(world, id)).toMatchObject({
        last_run_status: 'active',
        last_run_job_id: job_id,
      });
      await world.attempt(job_id, completed());
      expect(await lastRun(world, id)).toMatchObject({ last_run_status: 'completed' });
      expect(await world.outcomes(id)).toEqual(['fired', 'run_now']);
    });

    test('of a job without a recorded run is reported as the end of a skill alone', async () => {
      const world = await schedulesWorld(engine);
      const { id } = await world.submit({ triggerType: 'scheduled' });

      await world.attempt(id, completed());

      expect((await toldBy(world)).map(({ type }) => type)).toEqual(['skill.completed']);
    });
  });

  const ends = [
    [
      'deleted',
      ({ schedules, caller }: SchedulesWorld, id: string) => schedules.remove(caller, id),
    ],
    [
      'disabled',
      async ({ schedules, caller }: SchedulesWorld, id: string) => {
        await schedules.update(caller, id, { enabled: false });
      },
    ],
  ] as const;
  describe.each(ends)('a scheduled job that is %s', (name, end) => {
    /** Nothing comes of it any more, whatever time passes. */
    async function expectNoLaterRun(world: SchedulesWorld, jobId?: string): Promise<void> {
      const before = world.hints.length;
      for (let n = 0; n < 3; n++) {
        await nextSlot(world);
        if (jobId !== undefined) expect(await world.attempt(jobId, completed())).toBe(false);
      }
      expect(world.hints).toHaveLength(before);
    }

    async function expectRowStays(world: SchedulesWorld, id: string): Promise<void> {
      const rows = await world.database.read.kysely
        .selectFrom('scheduled_job_last_runs')
        .select('scheduled_job_id')
        .where('scheduled_job_id', '=', id)
        .execute();
      expect(rows).toHaveLength(name === 'deleted' ? 0 : 1);
      if (name === 'disabled') {
        expect(await world.schedules.get('default', id)).toMatchObject({ enabled: false });
      } else {
        await expect(world.schedules.get('default', id)).rejects.toMatchObject({
          code: 'not_found',
        });
      }
    }

    test('while it is due does not run', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(minute);

      await end(world, id);

      await expectNoLaterRun(world);
      expect(await world.outcomes(id)).toEqual(name === 'deleted' ? [] : ['missed']);
      await expectRowStays(world, id);
    });

    test('while its run is queued does not run', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const jobId = await world.lastJob(id);

      await end(world, id);

      expect(await world.row(jobId)).toMatchObject({ status: 'cancelled', attempt: 0 });
      await expectNoLaterRun(world, jobId);
      await expectRowStays(world, id);
    });

    test('while its run waits for a retry is not tried again', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const jobId = await world.lastJob(id);
      await world.attempt(jobId, failed());

      await end(world, id);

      expect(await world.row(jobId)).toMatchObject({ status: 'cancelled', attempt: 1 });
      await expectNoLaterRun(world, jobId);
    });

    test.each([
      ['completes', completed(), 'completed', 'scheduled_job.completed'],
      ['fails', failed(), 'failed', 'scheduled_job.failed'],
    ])('while its run is active: it %s, and that was all', async (_how, outcome, status, told) => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const jobId = await world.lastJob(id);
      const { run, ended } = await world.begin(jobId);

      await end(world, id);
      expect(await world.row(jobId)).toMatchObject({ status: 'active' });
      run.end(outcome);
      await ended;

      expect(await world.row(jobId)).toMatchObject({ status, attempt: 1 });
      expect((await toldBy(world)).map(({ type }) => type)).toContain(told);
      await expectNoLaterRun(world, jobId);
      await expectRowStays(world, id);
      if (name === 'disabled') {
        expect(await lastRun(world, id)).toMatchObject({ last_run_status: status });
      }
    });

    test.each<[string, RunOutcome]>([
      ['is handed back', { kind: 'aborted' }],
      ['is displaced', { kind: 'displaced', suspect: true }],
    ])('while its run is active: it %s, and ends as cancelled', async (_how, outcome) => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      const jobId = await world.lastJob(id);
      const { run, ended } = await world.begin(jobId);

      await end(world, id);
      run.end(outcome);
      await ended;

      expect(await world.row(jobId)).toMatchObject({ status: 'cancelled', due_at: null });
      await expectNoLaterRun(world, jobId);
      await expectRowStays(world, id);
      expect(await toldBy(world)).toEqual([]);
      await expectConsistent(world.database);
    });

    test('while many runs wait ends them with as many statements as one', async () => {
      const costs: number[] = [];
      for (const waiting of [1, 40]) {
        const world = await schedulesWorld(engine);
        const id = await world.schedule();
        const jobs = await Promise.all(
          Array.from({ length: waiting }, () => world.schedules.runNow(world.caller, id)),
        );
        const { database, count } = countingStatements(world.database);

        await end({ ...world, schedules: world.schedulesOn(database) }, id);

        costs.push(count());
        for (const { job } of jobs) {
          expect(await world.row(job.job_id)).toMatchObject({ status: 'cancelled' });
        }
        await expectConsistent(world.database);
      }
      expect(costs[1]).toBe(costs[0]);
    });

    test('leaves the runs of others alone', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      const other = await world.schedule({ cron_expression: '*/1 * * * *' });
      await nextSlot(world);
      const jobId = await world.lastJob(other);
      await world.attempt(jobId, failed());

      await end(world, id);

      expect(await world.row(jobId)).toMatchObject({ status: 'queued' });
      const unwanted = await world.database.write((tx) => findRunsWithoutRetry(tx, [jobId]));
      expect([...unwanted]).toEqual([]);
    });
  });

  test('a run that fails just as its scheduled job is disabled is never left to be tried again', async () => {
    const place = await engine.place();
    const database = await place.open();
    const clock = manualClock();
    const world = await schedulesWorld(engine, { clock, database });
    // SQLite has one process.
    const shared = engine.name === 'SQLite' ? database : await place.open();
    const other = await schedulesWorld(engine, { clock, database: shared });
    const id = await world.schedule();

    for (let round = 0; round < 40; round++) {
      await world.schedules.update(world.caller, id, { enabled: true });
      const job_id = (await world.schedules.runNow(world.caller, id)).job.job_id;
      const { run, ended } = await world.begin(job_id);
      run.end(failed());
      await Promise.all([ended, other.schedules.update(other.caller, id, { enabled: false })]);
      expect(['failed', 'cancelled']).toContain((await world.row(job_id)).status);
    }
    await expectConsistent(database);
  });

  test('enabling it again gives an earlier run no further attempt', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    await nextSlot(world);
    const jobId = await world.lastJob(id);
    const { run, ended } = await world.begin(jobId);
    await world.schedules.update(world.caller, id, { enabled: false });
    await world.schedules.update(world.caller, id, { enabled: true });

    run.end(failed());
    await ended;

    expect(await world.row(jobId)).toMatchObject({ status: 'failed', attempt: 1 });
    await nextSlot(world);
    expect(await world.outcomes(id)).toEqual(['fired', 'fired']);
  });

  test('whose run is handed back while it is wanted runs it again', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    await nextSlot(world);
    const jobId = await world.lastJob(id);

    await world.attempt(jobId, { kind: 'aborted' });

    expect(await world.row(jobId)).toMatchObject({ status: 'queued', attempt: 0 });
    expect(await world.attempt(jobId, completed())).toBe(true);
  });

  describe('a change of one that is due', () => {
    /** What became of its slots, in words. */
    async function toldOf(world: SchedulesWorld, id: string) {
      const { data: runs } = await world.schedules.runs('default', id, page);
      return runs
        .toReversed()
        .map(({ scheduled_for, outcome, message }) => [scheduled_for, outcome, message]);
    }

    test('of its cron expression records as missed the due slots that no longer run', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(2 * minute);

      await world.schedules.update(world.caller, id, { cron_expression: '*/1 * * * *' });
      await nextSlot(world);

      const message =
        'Missed: the cron expression or its time zone was changed before it could run.';
      expect(await toldOf(world, id)).toEqual([
        ['2026-11-20T12:01:00.000Z', 'missed', message],
        ['2026-11-20T12:02:00.000Z', 'missed', message],
        ['2026-11-20T12:03:00.000Z', 'fired', null],
      ]);
    });

    test('that disables it records them, too, and enabling it begins with the next slot', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(minute);
      await world.schedules.update(world.caller, id, { enabled: false });
      world.clock.advance(minute);
      await world.schedules.update(world.caller, id, { enabled: false });
      await world.schedules.update(world.caller, id, { enabled: true });
      await nextSlot(world);

      const message = 'Missed: the scheduled job was disabled before it could run.';
      expect(await toldOf(world, id)).toEqual([
        ['2026-11-20T12:01:00.000Z', 'missed', message],
        ['2026-11-20T12:03:00.000Z', 'fired', null],
      ]);
    });

    test('of anything else leaves its slot to the tick', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      world.clock.advance(minute);

      await world.schedules.update(world.caller, id, {
        cron_expression: ' * * * *  *',
        input: { a: 1 },
      });
      await world.tick();

      expect(await world.outcomes(id)).toEqual(['fired']);
    });

    test('records no slot a second time that was dealt with before the clock was set back', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      world.clock.jumpTo(world.clock.now() - 30_000);
      await world.tick();
      world.clock.advance(30_000);

      await world.schedules.update(world.caller, id, { cron_expression: '*/1 * * * *' });

      expect(await world.outcomes(id)).toEqual(['fired']);
    });

    test('that is refused records nothing', async () => {
      const world = await schedulesWorld(engine);
      await world.schedule({ cron_expression: '*/1 * * * *' });
      const id = await world.schedule();
      world.clock.advance(minute);

      const change = world.schedules.update(world.caller, id, { cron_expression: '*/1 * * * *' });

      await expect(change).rejects.toMatchObject({ code: 'conflict' });
      expect(await world.outcomes(id)).toEqual([]);
    });
  });

  test('a run is active until its job ends in any way, and a slot that did not run never is', async () => {
    const world = await schedulesWorld(engine);
    const id = await world.schedule();
    const ended = async () => {
      const rows = await world.database.read.kysely
        .selectFrom('scheduled_runs')
        .select(['outcome', 'ended'])
        .where('scheduled_job_id', '=', id)
        .orderBy('id')
        .execute();
      return rows.map(({ outcome, ended }) => [outcome, ended]);
    };
    await nextSlot(world);
    await nextSlot(world);
    const first = await world.lastJob(id);
    expect(await ended()).toEqual([
      ['fired', 0],
      ['overlapped', 1],
    ]);
    await world.attempt(first, failed());
    expect((await ended())[0]).toEqual(['fired', 0]);
    await world.jobs.cancel('default', first);
    expect((await ended())[0]).toEqual(['fired', 1]);
    await nextSlot(world);
    await world.attempt(await world.lastJob(id), completed());
    await nextSlot(world);
    await world.attempt(await world.lastJob(id), failed({ retryable: false }));

    expect(await ended()).toEqual([
      ['fired', 1],
      ['overlapped', 1],
      ['fired', 1],
      ['fired', 1],
    ]);
  });

  describe('run-now', () => {
    test('works on a disabled one, and its run is tried again', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule({ enabled: false });

      const job_id = (await world.schedules.runNow(world.caller, id)).job.job_id;

      expect(await world.row(job_id)).toMatchObject({ trigger_type: 'scheduled', max_attempts: 4 });
      expect(world.hints).toMatchObject([{ id: job_id, queue: 'scheduled-jobs' }]);
      await world.attempt(job_id, failed());
      expect(await world.row(job_id)).toMatchObject({ status: 'queued' });
      expect(await lastRun(world, id)).toEqual({
        last_run_at: new Date(world.clock.now()).toISOString(),
        last_run_status: 'active',
        last_run_job_id: job_id,
      });
      const { data: runs } = await world.schedules.runs('default', id, page);
      expect(runs).toMatchObject([{ outcome: 'run_now', status: 'queued', slots: 1, job_id }]);
    });

    test('uses the key of the request, so that no key gets more scopes', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      const narrow = await world.callerOf('default', ['test']);
      const none = await world.callerOf('default', ['text']);

      const job_id = (await world.schedules.runNow(narrow, id)).job.job_id;

      expect(await world.row(job_id)).toMatchObject({ api_key_id: narrow.keyId });
      await expect(world.schedules.runNow(none, id)).rejects.toMatchObject({
        code: 'insufficient_scope',
      });
    });

    test('makes the slot that comes meanwhile an overlapped one', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await world.schedules.runNow(world.caller, id);

      await nextSlot(world);

      expect(await world.outcomes(id)).toEqual(['run_now', 'overlapped']);
    });

    test('that is refused leaves nothing behind', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await world.agents.update(anyWriter(), 'default', { status: 'paused' });

      await expect(world.schedules.runNow(world.caller, id)).rejects.toMatchObject({
        code: 'agent_paused',
      });

      expect(await world.outcomes(id)).toEqual([]);
      expect(await lastRun(world, id)).toMatchObject({ last_run_at: null });
    });
  });

  describe('of one agent, skill and cron expression', () => {
    test('50 at once are one', async () => {
      const world = await schedulesWorld(engine);

      const made = await Promise.allSettled(Array.from({ length: 50 }, () => world.schedule()));

      expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const one of made) {
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'conflict' });
      }
      expect(await world.schedules.list('default')).toHaveLength(1);
    });

    test('20 changes into it at once leave one', async () => {
      const world = await schedulesWorld(engine);
      const ids: string[] = [];
      for (let n = 0; n < 20; n++)
        ids.push(await world.schedule({ cron_expression: `${n} 0 1 1 *` }));

      const changed = await Promise.allSettled([
        ...ids.map((id) =>
          world.schedules.update(world.caller, id, { cron_expression: '* * * * *' }),
        ),
        world.schedule(),
      ]);

      expect(changed.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      const listed = await world.schedules.list('default');
      const same = listed.filter((one) => one.cron_expression === '* * * * *');
      expect(same).toHaveLength(1);
    });
  });

  test('an agent that one names is not deleted, in its organization alone', async () => {
    const world = await schedulesWorld(engine);
    await world.agents.create(anyWriter(), { id: 'helper' });
    const id = await world.schedule({ agent_id: 'helper' });
    const isNamed = (organization: string, agent: string) =>
      world.database.write((tx) => schedulesOfAgent.blocker.names(tx, organization, agent));

    expect(await isNamed('default', 'helper')).toBe(true);
    expect(await isNamed('default', 'default')).toBe(false);
    expect(await isNamed('acme', 'helper')).toBe(false);
    await world.schedules.update(world.caller, id, { agent_id: 'default' });
    expect(await isNamed('default', 'helper')).toBe(false);
  });

  describe('retention', () => {
    test('deletes old runs, except those with an active job', async () => {
      const world = await schedulesWorld(engine);
      const going = await world.schedule();
      const ended = await world.schedule({ cron_expression: '*/1 * * * *' });
      await nextSlot(world);
      await world.attempt(await world.lastJob(ended), completed());
      await nextSlot(world);
      const before = Date.now() + day;

      const deleted = await world.database.write((tx) => deleteRuns(tx, idFloor(before), 1));
      expect(deleted).toBe(1);
      // The age follows from the ids, which use the machine's own time.
      world.clock.jumpTo(Date.now() + 31 * day);
      await deleteExpiredRuns(world.database, world.clock, 30);

      expect(await world.outcomes(going)).toEqual(['fired']);
      expect(await world.outcomes(ended)).toEqual(['fired']);
      expect(await world.schedules.runs('default', going, page)).toMatchObject({ total: 1 });
    });

    test('keeps newer runs', async () => {
      const world = await schedulesWorld(engine);
      const id = await world.schedule();
      await nextSlot(world);
      await world.attempt(await world.lastJob(id), completed());
      world.clock.jumpTo(Date.now() + 29 * day);

      expect(await deleteExpiredRuns(world.database, world.clock, 30)).toBe(0);

      expect(await world.outcomes(id)).toEqual(['fired']);
    });
  });

  test('ticks, changes and ends of runs at once wait for each other in no circle', {
    timeout: 60_000,
  }, async () => {
    const clock = manualClock();
    const place = await engine.place();
    const database = await place.open();
    const one = await schedulesWorld(engine, { clock, database });
    const shared = engine.name === 'SQLite' ? database : await place.open();
    const two = await schedulesWorld(engine, { clock, database: shared });
    const ids: string[] = [];
    for (let n = 0; n < 12; n++) {
      ids.push(await one.schedule({ cron_expression: `*/1 ${n === 0 ? '*' : `*,${n}`} * * *` }));
    }
    const { caller } = one;
    const perhaps = (verb: Promise<unknown>) =>
      verb.catch((error: { code?: string }) => {
        if (error.code !== 'not_found') throw error;
      });

    const remember = (run: ScriptedRun) => run.ask('remember', { content: 'a thing' });
    const twice = async (id: string) => {
      await perhaps(two.schedules.runNow(caller, id));
      await perhaps(two.schedules.runNow(caller, id));
    };

    for (let round = 0; round < 25; round++) {
      clock.advance(minute);
      await Promise.all([one.tick(), two.tick()]);
      const { jobs } = await one.jobs.list('default', { status: 'queued' }, page);
      clock.advance(minute);
      await Promise.all([
        ...jobs.map(({ job_id }, n) =>
          (n % 2 === 0 ? one : two).attempt(
            job_id,
            n % 3 === 0 ? failed() : completed(),
            n % 3 === 1 ? remember : undefined,
          ),
        ),
        one.tick(),
        two.tick(),
        ...ids.map((id, n) => {
          if ((n + round) % 4 === 0) return twice(id);
          if ((n + round) % 4 === 1) {
            return perhaps(
              one.schedules.update(caller, id, {
                enabled: round % 2 === 0,
                cron_expression: `*/1 *,${n},${round % 24} * * *`,
              }),
            );
          }
          if (round === 20 && n > 8) return perhaps(two.schedules.remove(caller, id));
          return perhaps(two.schedules.update(caller, id, { input: { round } }));
        }),
      ]);
    }

    const rows = await database.read.kysely.selectFrom('scheduled_runs').selectAll().execute();
    const slots = rows.flatMap((run) =>
      run.slot === null ? [] : `${run.scheduled_job_id} ${run.slot}`,
    );
    expect(new Set(slots).size).toBe(slots.length);
    expect(rows.filter(({ outcome }) => outcome === 'fired').length).toBeGreaterThan(50);
    await expectConsistent(database);
    await database.close();
    await shared.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});
