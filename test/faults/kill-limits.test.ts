/**
 * Limits of skills while processes are killed and Redis is flushed: by what the runs note outside, no more go on at a time than the
 * limit, and no place is lost, so that work goes on to its end.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSqlite } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { type Witnessed, witnessedLimit } from '../fixtures/skills/limited/witnessed.ts';
import { startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters, leaseMs, twoOfEach } from '../support/cluster-load.ts';
import { startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { dataDirectory } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(2, 20);
const jobs = rounds(60, 600);
const skillsDir = join(import.meta.dirname, '../fixtures/skills/limited');
const witnessed = 'limited/v1.0/witnessed';

/** Where the runs note what goes on. */
function witness() {
  const dir = dataDirectory();
  mkdirSync(`${dir}/runs`, { recursive: true });
  const input: Witnessed = { dir, ms: 20 };
  const counts = () => {
    const file = `${dir}/counts`;
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
  };
  /** Of four jobs one calls the skill twice instead of being a run of it. */
  const items = Array.from({ length: jobs }, (_, i) =>
    i % 4 === 0
      ? {
          skill: 'limited/v1.0/free',
          input: {
            log: `${dir}/log`,
            calls: [
              [witnessed, input],
              [witnessed, input],
            ],
          },
        }
      : { skill: witnessed, input },
  );
  const more = (n: number) => {
    const wanted = counts().length + n;
    return waitFor(() => counts().length >= wanted, { describe: 'runs go on', deadlineMs: 60_000 });
  };
  return { counts, items, more };
}

function expectWithin(counts: readonly number[]) {
  expect(Math.max(...counts)).toBeLessThanOrEqual(witnessedLimit);
  expect(counts.length).toBeGreaterThanOrEqual(jobs);
}

test(`a process that is killed ${kills} times never passes a limit, and loses no place`, {
  timeout: 240_000,
}, async () => {
  beginChance();
  const dataDir = dataDirectory();
  const environment = {
    ...{ SKILLS_DIR: skillsDir, EXECUTORS: '1', WORKER_CONCURRENCY: '8' },
    ...{ RETRY_BACKOFF_MS: '10', JOB_LEASE_MS: String(leaseMs) },
  };
  const { counts, items, more } = witness();
  let platform = await startProcess(dataDir, environment);
  const key = await platform.key();
  const { status } = await platform.request('POST', '/api/batches', { key, body: { items } });
  expect(status).toBe(202);

  for (let kill = 0; kill < kills; kill++) {
    await more(randomInteger(1, 10));
    platform.signal('SIGKILL');
    await platform.exit;
    platform = await startProcess(dataDir, environment);
  }

  const unended = async (name: string) =>
    (await platform.request('GET', `/api/jobs?status=${name}`, { key })).body.total as number;
  await waitFor(async () => (await unended('queued')) + (await unended('active')) === 0, {
    ...{ describe: 'every job has ended', deadlineMs: 120_000 },
  });
  await platform.stop();
  expectWithin(counts());
  const database = await openSqlite(dataDir, createLogger('silent'));
  expect(await database.read.kysely.selectFrom('places').selectAll().execute()).toEqual([]);
  await database.close();
});

describe.skipIf(!(await canRunClusters()))('a cluster', () => {
  test(`whose workers are killed ${kills} times while Redis is flushed never passes a limit, and loses no place`, {
    timeout: 240_000,
  }, async () => {
    beginChance();
    const cluster = await startCluster({ ...twoOfEach, skillsDir });
    const { counts, items, more } = witness();
    try {
      const tenant = await newTenant(apiOf(cluster).client);
      expect((await tenant.post('/api/batches', { items })).status).toBe(202);

      for (let kill = 0; kill < kills; kill++) {
        await more(randomInteger(1, 10));
        const workers = cluster.of('worker');
        const victim = workers[kill % workers.length];
        await victim?.kill();
        await cluster.redis.command('FLUSHALL');
        await victim?.start();
      }

      await cluster.untilIdle(120_000);
      expectWithin(counts());
      expect(await cluster.sql('select * from places')).toEqual([]);
      expect(await cluster.sql('select id from jobs where held_by is not null')).toEqual([]);
    } finally {
      await cluster.close();
    }
  });
});
