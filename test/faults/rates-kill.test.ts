/** A rate of a skill holds, and its work goes on, while the process is killed and started again on the same data. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters, twoOfEach } from '../support/cluster-load.ts';
import { startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(1, 10);
const skillsDir = join(import.meta.dirname, '../fixtures/skills/limited');

/** A file outside in which runs record when they begin, the earliest first. */
function beginnings() {
  const dir = mkdtempSync(join(tmpdir(), 'skillwright-rates-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const log = join(dir, 'beginnings');
  const read = () =>
    existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').map(Number).toSorted() : [];
  return { dir, log, read };
}

/** The most beginnings in any window. */
const most = (moments: readonly number[], ms: number) =>
  Math.max(...moments.map((at) => moments.filter((one) => one >= at && one < at + ms).length));

test(`a rate holds over kills (${kills}), and every job ends`, { timeout: 400_000 }, async () => {
  beginChance();
  const { dir: dataDir, log, read } = beginnings();
  const environment = { SKILLS_DIR: skillsDir, RETRY_BACKOFF_MS: '10' };
  let platform = await startProcess(dataDir, environment);
  const key = await platform.key();
  const items = Array.from({ length: 4 * (kills + 1) }, () => ({
    skill: 'limited/v1.0/paced',
    input: { log },
  }));
  const { body: batch } = await platform.request('POST', '/api/batches', { key, body: { items } });

  for (let kill = 1; kill <= kills; kill++) {
    const target = 4 * (kill - 1) + randomInteger(1, 4);
    await waitFor(() => read().length >= target, {
      describe: 'some have begun',
      everyMs: 1,
      deadlineMs: 60_000,
    });
    platform.signal('SIGKILL');
    await platform.exit;
    platform = await startProcess(dataDir, environment);
  }
  const done = await waitFor(
    async () => {
      const { body } = await platform.request('GET', `/api/batches/${batch.id}`, { key });
      return body.completed_at === null ? null : body;
    },
    { describe: 'all have ended', deadlineMs: 150_000 },
  );
  await platform.stop();

  const moments = read();
  expect(done.counts).toEqual(expect.objectContaining({ completed: items.length }));
  expect(moments.length).toBeGreaterThanOrEqual(items.length);
  expect(most(moments, 5_000)).toBeLessThanOrEqual(4);
});

describe.skipIf(!(await canRunClusters()))('a cluster', () => {
  test(`a rate holds while workers are killed (${kills}), and every job ends`, {
    timeout: 240_000,
  }, async () => {
    beginChance();
    const cluster = await startCluster({ ...twoOfEach, skillsDir });
    const { log, read } = beginnings();
    try {
      const tenant = await newTenant(apiOf(cluster).client);
      const items = Array.from({ length: 2 + kills }, () => ({
        skill: 'limited/v1.0/paced-for-each',
        input: { log },
      }));
      expect((await tenant.post('/api/batches', { items })).status).toBe(202);

      for (let kill = 0; kill < kills; kill++) {
        await waitFor(() => read().length > kill, {
          describe: 'one more has begun',
          everyMs: 1,
          deadlineMs: 60_000,
        });
        const workers = cluster.of('worker');
        const victim = workers[kill % workers.length];
        await victim?.kill();
        await victim?.start();
      }

      await cluster.untilIdle(120_000);
      expect(read().length).toBeGreaterThanOrEqual(items.length);
      expect(most(read(), 2_000)).toBe(1);
      expect(await cluster.sql('select * from places')).toEqual([]);
      expect(await cluster.sql('select id from jobs where held_by is not null')).toEqual([]);
    } finally {
      await cluster.close();
    }
  });
});
