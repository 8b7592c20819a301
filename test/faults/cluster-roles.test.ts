/**
 * Which process of a cluster does what, what each says of itself and the others (docs/decisions/skills.md,
 * docs/decisions/health-and-metrics.md), and what they know of a key together.
 */
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters, stagedSkillsDir } from '../support/cluster-load.ts';
import { askMcp, sendMcp } from '../support/mcp.ts';
import { rounds } from '../support/soak.ts';
import { acting, play } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await canRunClusters()))('the processes of a cluster', () => {
  let cluster: Cluster;
  let one: ClusterProcess;
  let other: ClusterProcess;
  let key: string;
  beforeAll(async () => {
    cluster = await startCluster({
      api: 2,
      also: ['api,worker'],
      skillsDir: stagedSkillsDir,
    });
    [one, other] = cluster.of('api') as [ClusterProcess, ClusterProcess];
    key = await one.client.key();
  });
  beforeEach(async () => {
    await waitFor(async () => (await one.client.request('GET', '/health')).body?.status === 'ok', {
      describe: 'the cluster is well',
      deadlineMs: 30_000,
    });
  });
  afterAll(() => cluster?.close());

  async function accepted(input: unknown): Promise<string> {
    const answer = await one.client.request('POST', `/api/${play}`, { key, body: input });
    expect(answer.status, answer.text).toBe(202);
    return answer.body.job_id as string;
  }

  test('all know that a skill was deprecated at one of them', async () => {
    await one.client.admin('POST', '/admin/skills/util/v1.0/echo/deprecate');

    await waitFor(
      async () =>
        (await other.client.request('POST', '/api/util/v1.0/echo', { key, body: { text: 'x' } }))
          .status === 404,
      { describe: 'the other knows', deadlineMs: 5_000 },
    );
    await other.client.admin('POST', '/admin/skills/util/v1.0/echo/activate');
    await waitFor(
      async () =>
        (await one.client.request('POST', '/api/util/v1.0/echo', { key, body: { text: 'x' } }))
          .status === 202,
      { describe: 'it is active again', deadlineMs: 5_000 },
    );
  });

  test('one that runs no skills serves those that are a SKILL.md to MCP clients', async () => {
    const SKILLS_DIR = join(import.meta.dirname, '../../examples/agent-skills');
    const environment = { SKILLS_DIR };
    const worker = await cluster.add('worker', { environment });
    const api = await cluster.add('api', { environment });
    const uri = 'skill://documents/meeting-minutes/SKILL.md';
    await waitFor(
      async () => {
        const { result } = await askMcp({ url: api.url }, key, 'skills/list');
        return result.skills.some((skill: { uri: string }) => skill.uri === uri);
      },
      { describe: 'the skill is listed', deadlineMs: 20_000 },
    );
    const read = await askMcp({ url: api.url }, key, 'resources/read', { uri });
    expect(read.result.contents[0].text).toContain('name: meeting-minutes');
    await cluster.remove(api);
    await cluster.remove(worker);
  });

  test('each tells its MCP clients of agents that were made at another', async () => {
    const notifications = { toolsListChanged: true };
    const response = await sendMcp({ url: one.url }, key, 'subscriptions/listen', {
      notifications,
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const until = async (part: string) => {
      while (!text.includes(part)) text += (await reader?.read())?.value ?? '';
    };
    await until('acknowledged');
    await other.client.request('POST', '/api/agents', { key, body: { id: 'new', name: 'New' } });
    await until('notifications/tools/list_changed');
    await reader?.cancel();
  });

  test('only those that have the role api serve the API, and each says what it is', async () => {
    for (const { client, roles } of cluster.processes) {
      const { status } = await client.request('GET', '/api/skills', { key });
      const { text } = await client.request('GET', '/metrics');

      expect(status).toBe(roles.includes('api') ? 200 : 404);
      expect((await client.request('GET', '/health')).status).toBe(200);
      expect(text).toMatch(new RegExp(`service_process_info{version="[^"]+",roles="${roles}"} 1`));
      // Each learns of those that started after it with its next beat.
      await waitFor(
        async () => {
          const { text } = await client.request('GET', '/metrics');
          return ['api"} 3', 'worker"} 2', 'scheduler"} 1'].every((count) =>
            text.includes(`service_live_processes{role="${count}\n`),
          );
        },
        { describe: `a process with the roles ${roles} knows of all others`, deadlineMs: 10_000 },
      );
    }
  });

  test('any of them with the role api lists all of them', async () => {
    const seen = await Promise.all(
      [one, other].map(async ({ client }) => (await client.admin('GET', '/admin/processes')).body),
    );

    for (const { data, total } of seen) {
      const roles = data.map((process: { roles: string[] }) => process.roles.join());
      expect(total).toBe(5);
      expect(roles.toSorted()).toEqual(['api', 'api', 'api,worker', 'scheduler', 'worker']);
      for (const process of data) {
        expect(process.skills.includes(play)).toBe(process.roles.includes('worker'));
        expect(Date.now() - Date.parse(process.seen_at)).toBeLessThan(20_000);
      }
    }
    const ids = seen.map(({ data }) => data.map(({ id }: { id: string }) => id));
    expect(ids[0]).toEqual(ids[1]);
  });

  test.each(rounds([7], [1, 7, 100]))(
    'let of 200 requests of a key at once exactly as many through as its limit of %i allows',
    async (limit) => {
      const ask = async () => {
        const { key } = await newTenant(apiOf(cluster).client, { rate_limit: limit });
        return await Promise.all(
          Array.from({ length: 200 }, (_, i) =>
            apiOf(cluster, i % 3).client.request('GET', '/api/agents', { key }),
          ),
        );
      };
      let answers = await ask();
      // Once more, with another key, where Redis answered the limiter too late on a busy machine.
      if (answers.some(({ status }) => status === 503)) answers = await ask();

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

  test('all refuse a key within a second once it is revoked, on open connections too', async () => {
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

  describe('/health tells the truth', () => {
    test('degraded when the workers are dead while work waits, ok again when one is back', async () => {
      const workers = cluster.of('worker');
      await Promise.all(workers.map((worker) => worker.kill()));
      const jobId = await accepted(acting());

      await waitFor(
        async () => (await one.client.request('GET', '/health')).body?.status === 'degraded',
        { describe: 'it is degraded', deadlineMs: 30_000 },
      );
      expect((await one.client.request('GET', '/health')).status).toBe(200);
      await Promise.all(workers.map((worker) => worker.start()));

      await one.client.jobIn(key, jobId, 'completed');
    });
  });
});
