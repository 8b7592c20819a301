/** A cluster of real processes to which nothing is done: what the tests of faults stand on. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { loadCluster } from '../support/cluster-load.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { waitFor } from '../support/wait-for.ts';

const canRun = (await isInstalled('PostgreSQL')) && (await isInstalled('Redis'));

describe.skipIf(!canRun)('a cluster without faults', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({
      api: 2,
      workers: 2,
      skillsDir: join(import.meta.dirname, '../fixtures/skills/staged'),
    });
  });
  afterAll(() => cluster?.close());

  test('records under load what it accepts, each once, and refuses nothing', async () => {
    const load = await loadCluster(cluster);
    await waitFor(() => load.accepted.size >= 60, { describe: 'there is load' });

    const account = await load.settle();

    expect(load.attempts.every(({ outcome }) => outcome === 202)).toBe(true);
    expect(account.repeated).toBe(0);
  });
});
