/**
 * Storage that fails in other ways than by being full: `fsync` that fails, a directory that takes no writes any more, a
 * damaged page, PostgreSQL's log and Redis's file without room. What cannot be recorded is answered 503, what was
 * accepted is there afterwards, and the log says why. docs/operations.md has what operators do about each.
 */
import { closeSync, fstatSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Cluster, type ClusterOptions, startCluster } from '../support/cluster.ts';
import {
  begunIn,
  canRunClusters,
  isAcceptedSoon,
  loadCluster,
  rememberProcesses,
  stagedSkillsDir,
  untilHealth,
} from '../support/cluster-load.ts';
import { canCompile, type DiskFault, makeFailingDisk } from '../support/failing-disk.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { rounds } from '../support/soak.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const echo = 'util/v1.0/echo';
const compiler = canCompile();
const clusters = compiler && (await canRunClusters());
/** From the end of a fault to work as before. */
const resumeMs = 30_000;

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'skillwright-storage-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }));
  return path;
}

/** Starts it; killed when the test ends. */
async function started(
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<PlatformProcess> {
  const platform = await startProcess(dataDir, { EXECUTORS: '1', ...environment });
  onTestFinished(async () => {
    platform.signal('SIGKILL');
    await platform.exit;
  });
  return platform;
}

const accept = (tenant: Tenant) => tenant.post(`/api/${echo}`, { text: 'hello' });

describe.skipIf(!compiler)('an embedded platform', () => {
  const faults: [string, DiskFault][] = [
    ['whose fsync fails', 'fsync'],
    ['whose directory turns read-only', 'readonly'],
  ];
  test.each(faults)(
    '%s refuses writes, reads on, goes on afterwards, and has all that it accepted',
    async (_, fault) => {
      const dataDir = directory();
      const disk = makeFailingDisk('skillwright.db');
      const platform = await started(dataDir, disk.environment);
      const tenant = await newTenant(platform);
      const before = await tenant.run(echo, { text: 'before' });
      expect(before.body.status).toBe('completed');

      disk.fail(fault);
      const refused = await accept(tenant);
      expect(refused.status).toBe(503);
      expect(refused.body.error).toBe('service_unavailable');
      expect((await tenant.get(`/api/jobs/${before.body.job_id ?? before.body.id}`)).status).toBe(
        200,
      );
      expect((await accept(tenant)).status).toBe(503);
      expect(platform.output()).toContain('The database cannot be used right now');
      disk.heal();
      const after = await waitFor(
        async () => {
          const answer = await accept(tenant);
          return answer.status === 202 ? answer : null;
        },
        { describe: 'jobs are accepted again', deadlineMs: 30_000 },
      );

      platform.signal('SIGKILL');
      await platform.exit;
      const again = await started(dataDir);
      const { body } = await again.jobIn(tenant.key, after.body.job_id, 'completed');
      expect(body.status).toBe('completed');
      const database = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
      onTestFinished(() => database.close());
      expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    },
  );
});

/** One process of all roles; closed when the test ends. */
async function startedCluster(options: ClusterOptions): Promise<Cluster> {
  const cluster = await startCluster({
    ...{ api: 0, workers: 0, schedulers: 0, also: ['api,worker,scheduler'] },
    skillsDir: stagedSkillsDir,
    ...options,
  });
  onTestFinished(() => cluster.close());
  return cluster;
}

describe.skipIf(!clusters)('a cluster', () => {
  test('whose PostgreSQL has no room for its log refuses writes while that is down, and has all that it accepted', async () => {
    const disk = makeFailingDisk('pg_wal');
    const cluster = await startedCluster({ postgresEnvironment: disk.environment });
    const expectSameProcesses = rememberProcesses(cluster);
    const load = await loadCluster(cluster, { perSecond: 20 });
    await load.acceptedMore(20);

    disk.fail('full');
    // It crashes where its log needs another file, and ends, because its recovery needs one, too.
    const hasEnded = async () => {
      await cluster.sql('SELECT pg_switch_wal()').catch(() => {});
      return cluster.postgres.hasExited();
    };
    await waitFor(hasEnded, { describe: 'PostgreSQL has ended', deadlineMs: resumeMs });
    const refused = await load.tenant.post(`/api/${echo}`, { text: 'hello' });
    expect(refused.status).toBe(503);
    expect(refused.body.error).toBe('service_unavailable');
    await untilHealth(cluster, 503, resumeMs);

    disk.heal();
    // As what supervises it would, such as systemd.
    await cluster.postgres.start();
    await load.acceptedMore(20);
    await load.settle();
    await untilHealth(cluster, 200, resumeMs);
    expectSameProcesses();
  });

  test.each(rounds<('everysec' | 'always')[]>(['everysec'], ['everysec', 'always']))(
    'whose Redis has no room for its file (appendfsync %s) accepts all, and runs it afterwards',
    async (fsync) => {
      const disk = makeFailingDisk('appendonly');
      const { environment } = disk;
      const cluster = await startedCluster({ redis: { persist: true, fsync, environment } });
      const expectSameProcesses = rememberProcesses(cluster);
      const load = await loadCluster(cluster);
      await load.begunMore(begunIn(1_000), resumeMs);

      disk.fail('full');
      await untilHealth(cluster, 503, resumeMs);
      if (fsync === 'always') {
        const hasEnded = () => cluster.redis.hasExited();
        await waitFor(hasEnded, { describe: 'Redis has ended', deadlineMs: resumeMs });
      } else {
        expect(await cluster.redis.command('SET probe 1')).toMatch(/^-MISCONF/);
      }
      await load.acceptedMore(begunIn(2_000));
      const listed = await load.tenant.get('/api/jobs');
      expect(listed.status).toBe(503);

      disk.heal();
      if (fsync === 'always') await cluster.redis.start();
      await load.begunMore(begunIn(1_000), resumeMs);
      await untilHealth(cluster, 200, resumeMs);
      expect((await load.tenant.get('/api/jobs')).status).toBe(200);
      await load.settle();
      expect(load.attempts.filter((attempt) => !isAcceptedSoon(attempt))).toEqual([]);
      expectSameProcesses();
    },
  );
});

/** Overwrites the first page of a table or an index. */
function damage(dataDir: string, name: string): void {
  const file = join(dataDir, 'skillwright.db');
  const database = new DatabaseSync(file);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const row = database.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name);
  const size = database.prepare('PRAGMA page_size').get();
  database.close();
  const bytes = Number(size?.['page_size']);
  const at = (Number(row?.['rootpage']) - 1) * bytes;
  const fd = openSync(file, 'r+');
  expect(fstatSync(fd).size).toBeGreaterThan(at);
  writeSync(fd, Buffer.alloc(bytes, 0xa5), 0, bytes, at);
  closeSync(fd);
}

describe('an embedded platform with a damaged page', () => {
  test('in a table answers 503 where it needs that, says so in its log, and goes on with the rest', async () => {
    const dataDir = directory();
    const first = await started(dataDir);
    const tenant = await newTenant(first);
    await tenant.run(echo, { text: 'before' });
    await first.stop();
    damage(dataDir, 'memories');

    const platform = await started(dataDir);
    const damaged = await platform.request('POST', '/api/agents/default/memories', {
      key: tenant.key,
      body: { content: 'something' },
    });
    expect(damaged.status).toBe(503);
    expect(platform.output()).toContain('malformed');
    const { body } = await platform.run(tenant.key, echo, { text: 'after' });
    expect(body.status).toBe('completed');
  });
});
