/** Counters of runs, on every database and by several processes at once. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { insertJobs } from '../../src/core/jobs/jobs.store.ts';
import { claimJobs } from '../../src/core/jobs/turns/admission.store.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { Recorder } from '../../src/platform/statistics/recorder.ts';
import { deleteOldStatistics, Statistics } from '../../src/platform/statistics/statistics.ts';
import { serviceUnavailable } from '../support/broken-database.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import { manualClock } from '../support/manual-clock.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const organization_id = 'acme';
const skill = { category: 'util', name: 'echo', version: 'v1.0' };
const jobOf = (skill_name = 'echo') => ({
  organization_id,
  skill_category: 'util',
  skill_name,
  skill_version: 'v1.0',
});

const endOf = (name: string, status: 'completed' | 'failed' | 'cancelled', durationMs: number) => ({
  job: jobOf(name),
  transition: { status },
  durationMs,
});

describe.each(await engines())('on $name', (engine) => {
  async function world() {
    const { at, open } = await engine.place();
    const database = await open();
    const clock = manualClock('2026-11-21T12:07:30.000Z');
    const warnings: unknown[] = [];
    const warn = (fields: unknown) => void warnings.push(fields);
    const log = Object.assign(createLogger('silent'), { warn });
    const recorderOn = (on: Database) => new Recorder(contextOf({ database: on, clock, log }));
    const skills = Object.assign(new SkillRegistry(contextOf({ database, clock })), {
      registered: () => undefined as never,
    });
    const statistics = new Statistics(contextOf({ database, clock }), skills);
    await database.write((tx) =>
      tx.insert(
        'api_keys',
        Array.from({ length: 230 }, (_, i) => ({
          ...{ id: `key-${i}`, organization_id, client_name: `client ${i}`, key_hash: `${i}` },
          ...{ scopes: '[]', rate_limit: 1, enabled: 1, created_at: 0, expires_at: null },
        })),
      ),
    );
    const accepted = (name = 'echo', key = 'key-0') => ({
      ...jobOf(name),
      api_key_id: key,
      created_at: clock.now(),
    });
    return { at, database, clock, warnings, recorderOn, statistics, accepted };
  }
  const rowsIn = async ({ read }: Database, table: 'run_statistics' | 'skill_key_runs') =>
    (await read.kysely.selectFrom(table).selectAll().execute()).length;

  test('counts of concurrent processes add up, and the longest duration is the maximum of all', async () => {
    const { at, database, recorderOn, statistics, accepted } = await world();
    const recorders = Array.from({ length: 4 }, () => recorderOn(database));
    const names = Array.from({ length: 40 }, (_, i) => `skill-${i}`);

    for (let round = 0; round < 5; round++) {
      for (const [i, recorder] of recorders.entries()) {
        // Each meets them in another order.
        const order = i % 2 === 0 ? names : names.toReversed();
        for (const name of order) {
          recorder.accepted([accepted(name), accepted(name)]);
          recorder.ended(endOf(name, 'completed', 100 * i));
          recorder.ended(endOf(name, 'failed', round));
          recorder.ended(endOf(name, 'cancelled', 1_000_000));
          recorder.modelCalled(jobOf(name), { tokens: { prompt: 3, completion: null }, cost: 7 });
        }
      }
      await Promise.all(recorders.map((recorder) => recorder.flush()));
    }

    for (const window of ['hour', 'day'] as const) {
      const { totals, skills } = await statistics.ofWindow(organization_id, window);
      expect(totals).toEqual({
        ...{ accepted: 1_600, completed: 800, failed: 800, cancelled: 800 },
        ...{ prompt_tokens: 2_400, completion_tokens: 0, total_tokens: 2_400 },
        ...{ tokens_are_partial: true, cost_usd: 5_600e-9, cost_is_partial: true },
      });
      expect(skills.map((one) => one.skill_name)).toEqual(names.toSorted());
      for (const one of skills) {
        expect(one).toMatchObject({
          ...{ completed: 20, failed: 20, cancelled: 20 },
          // 5 × (0 + 100 + 200 + 300) and 4 × (0 + 1 + 2 + 3 + 4), of 40 runs.
          ...{ average_duration_ms: 76, longest_duration_ms: 300 },
        });
      }
    }
    await database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(at)).toBe(0);
  });

  test('counts that cannot be written are kept, and written later', async () => {
    const { database, recorderOn, statistics, accepted } = await world();
    let isAway = true;
    const recorder = recorderOn({
      ...database,
      write: (unit) => (isAway ? Promise.reject(serviceUnavailable()) : database.write(unit)),
    });
    recorder.accepted([accepted()]);
    await expect(recorder.flush()).rejects.toMatchObject({ code: 'service_unavailable' });
    recorder.accepted([accepted(), accepted('other')]);
    await expect(recorder.flush()).rejects.toMatchObject({ code: 'service_unavailable' });

    isAway = false;
    await recorder.flush();
    await recorder.flush();

    const { totals } = await statistics.ofWindow(organization_id, 'hour');
    expect(totals.accepted).toBe(3);
    const { api_keys } = await statistics.usesOf(organization_id, skill);
    expect(api_keys).toEqual([
      { id: 'key-0', client_name: 'client 0', runs: 2, last_used_at: '2026-11-21T12:07:30.000Z' },
    ]);
  });

  test('writes nothing when there is nothing to write', async () => {
    const { database, recorderOn } = await world();
    let writes = 0;
    const recorder = recorderOn({
      ...database,
      write: async () => {
        writes += 1;
        return undefined as never;
      },
    });

    await recorder.flush();
    expect(writes).toBe(0);
  });

  test('counts beyond the bound are dropped, and the log says so', async () => {
    const { database, recorderOn, statistics, accepted, warnings } = await world();
    const recorder = recorderOn(database);
    recorder.accepted(Array.from({ length: 10_003 }, (_, i) => accepted(`skill-${i}`)));
    recorder.accepted([accepted('skill-0')]);
    await recorder.flush();

    const { totals } = await statistics.ofWindow(organization_id, 'hour');
    expect(totals.accepted).toBe(10_001);
    // Three of the runs, and the same three of the runs of keys.
    expect(warnings).toEqual([{ dropped: 6 }]);
    await recorder.flush();
    expect(warnings).toHaveLength(1);
  });

  test('at most 200 skills and keys are listed: those with most runs, those used last', async () => {
    const { clock, database, recorderOn, statistics, accepted } = await world();
    const recorder = recorderOn(database);
    for (let i = 0; i < 230; i++) {
      recorder.accepted([accepted('echo', `key-${i}`)]);
      for (const _ of Array(i < 10 ? 2 : 1)) recorder.ended(endOf(`skill-${i}`, 'completed', 1));
      clock.advance(1);
    }
    await recorder.flush();

    const { skills } = await statistics.ofWindow(organization_id, 'hour');
    expect(skills).toHaveLength(200);
    expect(skills.slice(0, 10).map(({ completed }) => completed)).toEqual(Array(10).fill(2));
    const uses = await statistics.usesOf(organization_id, skill);
    expect(uses.total_api_keys).toBe(230);
    expect(uses.api_keys.map(({ id }) => id)).toEqual(
      Array.from({ length: 200 }, (_, i) => `key-${229 - i}`),
    );
  });

  test('only rows that no window shows any more are deleted', async () => {
    const { clock, database, recorderOn, statistics, accepted } = await world();
    const recorder = recorderOn(database);
    const names = Array.from({ length: 1_100 }, (_, i) => `skill-${i}`);
    recorder.accepted(names.map((name) => accepted(name)));
    await recorder.flush();
    const inHour = async (window: 'hour' | 'day') =>
      (await statistics.ofWindow(organization_id, window)).totals.accepted;

    await deleteOldStatistics({ database, clock });
    expect(await rowsIn(database, 'run_statistics')).toBe(2_202);
    clock.advance(2 * hourMs + minuteMs);
    await deleteOldStatistics({ database, clock });
    expect(await rowsIn(database, 'run_statistics')).toBe(1_101);
    expect(await inHour('day')).toBe(1_100);
    clock.advance(23 * hourMs + 15 * minuteMs);
    await deleteOldStatistics({ database, clock });
    expect(await rowsIn(database, 'run_statistics')).toBe(0);

    expect(await rowsIn(database, 'skill_key_runs')).toBe(1_100);
    clock.advance(28 * 24 * hourMs - 12 * hourMs);
    await deleteOldStatistics({ database, clock });
    expect(await rowsIn(database, 'skill_key_runs')).toBe(1_100);
    clock.advance(24 * hourMs);
    await deleteOldStatistics({ database, clock });
    expect(await rowsIn(database, 'skill_key_runs')).toBe(0);
  });

  test.runIf(engine.name === 'PostgreSQL')(
    'a claim does not scan all queued jobs, even without planner statistics',
    async () => {
      const place = await engine.place();
      const database = await place.open();
      const jobs = Array.from({ length: 50 }, () => ({
        ...{ ...jobOf(), id: newId(), api_key_id: 'key', agent_id: 'default', user_id: 'user' },
        ...{ for_user: 0, conversation_id: newId(), trigger_type: 'api' as const, max_attempts: 1 },
        ...{
          run_at: 1,
          expires_at: null,
          retry_of: null,
          resumes: null,
          batch_id: null,
          job_key: null,
          input: '{}',
          created_at: 1,
        },
        agent_overrides: null,
        instruction_values: null,
        priority: 1,
        ...{ parent_job_id: null, parent_step: null, depth: 0 },
      }));
      await database.write((tx) => insertJobs(tx, jobs, new Set(), { by: 1, leaseUntil: 0 }));
      for (const { id } of jobs) {
        expect(
          await database.write((tx) => claimJobs(tx, [id], { by: 1, now: 2, leaseUntil: 3 })),
        ).toHaveLength(1);
      }
      // What a session has read is told when it ends.
      await database.close();

      const { rows } = await sql<{ name: string; n: number }>`
        select indexrelname as name, idx_scan as n from pg_stat_user_indexes
        where relname = 'jobs'`.execute((await place.open()).read.kysely);
      const scans = new Map(rows.map(({ name, n }) => [name, Number(n)]));
      expect(scans.get('jobs_pkey')).toBeGreaterThanOrEqual(50);
      expect(scans.get('jobs_waiting')).toBe(0);
    },
  );
});
