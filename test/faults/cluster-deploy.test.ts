/**
 * A rolling deploy under load: each process of the old version is told to end once one of the new
 * version is there. No request fails, no run is lost, and none runs twice.
 */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readEffects } from '../support/accounts.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { canRunClusters, loadCluster, stagedSkillsDir } from '../support/cluster-load.ts';
import { dataDirectory } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

const root = join(import.meta.dirname, '../..');

/** The same program under another version; its `start.js`. */
function versionOf(version: string): string {
  const directory = join(dataDirectory(), 'program');
  mkdirSync(directory);
  cpSync(join(root, 'src'), join(directory, 'src'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ ...manifest, version }));
  return join(directory, 'src/start.js');
}

async function versionsOf(cluster: Cluster): Promise<string[]> {
  const answers = await Promise.all(
    cluster.processes.map(({ client }) => client.request('GET', '/health')),
  );
  return answers.map(({ body }) => body.version);
}

describe.skipIf(!(await canRunClusters()))('a rolling deploy', () => {
  test('under load fails no request, and every accepted job runs to its end once', async () => {
    const cluster = await startCluster({ api: 2, workers: 2, skillsDir: stagedSkillsDir });
    onTestFinished(() => cluster.close());
    const [oldVersion] = await versionsOf(cluster);
    const main = versionOf('99.0.0');
    const load = await loadCluster(cluster, {
      perSecond: 30,
      headers: (n): Record<string, string> => (n % 5 === 0 ? { prefer: 'wait=2' } : {}),
    });
    await load.acceptedMore(20);

    const seen = new Set<string>();
    for (const old of [...cluster.processes]) {
      await cluster.add(old.role, { main });
      expect(await cluster.remove(old)).toEqual({ code: 0, signal: null });
      for (const version of await versionsOf(cluster)) seen.add(version);
    }
    await load.acceptedMore(20);

    expect(await versionsOf(cluster)).toEqual(Array(5).fill('99.0.0'));
    expect([...seen].sort()).toEqual([oldVersion, '99.0.0']);
    const account = await load.settle();
    // A load balancer tries the next process where one no longer listens; nothing else may happen.
    const failed = load.attempts.filter(
      ({ outcome }) => ![200, 202, 'refused'].includes(outcome as never),
    );
    expect(failed).toEqual([]);
    expect(account.repeated).toBe(0);
    await expectNothingRunTwice(load);
  });

  test('gives what does not end within the grace to the next, at no cost of an attempt', async () => {
    const cluster = await startCluster({
      skillsDir: stagedSkillsDir,
      environment: { SHUTDOWN_GRACE_MS: '500' },
    });
    onTestFinished(() => cluster.close());
    const load = await loadCluster(cluster, { perSecond: 10, input: () => ({ waitMs: 3_000 }) });
    const [old] = cluster.of('worker');
    await waitFor(() => readEffects(load.log).length >= 10, { describe: 'ten run' });

    await cluster.add('worker');
    await cluster.remove(old as NonNullable<typeof old>);

    await load.settle();
    const rows = await cluster.sql(
      'SELECT max(attempt)::int AS most, max(epoch)::int AS claims FROM jobs',
    );
    expect(rows).toEqual([{ most: 1, claims: 2 }]);
  });

  /** Each run began once for each of its attempts. */
  async function expectNothingRunTwice({ log }: { log: string }): Promise<void> {
    const begins = readEffects(log).filter(({ word }) => word === 'begin');
    const attempts = begins.map(({ jobId, attempt }) => `${jobId} ${attempt}`);
    expect(attempts.length - new Set(attempts).size).toBe(0);
  }
});
