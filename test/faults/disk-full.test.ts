/**
 * A full disk under either database: what has to be written is answered 503, what can be read is read,
 * no process ends, and with room again everything goes on. Nothing accepted is lost.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import {
  apiOf,
  canRunClusters,
  effect,
  loadCluster,
  stagedSkillsDir,
} from '../support/cluster-load.ts';
import { type Load, startLoad } from '../support/load.ts';
import type { Platform } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { canMount, mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { dataDirectory } from '../support/staged.ts';
import { accountOf } from '../support/supervised.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const mounts = canMount();
const clusters = await canRunClusters();
/** So much in every input that a full disk is noticed at the next one. */
const padding = 'x'.repeat(20_000);

function smallDisk(...options: Parameters<typeof mountSmallDisk>): SmallDisk {
  const disk = mountSmallDisk(...options);
  onTestFinished(() => disk.close());
  return disk;
}

/** Waits for so many answers of a kind from now on. */
async function answers(load: Load, outcome: number, count: number): Promise<void> {
  const from = load.attempts.length;
  await waitFor(
    () =>
      load.attempts.slice(from).filter((attempt) => attempt.outcome === outcome).length >= count,
    { describe: `${count} answers are ${outcome}`, deadlineMs: 60_000 },
  );
}

async function healthIs({ request }: Pick<Platform, 'request'>, status: number): Promise<void> {
  await waitFor(async () => (await request('GET', '/health')).status === status, {
    describe: `/health is ${status}`,
    deadlineMs: 60_000,
  });
}

describe.skipIf(!mounts)('a full disk', () => {
  test('under SQLite', async () => {
    const disk = smallDisk(24);
    const platform = await startProcess(disk.path, { EXECUTORS: '1', SKILLS_DIR: stagedSkillsDir });
    onTestFinished(() => platform.stop());
    const tenant = await newTenant(platform);
    const log = `${dataDirectory()}/effects`;
    const load = startLoad({
      perSecond: 20,
      urls: () => [platform.url],
      key: tenant.key,
      skill: effect,
      input: () => ({ log, padding }),
    });
    await answers(load, 202, 10);

    disk.fill();
    await answers(load, 503, 20);
    const [known] = load.accepted.keys();
    expect((await tenant.get(`/api/jobs/${known}`)).status).toBe(200);
    await healthIs(platform, 503);
    expect((await platform.request('GET', '/metrics')).text).toContain(
      'service_database_writable 0',
    );
    disk.free();
    await answers(load, 202, 10);
    await healthIs(platform, 200);
    expect((await platform.request('GET', '/metrics')).text).toContain(
      'service_database_writable 1',
    );

    await load.stop();
    expect(load.unexpected).toEqual([]);
    for (const jobId of load.accepted.keys()) await tenant.jobIn(jobId, 'completed');
    const { body } = await tenant.get('/api/jobs?limit=1');
    expect(body.total).toBe(load.accepted.size);
  });

  test.skipIf(!clusters)('under PostgreSQL', async () => {
    const disk = smallDisk(40, accountOf('postgres', 'nobody'));
    const cluster = await startCluster({
      api: 0,
      workers: 0,
      schedulers: 0,
      also: ['api,worker,scheduler'],
      tablespace: disk.path,
      skillsDir: stagedSkillsDir,
    });
    onTestFinished(() => cluster.close());
    const load = await loadCluster(cluster, { perSecond: 20, input: () => ({ padding }) });
    await answers(load, 202, 10);

    disk.fill();
    await answers(load, 503, 20);
    const [known] = load.accepted.keys();
    expect((await load.tenant.get(`/api/jobs/${known}`)).status).toBe(200);
    await healthIs(apiOf(cluster).client, 503);
    disk.free();
    await answers(load, 202, 10);

    expect(cluster.processes.filter((process) => process.hasExited())).toEqual([]);
    await load.settle();
    await healthIs(apiOf(cluster).client, 200);
  });
});
