/** A cluster of real processes to which nothing is done: what the tests of faults stand on. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { canRunClusters, loadCluster, stagedSkillsDir } from '../support/cluster-load.ts';

describe.skipIf(!(await canRunClusters()))('a cluster without faults', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ api: 2, workers: 2, skillsDir: stagedSkillsDir });
  });
  afterAll(() => cluster?.close());

  test('records under load what it accepts, each once, and refuses nothing', async () => {
    const load = await loadCluster(cluster);
    await load.acceptedMore(100);

    const account = await load.settle();

    expect(load.attempts.every(({ outcome }) => outcome === 202)).toBe(true);
    expect(account.repeated).toBe(0);
  });
});
