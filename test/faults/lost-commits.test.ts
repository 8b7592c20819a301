/**
 * Each commit that one platform makes for a run that waits, an agent's turns, a delivery, an approval and an erasure
 * loses its confirmation once: PostgreSQL has committed, and the connection breaks. Each job ends as without the fault,
 * nothing is there twice, and no attempt is charged that did not run. On each change some of the commits, in a soak all.
 * Heartbeats and statistics, which a process writes again and again, are not counted.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Act } from '../fixtures/skills/durable/play.ts';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import { canRunClusters, noneYet } from '../support/cluster-load.ts';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy.ts';
import { resultOf } from '../support/durable-acts.ts';
import { durableSkills, play } from '../support/durable-platform.ts';
import type { Answer } from '../support/platform.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { isSoak, rounds } from '../support/soak.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { followingPlans, inputOf } from '../support/thinking-plans.ts';
import {
  receiverAuthorityFile,
  startTlsReceiver,
  type TlsReceiver,
} from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';
import { newWebhook } from '../support/webhooks.ts';

const runTask = 'agent/v1.0/run-task';
const once = 'durable/v1.0/once';
/** The commits whose confirmations are lost, one in each round. */
const fewCommits = [1, 3, 8, 21];
const fewOfErasure = 6;
/** What an erasure writes. The deliveries of ends are under way beside it, so they do not count. */
const ofErasure =
  /(?:insert into|update|delete from) "(?:memor\w+|messages|conversations|jobs|job_steps|token_usage|user_erasures|events)"/i;
/** Not what each process writes again and again: its heartbeat and its statistics. */
const ofWork =
  /(?:insert into|update|delete from) "(?!processes|run_statistics|skill_key_runs|trigger_calls)\w/i;
const allCommits = Array.from({ length: 120 }, (_, i) => i + 1);

const acts: Act[] = [
  { step: 'first' },
  { sleep: 'nap', ms: 50 },
  { approve: 'ship' },
  { event: 'paid', key: 'order' },
  { run: 'child', acts: [{ step: 'of-child' }] },
  { parallel: [[{ step: 'left' }], [{ sleep: 'short', ms: 20 }, { step: 'right' }]] },
];

