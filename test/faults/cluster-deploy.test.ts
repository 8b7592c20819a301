/**
 * A rolling deploy under load: each process of the old version is told to end once one of the new
 * version is there, which has migrated the schema. No request fails, no run is lost, and none runs twice.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readEffects } from '../support/accounts.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import {
  apiOf,
  begunIn,
  canRunClusters,
  loadCluster,
  stagedSkillsDir,
} from '../support/cluster-load.ts';
import { laterMigration, otherVersion } from '../support/other-version.ts';
import { spawnPlatform } from '../support/process.ts';
import { isSoak } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

async function versionsOf(cluster: Cluster): Promise<string[]> {
  const answers = await Promise.all(
    cluster.processes.map(({ client }) => client.request('GET', '/health')),
  );
  return answers.map(({ body }) => body.version);
}

describe.skipIf(!(await canRunClusters()))('a rolling deploy', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({
      schedulers: 0,
      also: ['api,scheduler'],
      skillsDir: stagedSkillsDir,
    });
  });
  afterAll(() => cluster?.close());

  test('gives what does not end within the grace to the next, at no cost of an attempt', async () => {
    const others = cluster.of('worker');
    const old = await cluster.add('worker', { environment: { SHUTDOWN_GRACE_MS: '500' } });
    for (const other of others) await cluster.remove(other);
    const load = await loadCluster(cluster, { perSecond: 6, input: () => ({ waitMs: 3_000 }) });
    await waitFor(() => readEffects(load.log).length >= 10, { describe: 'ten run' });

    await cluster.add('worker');
    await cluster.remove(old);

    await load.settle();
    const rows = await cluster.sql(
      `SELECT max(attempt)::int AS most, max(epoch)::int AS claims FROM jobs
       WHERE organization_id = $1`,
      [load.tenant.organization],
    );
    expect(rows).toEqual([{ most: 1, claims: 2 }]);
  });

  test('of skills alone reloads one worker after the other, and loses no run', async () => {
    while (cluster.of('worker').length < 2) await cluster.add('worker');
    const load = await loadCluster(cluster);
    await load.acceptedMore(begunIn(500));

    const { client } = apiOf(cluster);
    const answer = await client.admin('POST', '/admin/skills/reload');

    const { body: live } = await client.admin('GET', '/admin/processes');
    const workers = live.data.filter(({ roles }: { roles: string[] }) => roles.includes('worker'));
    expect(answer).toMatchObject({ status: 200, body: { status: 'reloaded', added: [] } });
    const reloaded = workers.map(({ id }: { id: string }) => ({
      id,
      status: 'reloaded',
      reason: null,
    }));
    expect(answer.body.processes).toEqual(reloaded);
    await waitFor(
      async () => {
        const told = await apiOf(cluster, 1).client.admin('GET', '/admin/skills/reload');
        return told.body.ended_at === answer.body.ended_at;
      },
      { describe: 'the other process has heard of it' },
    );
    await load.acceptedMore(begunIn(500));
    await load.settle();
  });

  test('SIGHUP to one process reloads the skills of all workers', async () => {
    while (cluster.of('worker').length < 2) await cluster.add('worker');

    cluster.of('api')[0]?.signal('SIGHUP');

    const state = await waitFor(
      async () => {
        const { body } = await apiOf(cluster, 1).client.admin('GET', '/admin/skills/reload');
        return body.trigger === 'signal' && body.status !== 'running' ? body : null;
      },
      { describe: 'the other process has heard of its end' },
    );
    expect(state).toMatchObject({ status: 'reloaded', reason: null });
    expect(state.processes).toHaveLength(2);
  });

  test('under load fails no request, and every accepted job runs to its end once', async () => {
    while (cluster.of('worker').length < 2) await cluster.add('worker');
    const [oldVersion] = await versionsOf(cluster);
    const { main } = await otherVersion('99.0.0', { isMigrating: true });
    const load = await loadCluster(cluster, {
      headers: (n): Record<string, string> => (n % 5 === 0 ? { prefer: 'wait=2' } : {}),
    });
    await load.acceptedMore(begunIn(700));

    const seen = new Set<string>();
    // On each change one that has both roles of a server; in a soak all of them.
    const old = cluster.processes.filter(({ roles }) => isSoak || roles === 'api,scheduler');
    for (const one of old) {
      await cluster.add(one.roles, { main });
      expect(await cluster.remove(one)).toEqual({ code: 0, signal: null });
      for (const version of await versionsOf(cluster)) seen.add(version);
    }
    // Those of the old version work on beside the newer schema.
    await load.acceptedMore(begunIn(700));

    const versions = await versionsOf(cluster);
    expect(versions.slice(-old.length)).toEqual(old.map(() => '99.0.0'));
    expect(versions).toHaveLength(4);
    expect([...seen].sort()).toEqual([oldVersion, '99.0.0']);
    const late = spawnPlatform({ DATABASE_URL: cluster.databaseUrl });
    expect(await late.exit).toEqual({ code: 1, signal: null });
    expect(late.output()).toContain(`it has migration ${laterMigration}`);
    // The account opens the database with the program of the tests, which is the old one.
    await cluster.sql('DELETE FROM kysely_migration WHERE name = $1', [laterMigration]);
    const account = await load.settle();
    // A load balancer tries the next process where one no longer listens; nothing else may happen.
    const failed = load.attempts.filter(
      ({ outcome }) => ![200, 202, 'refused'].includes(outcome as never),
    );
    expect(failed).toEqual([]);
    expect(account.repeated).toBe(0);
    await expectNothingRunTwice(load);
  });

  /** Each run began once for each of its attempts. */
  async function expectNothingRunTwice({ log }: { log: string }): Promise<void> {
    const begins = readEffects(log).filter(({ word }) => word === 'begin');
    const attempts = begins.map(({ jobId, attempt }) => `${jobId} ${attempt}`);
    expect(attempts.length - new Set(attempts).size).toBe(0);
  }
});
