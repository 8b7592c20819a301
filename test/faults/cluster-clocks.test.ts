/**
 * Processes whose clocks are 90 s ahead and 90 s behind, and a database whose clock is put forward:
 * no job is taken from a worker that lives, retries come in time, each minute has one run among two
 * schedulers, and in a soak among five.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { minutesAmiss, readEffects } from '../support/accounts.ts';
import { type AddOptions, type Cluster, startCluster } from '../support/cluster.ts';
import { canRunClusters, loadCluster, noneYet } from '../support/cluster-load.ts';
import { findFaketime, skewedClock } from '../support/skewed-clock.ts';
import { rounds } from '../support/soak.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const schedules = 20;
const leaseMs = 3_000;
/** Longer than a lease, so that it has to be kept. */
const longRunMs = 5_000;
const minuteMs = 60_000;
/** Longer than processes go without a look at the database's clock. */
const aheadMs = 8_000;

const library = findFaketime();
/** A process whose clock is off, where that can be had. */
const off = (seconds: number): AddOptions =>
  library === undefined ? {} : { environment: skewedClock(library, seconds) };

describe.skipIf(!(await canRunClusters()))('a cluster whose clocks differ', () => {
  let cluster: Cluster;
  let tenant: Tenant;
  beforeAll(async () => {
    cluster = await startCluster({
      ...noneYet,
      environment: { JOB_LEASE_MS: String(leaseMs), RETRY_BACKOFF_MS: '500' },
    });
    await makeClockMovable();
    const api = await cluster.add('api,scheduler', off(-90));
    await cluster.add('worker');
    await cluster.add('worker,scheduler', off(90));
    tenant = await newTenant(api.client);
  });
  afterAll(() => cluster?.close());

  /** Puts a function of ours in the place of the one that tells the time. */
  async function makeClockMovable(): Promise<void> {
    const name = new URL(cluster.databaseUrl).pathname.slice(1);
    for (const statement of [
      'CREATE SCHEMA moved',
      "CREATE TABLE moved.clock AS SELECT interval '0' AS ahead",
      `CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql
       AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM moved.clock'`,
      // Ours is found first.
      `ALTER DATABASE ${name} SET search_path = public, moved, pg_catalog`,
    ]) {
      await cluster.sql(statement);
    }
  }

  /**
   * Puts the database's clock forward, until it is so long before the next full minute; never past a
   * minute, which would be missed then, and caught up with late.
   */
  const moveTo = (beforeMinuteMs: number) =>
    cluster.sql(
      `UPDATE moved.clock SET ahead = ahead + make_interval(secs => greatest(0,
         60000 - $1 - (extract(epoch FROM moved.clock_timestamp()) * 1000)::numeric % 60000
       )::float8 / 1000)`,
      [beforeMinuteMs],
    );

  test.skipIf(library === undefined)('has some that are wrong', async () => {
    const stamps = cluster.processes.map((process) => {
      const [, time] = /"time":(\d+)/.exec(process.log()) ?? [];
      return Math.round((Number(time) - Date.now()) / 60_000);
    });

    expect(new Set(stamps).size).toBe(3);
  });

  test('takes no job from a worker that lives, and retries in time', async () => {
    const load = await loadCluster(cluster, {
      perSecond: 10,
      input: (n) => (n % 10 === 0 ? { waitMs: longRunMs } : n % 10 === 1 ? { failures: 2 } : {}),
    });
    await load.acceptedMore(rounds(30, 100));

    const account = await load.settle();

    expect(account.repeated).toBe(0);
    const begins = readEffects(load.log).filter(({ word }) => word === 'begin');
    const runs = [...Map.groupBy(begins, ({ jobId }) => jobId).values()].map(
      ({ length }) => length,
    );
    // Every one ran once, but for the tenth that fails twice before it succeeds.
    expect(new Set(runs)).toEqual(new Set([1, 3]));
    // Two waits of 0.5 and 1 s with what chance adds, or one long run.
    expect(account.longestDelayMs).toBeLessThan(longRunMs + 15_000);
  });

  test(`has one run for each minute, with ${rounds('two schedulers', 'two schedulers and with five')}`, async () => {
    for (let i = 0; i < schedules; i++) {
      const { status, text } = await tenant.post('/api/scheduled-jobs', {
        agent_id: 'default',
        skill_category: 'util',
        skill_name: 'echo',
        // Different texts that mean the same.
        cron_expression: `*${',*'.repeat(i)} * * * *`,
        input: { text: `schedule ${i}` },
      });
      expect(status, text).toBe(201);
    }
    // A minute that begins while they are being made has runs of the first ones only.
    const slots = async (): Promise<{ slot: number; n: number; late: number }[]> =>
      await cluster.sql(
        `SELECT slot::float8, count(*)::int AS n, max(jobs.created_at - slot)::float8 AS late
         FROM scheduled_runs JOIN jobs ON jobs.id = job_id
         WHERE slot > (SELECT max(created_at) FROM scheduled_jobs) GROUP BY slot ORDER BY slot`,
      );
    const untilMinutes = async (count: number) => {
      // Time enough that all processes have looked at the clock again before.
      await moveTo(aheadMs);
      await waitFor(
        async () => {
          const found = await slots();
          return found.length >= count && found.every(({ n }) => n >= schedules);
        },
        { describe: `${count} minutes have run`, deadlineMs: aheadMs + 40_000, everyMs: 200 },
      );
    };

    await untilMinutes(1);
    // test/contracts/schedules-tick.test.ts has five of them on each change.
    for (const seconds of rounds([], [0, 45, -45])) await cluster.add('scheduler', off(seconds));
    const minutes = rounds(1, 2);
    await untilMinutes(minutes);

    const found = await slots();
    expect(found.map(({ n }) => n)).toEqual(Array(minutes).fill(schedules));
    for (const { slot, late } of found) {
      expect(slot % minuteMs).toBe(0);
      expect(late).toBeGreaterThanOrEqual(0);
      // By a clock that is off it would be 45 s or 90 s.
      expect(late).toBeLessThan(40_000);
    }
    expect(await minutesAmiss(cluster.sql)).toEqual([]);
    await cluster.untilIdle();
  });
});
