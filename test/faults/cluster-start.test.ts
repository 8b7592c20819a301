/** Processes of a cluster that start: all at once on nothing, or on what is not theirs. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters, noneYet } from '../support/cluster-load.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await canRunClusters()))('processes of a cluster', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ ...noneYet, isUnmigrated: true });
  });
  afterAll(() => cluster?.close());

  test('that start at the same moment on an empty database bring it up to date once', async () => {
    await Promise.all((['api', 'worker', 'scheduler'] as const).map((role) => cluster.add(role)));

    const rows = await cluster.sql(
      'SELECT name, count(*)::int AS n FROM kysely_migration GROUP BY 1',
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter(({ n }) => n !== 1)).toEqual([]);
    const tenant = await newTenant(apiOf(cluster).client);
    await waitFor(async () => (await tenant.get('/api/skills/util/v1.0/echo')).status === 200, {
      describe: 'the API process knows the skill that the worker has registered',
    });
    const { body } = await tenant.run('util/v1.0/echo', { text: 'x' });
    expect(body).toMatchObject({ status: 'completed', attempt: 1 });
  });

  test('are refused by a schema that is newer, with a sentence; those that run go on', async () => {
    await cluster.sql("INSERT INTO kysely_migration VALUES ('9999-future', '2030-01-01')");

    await expect(cluster.add('api')).rejects.toThrow(/newer Skillwright.*9999-future/);

    await cluster.sql("DELETE FROM kysely_migration WHERE name = '9999-future'");
    const tenant = await newTenant(apiOf(cluster).client);
    expect((await tenant.run('util/v1.0/echo', { text: 'x' })).body.status).toBe('completed');
  });

  test('that start without Redis come up, and work as soon as it is there', async () => {
    await cluster.redis.stop();
    const [api, worker] = await Promise.all([cluster.add('api'), cluster.add('worker')]);
    expect((await api.client.request('GET', '/health')).status).toBe(503);
    const key = await api.client.key();
    const accepted = await api.client.request('POST', '/api/util/v1.0/echo', {
      key,
      body: { text: 'x' },
    });
    expect(accepted.status).toBe(202);

    await cluster.redis.start();

    await api.client.jobIn(key, accepted.body.job_id, 'completed');
    expect(worker.hasExited()).toBe(false);
  });
});
