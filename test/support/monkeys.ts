/**
 * Faults at random moments to a cluster, each undone again by who did it: to its processes, its stores
 * and the network between them. Each monkey does one thing after the other; several at once are what a
 * bad day is.
 */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Cluster, ClusterProcess, Role } from './cluster.ts';
import { oneOf, randomInteger, shuffled } from './random.ts';
import type { FaultJournal } from './report.ts';
import type { SmallDisk } from './small-disk.ts';
import type { TcpProxy } from './tcp-proxy.ts';

/** A fault: does it, undoes it, and says what it was; null when it could not be done just then. */
type Fault = () => Promise<string | null>;

interface Monkey {
  /** Does faults until it is told to stop. */
  run(isOver: () => boolean): Promise<void>;
}

function monkey(
  faults: readonly Fault[],
  journal: FaultJournal,
  [least, most]: readonly [number, number],
): Monkey {
  return {
    async run(isOver) {
      // Each once in random order, then again, so that a short run has seen them all.
      for (let bag: Fault[] = []; !isOver(); ) {
        if (bag.length === 0) bag = shuffled(faults);
        const done = await bag.pop()?.();
        if (done) journal.did(done);
        await pause(randomInteger(least, most));
      }
    },
  };
}

/**
 * Kills, stops, freezes and replaces processes. `crashed` takes the end of the log of every process
 * that ended without having been told to.
 */
export function processMonkey(cluster: Cluster, journal: FaultJournal, crashed: string[]): Monkey {
  const roles: readonly Role[] = ['worker', 'worker', 'api', 'scheduler'];
  const victim = (role: Role = oneOf(roles)): ClusterProcess => oneOf(cluster.of(role));

  async function revive(process: ClusterProcess): Promise<void> {
    // Its stores may be away just then, so the start is repeated, as a supervisor would.
    for (;;) {
      try {
        return await process.start();
      } catch {
        if (!process.hasExited()) await process.kill();
        await pause(500);
      }
    }
  }

  async function lookForCrashes(): Promise<void> {
    for (const process of cluster.processes.filter((one) => one.hasExited())) {
      crashed.push(`${process.name}: ${process.log().slice(-1_000)}`);
      await revive(process);
    }
  }

  const kill: Fault = async () => {
    await lookForCrashes();
    const process = victim();
    await process.kill();
    await revive(process);
    return `${process.roles} killed (SIGKILL)`;
  };
  const freeze: Fault = async () => {
    await lookForCrashes();
    const process = victim();
    process.signal('SIGSTOP');
    // On both sides of its leases' end.
    await pause(randomInteger(500, 7_000));
    process.signal('SIGCONT');
    return `${process.roles} stood still (SIGSTOP)`;
  };
  const restart: Fault = async () => {
    await lookForCrashes();
    const process = victim();
    await process.stop();
    await revive(process);
    return `${process.roles} restarted (SIGTERM)`;
  };
  return monkey([kill, kill, freeze, restart], journal, [200, 1_500]);
}

/** Stops, empties, fills and locks the stores. */
export function storeMonkey(
  cluster: Cluster,
  journal: FaultJournal,
  disk: SmallDisk | null,
): Monkey {
  const { postgres, redis } = cluster;
  /** A fault by SQL, on a connection that no fault of ours touches; there may be none just then. */
  const bySql =
    (name: string, act: (client: pg.Client) => Promise<unknown>): Fault =>
    async () => {
      const client = new pg.Client({
        connectionString: cluster.databaseUrl,
        application_name: 'a fault',
        connectionTimeoutMillis: 2_000,
        query_timeout: 15_000,
      });
      client.on('error', () => {});
      try {
        await client.connect();
        // Not what the platform is to bear.
        await client.query('SET default_transaction_read_only = off');
        await act(client);
        return name;
      } catch {
        return null;
      } finally {
        await client.end().catch(() => {});
      }
    };
  const readOnly = (client: pg.Client, isReadOnly: boolean) =>
    client
      .query(`ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`)
      .then(() => client.query('SELECT pg_reload_conf()'));

  const faults: Fault[] = [
    async () => {
      await postgres.stop('immediate');
      await pause(randomInteger(0, 3_000));
      await postgres.start();
      return 'PostgreSQL stopped as by a crash';
    },
    bySql('PostgreSQL: all backends terminated', (client) =>
      client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      ),
    ),
    bySql('PostgreSQL: a backend killed (SIGKILL)', async (client) => {
      const { rows } = await client.query(
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'skillwright'
         ORDER BY random() LIMIT 1`,
      );
      process.kill(rows[0].pid, 'SIGKILL');
    }),
    bySql('PostgreSQL read-only', async (client) => {
      await readOnly(client, true);
      await pause(randomInteger(500, 2_000));
      await readOnly(client, false);
    }),
    bySql('PostgreSQL: a table locked', async (client) => {
      const table = oneOf(['jobs', 'events', 'messages', 'job_counts', 'webhook_deliveries']);
      await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      await pause(randomInteger(500, 3_000));
      await client.query('ROLLBACK');
    }),
    async () => {
      await redis.stop();
      await pause(randomInteger(0, 3_000));
      await redis.start();
      return 'Redis stopped, and back empty';
    },
    async () => {
      await redis.kill();
      await redis.start();
      return 'Redis killed (SIGKILL), and back empty';
    },
    async () => {
      await redis.command('FLUSHALL');
      return 'Redis flushed';
    },
    async () => {
      await redis.command('CLIENT KILL TYPE normal');
      await redis.command('CLIENT KILL TYPE pubsub');
      return 'Redis: all clients dropped';
    },
    async () => {
      redis.freeze();
      await pause(randomInteger(500, 5_000));
      redis.thaw();
      return 'Redis stood still (SIGSTOP)';
    },
    async () => {
      await redis.command(`CONFIG SET maxmemory-policy ${oneOf(['noeviction', 'allkeys-lru'])}`);
      await redis.command('CONFIG SET maxmemory 1mb');
      await pause(randomInteger(500, 3_000));
      await redis.command('CONFIG SET maxmemory 0');
      await redis.command('CONFIG SET maxmemory-policy noeviction');
      return 'Redis out of memory';
    },
  ];
  if (disk !== null) {
    faults.push(async () => {
      disk.fill();
      await pause(randomInteger(500, 3_000));
      disk.free();
      return 'PostgreSQL: disk full';
    });
  }
  return monkey(faults, journal, [500, 2_500]);
}

/** Disorders the network between all processes and one of the stores. */
export function networkMonkey(cluster: Cluster, journal: FaultJournal): Monkey {
  const { proxies } = cluster;
  if (proxies === null) throw new Error('The cluster has no proxies.');
  const disorders: readonly (readonly [string, (proxy: TcpProxy) => void])[] = [
    ['late', (proxy) => proxy.delay(randomInteger(10, 100))],
    ['late one way', (proxy) => proxy.delay(randomInteger(10, 100), 'answers')],
    ['narrow', (proxy) => proxy.throttle(50_000)],
    ['held', (proxy) => proxy.hold()],
    ['half-open', (proxy) => proxy.swallow()],
    ['refused', (proxy) => proxy.refuse()],
    ['cut', (proxy) => proxy.cut()],
  ];
  const faults = (['postgres', 'redis'] as const).flatMap((store) =>
    disorders.map(
      ([name, disorder]): Fault =>
        async () => {
          disorder(proxies[store]);
          await pause(randomInteger(500, 3_000));
          await proxies[store].heal();
          return `network to ${store}: ${name}`;
        },
    ),
  );
  return monkey(faults, journal, [500, 2_500]);
}
