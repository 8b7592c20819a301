/**
 * `npm run migrate-to-cluster` as an operator runs it: a live embedded platform is killed, its data
 * moved, and a platform on PostgreSQL goes on where it was.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { storeJobs } from '../../bench/stored-jobs.ts';
import { moveMarkerFile, readMoveMarker } from '../../src/adapters/database/move-marker.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { expectConsistent } from '../support/consistency.ts';
import { follow } from '../support/event-stream.ts';
import {
  type PlatformProcess,
  spawnCommand,
  spawnPlatform,
  startProcess,
} from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import {
  answering,
  type ScriptedProvider,
  startScriptedProvider,
} from '../support/scripted-provider.ts';
import { freshDatabase, isInstalled } from '../support/shared-servers.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { acting, gate, play } from '../support/staged.ts';
import {
  receiverAuthorityFile,
  startTlsReceiver,
  type TlsReceiver,
} from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';

const staged = join(import.meta.dirname, '../fixtures/skills/staged');
const here = await isInstalled('PostgreSQL');

let dataDir: string;
let receiver: TlsReceiver;
let provider: ScriptedProvider;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-move-'));
  receiver = await startTlsReceiver();
  provider = await startScriptedProvider({ script: answering('Hello.') });
});
afterEach(async () => {
  await provider.close();
  await receiver.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const environment = () => ({
  EXECUTORS: '1',
  SKILLS_DIR: staged,
  // Long enough that what waits for its retry still waits when it has been moved.
  RETRY_BACKOFF_MS: '12000',
  WEBHOOK_RETRY_DELAYS: '12,12,12',
  JOB_LEASE_MS: '3000',
  WORKER_CONCURRENCY: '2',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
});

/** Runs the command to its end. */
async function migrate(databaseUrl: string) {
  const command = spawnCommand('migrate-to-cluster', {
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
  });
  return { ...(await command.exit), output: command.output() };
}

/** What one key asks of a platform. */
function clientOf(platform: PlatformProcess, key: string) {
  const send = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const answer = await platform.request(method, path, { key, headers, body });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer;
  };
  return {
    get: async (path: string) => (await send('GET', path)).body,
    answer: (path: string) => send('GET', path),
    post: async (path: string, body: unknown, headers?: Record<string, string>) =>
      (await send('POST', path, body, headers)).body,
    posted: (path: string, body: unknown, headers: Record<string, string>) =>
      send('POST', path, body, headers),
    put: (path: string, body: unknown) => send('PUT', path, body),
    run: async (skill: string, input: unknown, headers: Record<string, string> = {}) =>
      (await send('POST', `/api/${skill}`, input, { prefer: 'wait=30', ...headers })).body,
    start: async (skill: string, input: unknown) =>
      (await send('POST', `/api/${skill}`, input)).body.job_id as string,
    jobIn: async (id: string, ...statuses: string[]) =>
      (await platform.jobIn(key, id, ...statuses)).body,
    follow: (id: string, lastEventId?: string) =>
      follow(`${platform.url}/api/jobs/${id}/events`, {
        'x-api-key': key,
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      }),
  };
}
type Client = ReturnType<typeof clientOf>;

const once = { 'idempotency-key': 'once' };
const vault = 'staged/v1.0/vault';

