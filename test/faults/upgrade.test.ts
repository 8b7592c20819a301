/**
 * An upgrade of one process and the way back, as docs/operations.md describes both: tried on a copy, run, and undone by a
 * copy of the data directory. The newer version is this program with a further migration.
 */
import { execFile } from 'node:child_process';
import { cpSync, renameSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { laterMigration, otherVersion } from '../support/other-version.ts';
import { type PlatformProcess, spawnPlatform, startProcess } from '../support/process.ts';
import { dataDirectory } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const environment = { EXECUTORS: '1', SHUTDOWN_GRACE_MS: '100' };

async function start(dataDir: string, main?: string): Promise<PlatformProcess> {
  const platform = await startProcess(dataDir, environment, main);
  onTestFinished(() => platform.signal('SIGKILL'));
  return platform;
}

/** The tenant of an earlier process, at the address of this one. */
const moved = (platform: PlatformProcess, { key }: Tenant, jobId: string) =>
  platform.jobIn(key, jobId, 'completed', 'failed');

test('an upgrade is tried on a copy, goes on with what was accepted, and is undone by the copy of the data', {
  timeout: 240_000,
}, async () => {
  const dataDir = dataDirectory();
  const copy = `${dataDir}-before`;
  const newer = await otherVersion('99.0.0', { isMigrating: true });
  const old = await start(dataDir);
  const tenant = await newTenant(old);
  const done = await tenant.run('util/v1.0/echo', { text: 'before' });
  const open = await tenant.start('util/v1.0/wait', { ms: 1_000 });
  await old.stop();
  cpSync(dataDir, copy, { recursive: true });

  const args = [newer.cli, 'upgrade', '--check', '--json'];
  const tried = await promisify(execFile)(process.execPath, args, {
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir },
  });
  expect(JSON.parse(tried.stdout)).toMatchObject({ missing: [laterMigration], migrations: 1 });
  // The database itself is as it was.
  const again = await start(dataDir);
  expect((await fetch(`${again.url}/health`)).status).toBe(200);
  await again.stop();

  const upgraded = await start(dataDir, newer.main);
  expect((await moved(upgraded, tenant, open)).body).toMatchObject({
    status: 'completed',
    attempt: 1,
  });
  const { body: later } = await upgraded.run(tenant.key, 'util/v1.0/echo', { text: 'after' });
  await upgraded.stop();

  const refused = spawnPlatform({ DATA_DIR: dataDir, ...environment });
  expect(await refused.exit).toEqual({ code: 1, signal: null });
  expect(refused.output()).toContain(
    `The database was last used by a newer Skillwright (it has migration ${laterMigration})`,
  );

  renameSync(dataDir, `${dataDir}-newer`);
  cpSync(copy, dataDir, { recursive: true });
  const restored = await start(dataDir);
  expect((await moved(restored, tenant, open)).body).toMatchObject({ status: 'completed' });
  const { job_id } = done.body as { job_id: string };
  expect((await moved(restored, tenant, job_id)).body).toMatchObject({
    output: { text: 'before' },
  });
  const missing = await restored.request('GET', `/api/jobs/${later.job_id}`, { key: tenant.key });
  expect(missing.status).toBe(404);
});
