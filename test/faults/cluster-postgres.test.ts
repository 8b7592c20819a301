/**
 * PostgreSQL stopped, restarted, locked, exhausted, read-only, under load: what needs it is answered
 * 503 meanwhile, no process ends, all recover by themselves, and nothing is lost or doubled.
 */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import {
  begunIn,
  canRunClusters,
  leaseMs,
  loadCluster,
  rememberProcesses,
  twoOfEach,
  untilHealth,
} from '../support/cluster-load.ts';
import { randomInteger } from '../support/random.ts';
import { rounds } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

/** From the end of a fault to a cluster that accepts and runs again. */
const recoveryMs = 30_000;
const crashes = rounds(1, 3);
/** Of a fault that comes again and again. */
const times = rounds(2, 10);

describe.skipIf(!(await canRunClusters()))('a cluster whose PostgreSQL', () => {
  let cluster: Cluster;
  let expectSameProcesses: () => void;
  beforeAll(async () => {
    cluster = await startCluster({ ...twoOfEach, settings: { max_connections: '60' } });
    expectSameProcesses = rememberProcesses(cluster);
  });
  afterEach(() => expectSameProcesses());
  afterAll(() => cluster?.close());

  const load = () => loadCluster(cluster);

  test('is stopped as by a crash and comes back loses and doubles nothing', async () => {
    const running = await load();
    for (let round = 0; round < crashes; round++) {
      await running.acceptedMore(begunIn(randomInteger(300, 2_000)));
      await cluster.postgres.stop('immediate');
      // The longest of them outlives the leases.
      if (round === crashes - 1) await untilHealth(cluster, 503, recoveryMs);
      const refused = running.attempts.length;
      await waitFor(() => running.attempts.slice(refused).some(({ outcome }) => outcome === 503), {
        describe: 'requests are answered 503',
      });
      const down = running.attempts.length;
      await cluster.postgres.start();
      await waitFor(() => running.attempts.slice(down).some(({ outcome }) => outcome === 202), {
        describe: 'requests are accepted again',
        deadlineMs: recoveryMs,
      });
    }
    await untilHealth(cluster, 200, recoveryMs);

    await running.settle();
  });

  test('has a backend killed, and so restarts by itself, loses and doubles nothing', async () => {
    const running = await load();
    for (let round = 0; round < rounds(1, 2); round++) {
      await running.acceptedMore(begunIn(randomInteger(300, 2_000)));
      const [backend] = await cluster.sql(
        `SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`,
      );
      process.kill(backend.pid, 'SIGKILL');
      await running.acceptedMore(begunIn(1_000));
    }

    await running.settle();
  });

  test('has all its backends terminated again and again loses and doubles nothing', async () => {
    const running = await load();
    for (let round = 0; round < times; round++) {
      await running.acceptedMore(begunIn(randomInteger(1, 700)));
      const ended = await cluster.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
      expect(ended.length).toBeGreaterThan(0);
    }

    await running.settle();
  });

  test('has no connection left for the platform is answered 503 for, and recovers', async () => {
    const running = await load();
    await running.acceptedMore(begunIn(700));
    const release = await takeAllConnections();
    try {
      await waitFor(() => running.attempts.slice(-10).every(is503), {
        describe: 'requests are answered 503',
        deadlineMs: 60_000,
      });
    } finally {
      await release();
    }
    const full = running.attempts.length;
    await waitFor(() => running.attempts.slice(full).some(({ outcome }) => outcome === 202), {
      describe: 'requests are accepted again',
      deadlineMs: recoveryMs,
    });

    await running.settle();
  });

  test('takes no writes answers reads, 503 to writes, and recovers', async () => {
    const running = await load();
    await running.acceptedMore(begunIn(700));
    const [known] = running.accepted.keys();
    await readOnly(true);
    try {
      const before = running.attempts.length;
      await waitFor(() => running.attempts.slice(before).filter(is503).length >= begunIn(700), {
        describe: 'requests are answered 503',
      });
      const read = await running.tenant.get(`/api/jobs/${known}`);
      expect(read.status).toBe(200);
    } finally {
      await readOnly(false);
    }
    await running.acceptedMore(begunIn(700));

    await running.settle();
  });

  test.each(rounds(['jobs'], ['jobs', 'job_counts']))(
    'has its table %s locked waits, and goes on',
    async (table) => {
      const running = await load();
      await running.acceptedMore(begunIn(700));
      const client = new pg.Client({ connectionString: cluster.databaseUrl });
      await client.connect();
      try {
        await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
        const locked = performance.now();
        await waitFor(() => performance.now() - locked > leaseMs + 1_000, {
          describe: 'the leases have passed',
        });
      } finally {
        await client.end();
      }
      await running.acceptedMore(begunIn(700));

      await running.settle();
    },
  );

  /** Takes every connection that there is, those of the platform too; what is returned gives them back. */
  async function takeAllConnections(): Promise<() => Promise<void>> {
    const url = cluster.postgres.url();
    const connected = async () => {
      const client = new pg.Client({ connectionString: url, application_name: 'taker' });
      client.on('error', () => {});
      await client.connect();
      return client;
    };
    const administrator = await connected();
    const taken: pg.Client[] = [administrator];
    const database = new URL(cluster.databaseUrl).pathname.slice(1);
    const mayConnect = (may: boolean) =>
      administrator.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS ${may}`);
    /** Connections that are not ours yet; those that the platform has it loses. */
    const left = async () => {
      const { rows } = await administrator.query(
        `SELECT current_setting('max_connections')::int -
           (SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'taker') AS n,
           (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND application_name <> 'taker') AS ended`,
      );
      return rows[0].n;
    };
    const release = async () => {
      await mayConnect(true);
      await Promise.all(taken.map((client) => client.end()));
    };
    // Meanwhile the platform would take again what it loses.
    await mayConnect(false);
    try {
      await waitFor(
        async () => {
          // Together: one after the other take a minute on a busy machine. Some fail while a backend is ending.
          const missing = Array.from({ length: await left() }, async () => {
            taken.push(await connected());
          });
          await Promise.allSettled(missing);
          return (await left()) === 0;
        },
        { describe: 'there is none that the platform could have', deadlineMs: 60_000 },
      );
      await mayConnect(true);
    } catch (error) {
      // Or every test after this one would fail.
      await release();
      throw error;
    }
    return release;
  }

  async function readOnly(isReadOnly: boolean): Promise<void> {
    // On the maintenance database: a connection to ours may not be writable itself.
    const client = new pg.Client({ connectionString: cluster.postgres.url() });
    await client.connect();
    try {
      await client.query('SET default_transaction_read_only = off');
      await client.query(
        `ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`,
      );
      await client.query('SELECT pg_reload_conf()');
    } finally {
      await client.end();
    }
  }
});

const is503 = ({ outcome }: { outcome: unknown }) => outcome === 503;