/** An organization in which everything has ended: what it shows must not change by the move. */
async function quietLife(platform: PlatformProcess) {
  const key = await platform.key({ organization_id: 'quiet' });
  const client = clientOf(platform, key);
  const credential = { api_key: 'sk-of-the-organization', base_url: provider.openaiBaseUrl };
  const stored = await platform.admin(
    'PUT',
    '/admin/organizations/quiet/credentials/openai',
    credential,
  );
  expect(stored.status).toBeLessThan(300);
  const { id } = await client.get(`/api/skills/${vault}`);
  await client.put(`/api/skills/${id}/config`, { SECRET: 'of-the-organization' });
  const webhook = await client.post('/api/agent-webhooks', {
    agent_id: 'default',
    url: `${receiver.origin}/quiet`,
    events: ['skill.completed', 'skill.failed'],
  });
  const trigger = await client.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'Calls',
    skill_category: 'staged',
    skill_name: 'any',
  });
  await client.post('/api/scheduled-jobs', {
    agent_id: 'default',
    skill_category: 'util',
    skill_name: 'echo',
    cron_expression: '0 0 1 1 *',
    input: { text: 'new year' },
  });
  await client.post('/api/agents', { id: 'thinker', model: 'openai/test' });
  for (const content of ['The quick brown fox', 'A fox and a "goose" \\ 狐', 'Nobody']) {
    await client.post('/api/agents/default/memories', { content, tag: 'animal' });
  }
  const said = await client.run(
    'agent/v1.0/run-task',
    { task: 'Greet' },
    { 'x-agent-id': 'thinker' },
  );
  expect(said.status).toBe('completed');
  const replayed = await client.posted('/api/util/v1.0/echo', { text: 'once' }, once);
  const talk = await client.run(play, acting({ log: 'one' }, { log: 'two' }, { progress: 0.5 }));
  await client.run('staged/v1.0/play-once', acting({ fail: { message: 'no luck' } }));
  await client.jobIn(replayed.body.job_id, 'completed');
  const stream = await client.follow(talk.job_id);
  const heard = await stream.ended;
  await waitFor(
    async () => {
      const { data } = await client.get(`/api/agent-webhooks/${webhook.id}/deliveries?limit=200`);
      return data.length === 3 && data.every((one: Body) => one.status === 'delivered');
    },
    { describe: 'three events of the quiet organization are delivered' },
  );
  return {
    key,
    token: trigger.token as string,
    webhookId: webhook.id as string,
    conversationId: said.conversation_id as string,
    replayedId: replayed.body.job_id as string,
    talkId: talk.job_id as string,
    heard,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

/** Everything that a client is shown of the organization. */
async function shown(client: Client, { webhookId }: { webhookId: string }) {
  const jobs = await client.get('/api/jobs?limit=100');
  const conversations = await client.get('/api/conversations?limit=100');
  const paths = [
    ...['/api/jobs?limit=2&offset=1', '/api/jobs?status=failed', '/api/agents', '/api/skills'],
    ...[
      '/api/scheduled-jobs',
      '/api/agent-webhooks',
      '/api/agent-triggers',
      '/api/agents/thinker/usage',
    ],
    `/api/skills/${vault}`,
    '/api/agents/default/memories?limit=100',
    '/api/agents/default/memories?q=fox',
    '/api/agents/default/memories?q=goose%20狐&tag=animal',
    `/api/agent-webhooks/${webhookId}/deliveries?limit=200`,
    ...jobs.data.flatMap(({ job_id }: Body) => [
      `/api/jobs/${job_id}`,
      `/api/jobs/${job_id}/steps`,
    ]),
    ...conversations.flatMap(({ id }: Body) => [
      `/api/conversations/${id}`,
      `/api/conversations/${id}/messages`,
      `/api/conversations/${id}/token-usage`,
    ]),
  ];
  const answers: [string, unknown][] = [
    ['jobs', jobs],
    ['conversations', conversations],
  ];
  for (const path of paths) {
    const { body, headers } = await client.answer(path);
    answers.push([path, { body, total: headers.get('x-total-count') }]);
  }
  return Object.fromEntries(answers);
}

/** An organization in the middle of its work: a webhook that fails, runs in every state. */
async function busyLife(platform: PlatformProcess) {
  receiver.answers(({ path }) => ({ status: path === '/busy' ? 500 : 200 }));
  const key = await platform.key({ organization_id: 'busy' });
  const client = clientOf(platform, key);
  const webhook = await client.post('/api/agent-webhooks', {
    agent_id: 'default',
    url: `${receiver.origin}/busy`,
    events: ['skill.completed', 'skill.failed', 'conversation.created', 'scheduled_job.completed'],
  });
  const schedule = await client.post('/api/scheduled-jobs', {
    agent_id: 'default',
    skill_category: 'util',
    skill_name: 'echo',
    cron_expression: '* * * * *',
    input: { text: 'tick' },
  });
  await client.run('util/v1.0/echo', { text: 'done' });
  const retried = await client.start(play, {
    attempts: [[{ fail: { message: 'once more' } }], [{ message: ['assistant', 'now'] }]],
    output: 'retried',
  });
  const waiting = await waitFor(
    async () => {
      const job = await client.get(`/api/jobs/${retried}`);
      return job.status === 'queued' && job.attempt === 1 ? job : null;
    },
    { describe: 'a job waits for its retry' },
  );
  const end = gate();
  const active: string[] = [];
  for (let i = 0; i < 2; i++) {
    active.push(await client.start(play, acting({ log: 'begun' }, { until: end.path })));
  }
  for (const id of active) await client.jobIn(id, 'active');
  const stream = await client.follow(active[0] as string);
  const begun = await stream.event(({ data }) => data.message === 'begun', 'the run has begun');
  stream.leave();
  const queued: string[] = [];
  for (let i = 0; i < 5; i++) {
    queued.push(await client.start('util/v1.0/echo', { text: `${i}` }));
  }
  const failed = await waitFor(
    async () => {
      const { data } = await client.get(`/api/agent-webhooks/${webhook.id}/deliveries?limit=200`);
      const pending = data.filter(
        (one: Body) => one.status === 'pending' && one.attempts.length === 1,
      );
      return pending.length >= 10 ? pending.map(({ id }: Body) => id as string) : null;
    },
    { describe: 'ten deliveries wait for their retry', deadlineMs: 20_000 },
  );
  return {
    key,
    webhookId: webhook.id as string,
    scheduleId: schedule.id as string,
    retried: { id: retried, runAt: waiting.run_at as string },
    active,
    begun,
    queued,
    failed,
    openGate: end.open,
  };
}

describe.skipIf(!here)('an embedded installation that is moved into PostgreSQL', () => {
  test('goes on there: nothing is lost, nothing comes twice, everything has its id', async () => {
    const platform = await startProcess(dataDir, environment());
    const quiet = await quietLife(platform);
    const before = await shown(clientOf(platform, quiet.key), quiet);
    const keys = await platform.admin('GET', '/admin/api-keys');
    const busy = await busyLife(platform);
    platform.signal('SIGKILL');
    await platform.exit;

    const databaseUrl = await freshDatabase();
    const { code, output } = await migrate(databaseUrl);
    expect(code, output).toBe(0);
    const encryptionKey = readFileSync(join(dataDir, 'encryption-key'), 'utf8').trim();
    expect(output).toMatch(/^jobs\s+\d+$/m);
    expect(output).toContain(`set to what is in ${join(dataDir, 'encryption-key')}`);
    expect(output).not.toContain(encryptionKey);

    const sentBefore = receiver.requests.length;
    receiver.answers({ status: 200 });
    const cluster = await startProcess(join(dataDir, 'unused'), {
      ...environment(),
      DATABASE_URL: databaseUrl,
      ENCRYPTION_KEY: encryptionKey,
    });
    const atStart = Date.now();

    // What had ended is shown as it was.
    const client = clientOf(cluster, quiet.key);
    expect(await shown(client, quiet)).toEqual(before);
    const keysNow = (await cluster.admin('GET', '/admin/api-keys')).body as Body[];
    expect(keysNow.filter(({ id }) => keys.body.some((one: Body) => one.id === id))).toEqual(
      keys.body,
    );
    const replay = await client.posted('/api/util/v1.0/echo', { text: 'once' }, once);
    expect(replay.headers.get('idempotent-replayed')).toBe('true');
    expect(replay.body.job_id).toBe(quiet.replayedId);
    const [, second] = quiet.heard;
    const rest = await (await client.follow(quiet.talkId, second?.id)).ended;
    expect(rest).toEqual(quiet.heard.slice(2));
    expect(rest.length).toBeGreaterThan(1);

    expect((await client.run(vault, {})).output).toBe('of-the-organization'.length);

    // The conversation continues, with the account that was stored.
    const asked = provider.requests.length;
    const more = await client.run(
      'agent/v1.0/run-task',
      { task: 'Greet again' },
      { 'x-agent-id': 'thinker', 'x-conversation-id': quiet.conversationId },
    );
    expect(more).toMatchObject({ status: 'completed', conversation_id: quiet.conversationId });
    expect(provider.requests[asked]?.headers['authorization']).toBe(
      'Bearer sk-of-the-organization',
    );
    expect(JSON.stringify(provider.requests[asked]?.messages)).toContain('Hello.');
    const called = await cluster.request('POST', `/api/webhooks/agent/${quiet.token}`, {
      body: { a: 1 },
    });
    expect(called.status).toBe(202);

    // What was under way goes on.
    const mine = clientOf(cluster, busy.key);
    busy.openGate();
    const stream = await mine.follow(busy.active[0] as string, busy.begun.id);
    for (const id of busy.active) {
      expect(await mine.jobIn(id, 'completed', 'failed')).toMatchObject({
        status: 'completed',
        attempt: 2,
      });
    }
    expect((await stream.ended).map(({ id }) => id)).not.toContain(busy.begun.id);
    for (const id of busy.queued) {
      expect(await mine.jobIn(id, 'completed', 'failed')).toMatchObject({
        status: 'completed',
        attempt: 1,
      });
    }
    const retried = await mine.jobIn(busy.retried.id, 'completed', 'failed');
    expect(retried).toMatchObject({ status: 'completed', attempt: 2, output: 'retried' });
    expect(Date.parse(retried.started_at)).toBeGreaterThanOrEqual(Date.parse(busy.retried.runAt));

    // The schedule fires at its next slot.
    await waitFor(
      async () => {
        const { data } = await mine.get(`/api/scheduled-jobs/${busy.scheduleId}/runs`);
        return data.find(
          ({ scheduled_for, outcome }: Body) =>
            outcome === 'fired' && Date.parse(scheduled_for) >= atStart,
        );
      },
      { describe: 'the schedule fires', deadlineMs: 75_000, everyMs: 200 },
    );
    await mine.put(`/api/scheduled-jobs/${busy.scheduleId}`, { enabled: false });

    // Every delivery arrives once, those that had failed before under the ids that they had.
    let left = '';
    const deliveries = await waitFor(
      async () => {
        const jobs = (await mine.get('/api/jobs?limit=100')).data as Body[];
        const path = `/api/agent-webhooks/${busy.webhookId}/deliveries?limit=200`;
        const { data } = await mine.get(path);
        // Each run tells that its conversation was created, that it completed, and a schedule's that too.
        const scheduled = (await mine.get('/api/jobs?trigger_type=scheduled')).total as number;
        const due = 2 * jobs.length + scheduled;
        const states = [...jobs, ...data].map(({ status }: Body) => status as string);
        left = `${data.length} of ${due}, ${states}`;
        return !/queued|active|pending|delivering/.test(left) && data.length === due
          ? (data as Body[])
          : null;
      },
      {
        describe: () => `everything is delivered; there is ${left}`,
        deadlineMs: 60_000,
        everyMs: 200,
      },
    );
    expect(deliveries.filter(({ status }) => status !== 'delivered')).toEqual([]);
    const arrived = receiver.requests
      .slice(sentBefore)
      .filter(({ path }) => path === '/busy')
      .map(({ headers }) => headers['x-service-delivery']);
    expect(arrived.toSorted()).toEqual(deliveries.map(({ id }) => id).toSorted());
    expect(arrived).toEqual(expect.arrayContaining(busy.failed));
    await cluster.stop();

    const database = await openPostgres(databaseUrl, createLogger('silent'));
    await expectConsistent(database).finally(() => database.close());
    const embedded = spawnPlatform({ ...environment(), DATA_DIR: dataDir });
    expect(await embedded.exit).toEqual({ code: 1, signal: null });
    expect(embedded.output()).toMatch(/was moved into PostgreSQL .*: start with DATABASE_URL/);
  });

  test('is there whole or not at all, whenever the move is killed, and the next try moves it', async () => {
    beginChance();
    const jobs = rounds(3_000, 20_000);
    const kills = rounds(1, 6);
    const platform = await startProcess(dataDir, environment());
    const key = await platform.key();
    const { body } = await platform.run(key, 'util/v1.0/echo', { text: 'x' });
    await platform.stop();
    storeJobs(dataDir, { jobId: body.job_id, conversationId: body.conversation_id }, jobs);
    const databaseUrl = await freshDatabase();

    let killed = 0;
    for (let kill = 0; kill < kills; kill++) {
      const command = spawnCommand('migrate-to-cluster', {
        DATA_DIR: dataDir,
        DATABASE_URL: databaseUrl,
      });
      // So many tables are reported; after the last one come the indexes and the commit.
      const target = randomInteger(0, 29);
      const lines = () => command.output().split('\n').length - 1;
      await waitFor(() => lines() >= target || command.child.exitCode !== null, {
        describe: () => `${target} tables are moved; it said: ${command.output()}`,
        deadlineMs: 60_000,
        everyMs: 1,
      });
      command.child.kill('SIGKILL');
      killed += (await command.exit).signal === 'SIGKILL' ? 1 : 0;

      const found = await countJobs(databaseUrl);
      expect([0, jobs + 1]).toContain(found);
      if (!existsSync(moveMarkerFile(dataDir))) continue;
      const embedded = spawnPlatform({ ...environment(), DATA_DIR: dataDir });
      expect(await embedded.exit, embedded.output()).toEqual({ code: 1, signal: null });
      if (found > 0) break;
    }
    expect(killed).toBeGreaterThan(0);

    if (readMoveMarker(dataDir)?.finished_at == null) {
      const { code, output } = await migrate(databaseUrl);
      expect(code, output).toBe(0);
    }
    expect(readMoveMarker(dataDir)?.finished_at).not.toBeNull();
    expect(await countJobs(databaseUrl)).toBe(jobs + 1);
    const cluster = await startProcess(join(dataDir, 'unused'), {
      ...environment(),
      DATABASE_URL: databaseUrl,
    });
    const { total } = (await cluster.request('GET', '/api/jobs', { key })).body;
    await cluster.stop();
    expect(total).toBe(jobs + 1);
  });

  test('is refused with a sentence while the platform runs, and without DATABASE_URL', async () => {
    const platform = await startProcess(dataDir, environment());

    const running = await migrate(await freshDatabase());
    const nowhere = spawnCommand('migrate-to-cluster', { DATA_DIR: dataDir });

    expect(await nowhere.exit).toEqual({ code: 1, signal: null });
    expect(nowhere.output()).toMatch(/^DATABASE_URL is not set.*\n$/);
    expect(running).toMatchObject({
      code: 1,
      output: expect.stringMatching(/^.* in use by .*\n$/),
    });
    expect((await platform.request('GET', '/health')).status).toBe(200);
    await platform.stop();
  });
});

/** How many jobs there are, or 0 while there are not even tables. */
async function countJobs(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const made = await client.query(`select to_regclass('jobs') is not null as made`);
    if (!made.rows[0].made) return 0;
    // Waits until the server has given up what a killed command was doing.
    return Number((await client.query('select count(*) as n from jobs')).rows[0].n);
  } finally {
    await client.end();
  }
}