describe.skipIf(!(await canRunClusters()))('a platform whose commits are not confirmed', () => {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-lost-commits-'));
  let cluster: Cluster;
  let proxy: CommitProxy;
  let provider: ScriptedProvider;
  let receiver: TlsReceiver;
  let platform: ClusterProcess;
  let tenant: Tenant;

  beforeAll(async () => {
    provider = await startScriptedProvider();
    provider.script(followingPlans());
    receiver = await startTlsReceiver();
    cluster = await startCluster({ ...noneYet, skillsDir: durableSkills });
    proxy = await startCommitProxy(cluster.postgres.port);
    const url = new URL(cluster.databaseUrl);
    url.port = String(proxy.port);
    platform = await cluster.add('api,worker,scheduler', {
      environment: {
        DATABASE_URL: url.href,
        OPENAI_API_KEY: 'sk-test',
        OPENAI_BASE_URL: provider.openaiBaseUrl,
        NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
        WEBHOOK_TIMEOUT_MS: '1000',
      },
    });
    tenant = await newTenant(platform.client);
    const agent = { id: 'chat', model: 'openai/test-model', skills: ['durable/*'] };
    expect((await tenant.post('/api/agents', agent)).status).toBe(201);
    const fields = { agent_id: 'default', events: ['skill.completed', 'skill.failed'] };
    await newWebhook(tenant, receiver.origin, fields);
  });
  afterAll(async () => {
    proxy?.lose(() => false);
    await cluster?.close();
    proxy?.close();
    await receiver?.close();
    await provider?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Repeats a request until it is answered, and not by 503, as clients do. */
  const send = (method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
    waitFor(
      async () => {
        const answer = await tenant.send(method, path, {
          headers,
          ...(body === undefined ? {} : { body }),
        });
        return answer.status === 503 ? null : answer;
      },
      { describe: `${method} ${path} is answered`, deadlineMs: 30_000 },
    );

  async function start(skill: string, input: unknown, headers = {}): Promise<string> {
    const key = { 'idempotency-key': `key-${Math.random()}`, 'x-user-id': 'ann', ...headers };
    const answer = await send('POST', `/api/${skill}`, input, key);
    expect(answer.status, answer.text).toBe(202);
    return answer.body.job_id;
  }

  async function ended(id: string): Promise<Answer['body']> {
    let last: Answer['body'];
    return waitFor(
      async () => {
        last = (await send('GET', `/api/jobs/${id}`)).body;
        return ['completed', 'failed', 'cancelled'].includes(last.status) ? last : null;
      },
      { describe: () => `the job has ended: ${JSON.stringify(last)}`, deadlineMs: 90_000 },
    );
  }

  async function approve(jobId: string): Promise<void> {
    const asked = await waitFor(
      async () => (await send('GET', `/api/approvals?job_id=${jobId}`)).body.data[0],
      { describe: 'the approval is asked for', deadlineMs: 60_000 },
    );
    const { status } = await send(
      'POST',
      `/api/approvals/${asked.id ?? asked.approval_id}/approve`,
      {},
    );
    // Decided by the request before, whose answer was lost.
    expect([200, 409]).toContain(status);
  }

  /** The ids of its jobs. */
  async function playAll(n: number): Promise<string[]> {
    const log = join(directory, `log-${n}`);
    writeFileSync(log, '');
    const before = receiver.requests.length;
    const [playing, acting] = await Promise.all([
      start(play, { log, acts }),
      start(once, { log: `${log}-once` }),
    ]);
    const thinking = await start(
      runTask,
      inputOf({
        id: `plan-${n}`,
        turns: [[{ tool: 'durable__once__v1_0', input: { log: `${log}-tool` } }]],
      }),
      { 'x-agent-id': 'chat' },
    );
    await approve(playing);
    await send(
      'POST',
      '/api/events',
      { event: 'paid', key: 'order', data: { n } },
      {
        'idempotency-key': `event-${n}-${Math.random()}`,
      },
    );

    const played = await ended(playing);
    expect(played).toMatchObject({ status: 'completed', attempt: 1, error: null });
    expect(played.output).toHaveLength(resultOf(acts).length);
    expect(await ended(acting)).toMatchObject({ status: 'completed', attempt: 1 });
    expect(await ended(thinking)).toMatchObject({ status: 'completed', attempt: 1 });
    const linesOf = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(linesOf(`${log}-once`)).toEqual([acting]);
    expect(linesOf(`${log}-tool`)).toHaveLength(1);
    const steps = linesOf(log).map((line) => line.split(' ').slice(0, 2).join(' '));
    expect(new Set(steps).size, 'each step once').toBe(steps.length);
    expect(steps).toHaveLength(4);

    // The three of the agent `default`: the run that waits, its child, and the one with one attempt.
    const delivered = () =>
      receiver.requests
        .slice(before)
        .filter(({ json }) => json.event === 'skill.completed')
        .map(({ json }) => json.data.job_id);
    await waitFor(() => new Set(delivered()).size === 3, {
      describe: 'each end is delivered',
      deadlineMs: 60_000,
    });
    return [playing, acting, thinking];
  }

  async function erase(user: string, jobs: readonly string[]): Promise<void> {
    const path = `/api/users/${user}/data`;
    await waitFor(async () => (await send('DELETE', path)).body.done === true, {
      describe: 'the user is erased',
      deadlineMs: 60_000,
    });
    for (const id of jobs) {
      const job = (await send('GET', `/api/jobs/${id}`)).body;
      expect(job.output ?? null, JSON.stringify(job)).toBeNull();
    }
  }

  test('finishes all of it without a fault', async () => {
    await erase('ann', await playAll(0));
  });

  test.each(rounds(fewCommits, allCommits))(
    'finishes all of it without the confirmation of commit %i',
    async (n) => {
      proxy.lose((commit) => commit === n, ofWork);

      await playAll(n);
      await waitFor(() => proxy.commits >= n, {
        describe: 'the commit was made',
        deadlineMs: 60_000,
      });

      expect(proxy.lost).toBe(1);
    },
  );

  test('erases a user, whichever commit of that is not confirmed', async () => {
    let commits = 0;
    // First without a fault, to know how many commits there are.
    for (let lost = 0; lost <= commits; lost++) {
      const user = `user-${lost}`;
      const log = join(directory, `erased-${lost}`);
      const job = await start(once, { log }, { 'x-user-id': user });
      await ended(job);
      proxy.lose((n) => n === lost, ofErasure);

      await erase(user, [job]);

      if (lost > 0) expect(proxy.lost, `lost answers of commit ${lost}`).toBe(1);
      else commits = isSoak ? proxy.commits : Math.min(proxy.commits, fewOfErasure);
    }
    expect(commits).toBeGreaterThan(1);
  });
});
