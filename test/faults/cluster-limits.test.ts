/** What holds for a key, whatever process it is used at: its limit, to the request, and its end. */
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters } from '../support/cluster-load.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await canRunClusters()))('a key at three api processes', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ api: 3, workers: 0, schedulers: 0 });
  });
  afterAll(() => cluster?.close());

  test.each([1, 7, 100])(
    'has of 200 requests at once exactly as many let through as its limit of %i allows',
    async (limit) => {
      const { key } = await newTenant(apiOf(cluster).client, { rate_limit: limit });

      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          apiOf(cluster, i % 3).client.request('GET', '/api/agents', { key }),
        ),
      );

      const passed = answers.filter(({ status }) => status !== 429);
      expect(passed.map(({ status }) => status)).toEqual(Array(limit).fill(200));
      const remaining = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
      expect(remaining.toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: limit }, (_, i) => i),
      );
      for (const { headers, body } of answers.filter(({ status }) => status === 429)) {
        expect(headers.get('x-ratelimit-remaining')).toBe('0');
        expect(Number(headers.get('retry-after'))).toBe(body.retry_after);
        expect(body.retry_after).toBeGreaterThan(0);
        expect(body.retry_after).toBeLessThanOrEqual(60);
      }
    },
  );

  test('is refused within a second at all of them once it is revoked, on open connections too', async () => {
    const tenant = await newTenant(apiOf(cluster).client);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statusAt = (url: string) =>
      new Promise<number>((resolve, reject) => {
        request(`${url}/api/agents`, { agent, headers: { 'x-api-key': tenant.key } }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
        })
          .on('error', reject)
          .end();
      });
    const urls = cluster.of('api').map(({ url }) => url);
    for (const url of urls) expect(await statusAt(url)).toBe(200);

    await apiOf(cluster).client.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);

    for (const url of urls) {
      await waitFor(async () => (await statusAt(url)) === 401, {
        describe: `${url} refuses the key`,
        // A second, and what the requests themselves take on a busy machine.
        deadlineMs: 3_000,
      });
    }
    agent.destroy();
  });
});
