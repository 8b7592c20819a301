/**
 * `npm run bench -- --explain`: that no list and no lookup reads more than it shows. A private
 * PostgreSQL is filled (`explain-fill.ts`), then the platform's own routes, sweeps and retention run
 * in this process, and the server tells the plan of every statement that they sent
 * (`explain-plans.ts`). Prints a table; ends with 1 where a table was scanned, or an answer took long.
 */

import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { Database, Transaction } from '../src/adapters/database/database.ts';
import { openPostgres } from '../src/adapters/database/postgres.ts';
import { WatchedWrites } from '../src/adapters/database/watched-writes.ts';
import { Health } from '../src/adapters/http/health.ts';
import { MemoryRateLimiter } from '../src/adapters/http/rate-limit.ts';
import { createServer, type Server } from '../src/adapters/http/server.ts';
import { OpenStreams } from '../src/adapters/http/streams.ts';
import { GaugeReader } from '../src/apps/composition/gauges.ts';
import type { Parts } from '../src/apps/composition/parts.ts';
import { registerRoutes } from '../src/apps/composition/routes.ts';
import { composeSlices, type Slices } from '../src/apps/composition/slices.ts';
import { readConfig } from '../src/core/config/config.ts';
import { endConversations } from '../src/core/conversations/conversations.store.ts';
import { findEndedBatches } from '../src/core/jobs/batches/batches.store.ts';
import { listDescendants, lockFamilies } from '../src/core/jobs/families.store.ts';
import { takeIdempotencyKeys } from '../src/core/jobs/idempotency.store.ts';
import { renewLeases } from '../src/core/jobs/leases.store.ts';
import { findManyJobs } from '../src/core/jobs/many-jobs/many-jobs.store.ts';
import { deleteExpired } from '../src/core/jobs/retention.ts';
import { settleJobs } from '../src/core/jobs/settle.store.ts';
import { claimJobs } from '../src/core/jobs/turns/admission.store.ts';
import { findDueOrganizations, findTurns } from '../src/core/jobs/turns/turns.store.ts';
import { deleteOldUsage } from '../src/core/usage/usage.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { notFound } from '../src/kernel/errors.ts';
import { newId } from '../src/kernel/ids.ts';
import { createLogger } from '../src/kernel/log.ts';
import { removeApprovals } from '../src/platform/approvals/approvals.ts';
import { Reloads } from '../src/platform/reloads/reload-turns.ts';
import { deleteOldEvents } from '../src/platform/run-events/retention.ts';
import { RunEvents } from '../src/platform/run-events/run-events.ts';
import { removeUntakeable } from '../src/platform/run-events/untakeable.ts';
import { forgetJobs } from '../src/platform/run-events/waits.store.ts';
import { deleteExpiredRuns } from '../src/platform/schedules/schedules.ts';
import { deleteOldStatistics } from '../src/platform/statistics/statistics.ts';
import { addCalls } from '../src/platform/triggers/calls.store.ts';
import { deleteExpiredDeliveries } from '../src/platform/webhooks/retention.ts';
import { contextOf } from '../test/support/context.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { scriptedPool } from '../test/support/scripted-pool.ts';
import { agentOfMemories, fill, large, type Size } from './explain-fill.ts';
import { type Executed, explainSessions, followLog, pagesOf, scansOf } from './explain-plans.ts';
import { median } from './load.ts';
import { temporaryDirectory } from './server.ts';

/** So often is each thing done: the server keeps the plan of a prepared statement after five times. */
const times = 8;
const owedMs = 20;
/** Rows that one answer may look at; what has to skip a million says so. */
const rowsMax = 50_000;
/** A table of so many rows may not be scanned. */
const bigTable = 1_000;

const day = 24 * 60 * 60 * 1000;
const adminSecret = 'the-admin-secret-of-the-explain';

/** How a job under its first claim is settled. */
const completed = {
  epoch: 1,
  status: 'completed',
  output: '{}',
  error: null,
  run_at: null,
  due_at: null,
  refund: 0,
  deaths: 0,
  active_ms: 0,
  cancelling: 0,
} as const;

/** Something that the platform does, and how it is called in the table. */
interface Act {
  readonly name: string;
  readonly detail: string;
  run(): Promise<unknown>;
  /** Done once: it changes what there is. */
  readonly once?: boolean;
  /** Tables of which it has to see every row. */
  readonly mayScan?: readonly string[];
  /** Why it may read more than others, or take longer. */
  readonly excused?: string;
}

interface Seen {
  readonly act: Act;
  readonly ms: number;
  readonly rows: number;
  readonly pages: number;
  readonly plan: string;
  readonly faults: readonly string[];
}

/** Runs everything; true when nothing was found. `file` takes the table. */
export async function explain(size: Size, file: string | null): Promise<boolean> {
  const server = await startPostgres();
  const dataDir = temporaryDirectory();
  try {
    const url = await server.createDatabase();
    await fill(url, size);
    await explainSessions(url);
    const database = await openPostgres(url, createLogger('warn'));
    const follow = followLog(join(server.socketDirectory, 'log'));
    const tables = await tableSizes(database);
    const platform = await compose(database, dataDir);
    const seen: Seen[] = [];
    for (const act of await acts(database, platform)) {
      seen.push(await watch(act, follow, tables));
      const last = seen.at(-1) as Seen;
      console.error(
        `${last.ms.toFixed(1).padStart(8)} ms ${String(last.rows).padStart(8)} rows  ${act.name} ${act.detail} ${last.faults.join('; ')}`,
      );
    }
    await platform.server.close();
    await platform.slices.webhooks.sender.close();
    await database.close();
    const text = report(seen, size);
    console.log(text);
    if (file !== null) writeFileSync(file, text);
    return seen.every(({ faults }) => faults.length === 0);
  } finally {
    await server.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function tableSizes(database: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await database.read.kysely
    .withTables<{ pg_class: { relname: string; reltuples: number } }>()
    .selectFrom('pg_class')
    .select(['relname', 'reltuples'])
    .execute();
  return new Map(rows.map(({ relname, reltuples }) => [relname, reltuples]));
}

interface Platform {
  readonly server: Server;
  readonly slices: Slices;
  /** A key of an organization. */
  key(organizationId: string): Promise<string>;
}

/** The platform without what it does by itself: nothing happens that is not asked for. */
async function compose(database: Database, dataDir: string): Promise<Platform> {
  const log = createLogger('silent');
  const parts: Parts = {
    config: readConfig({ PORT: '0', DATA_DIR: dataDir, ADMIN_SECRET: adminSecret }),
    version: 'explain',
    adminSecret,
    encryptionKey: Buffer.alloc(32, 1),
    database,
    queue: {
      sendHints() {},
      consume() {
        throw new Error('Nothing runs here.');
      },
      isRunningLow: () => true,
      isConnected: () => true,
      async close() {},
    },
    cluster: null,
    executors: { ...scriptedPool(), definitions: [] } as never,
    log,
  };
  const slices = await composeSlices(parts, systemClock, 'explain');
  const server = createServer(log, slices.metrics.http, {
    perAddress: 1,
    stallMs: 1_000,
    answerMs: 1_000,
    uploadMs: 1_000,
    unreadBytes: 1,
  });
  const health = new Health([], systemClock, log);
  const reloads = new Reloads(slices.context, slices.processes.local, null, null);
  const writes = new WatchedWrites(parts.database);
  const waiting = { dispatcher: slices.webhooks.dispatcher, embeddings: null, writes };
  const gauges = new GaugeReader(parts, systemClock, waiting, () => 1);
  registerRoutes(server, {
    ...{ parts, slices, clock: systemClock },
    state: { reloads, health, gauges, stopping: new AbortController().signal },
    http: {
      limiter: new MemoryRateLimiter(systemClock),
      streams: new OpenStreams({ perKey: 1, perOrganization: 1, perAddress: 1 }, null),
      document: async () => ({ bytes: Buffer.alloc(0), etag: '' }),
      unmatched: () => notFound('Route'),
    },
  });
  health.stop();
  return {
    server,
    slices,
    async key(organizationId) {
      const fields = { client_name: 'explain', scopes: ['*'], rate_limit: 10_000 };
      const { plaintext_key } = await slices.apiKeys.issue({
        ...fields,
        organization_id: organizationId,
      });
      return plaintext_key;
    },
  };
}

async function watch(
  act: Act,
  follow: () => Executed[],
  tables: ReadonlyMap<string, number>,
): Promise<Seen> {
  let executed: Executed[] = [];
  const took: number[] = [];
  follow();
  for (let i = 0; i < (act.once ? 1 : times); i++) {
    await act.run();
    executed = follow();
    took.push(executed.reduce((sum, { ms }) => sum + ms, 0));
  }
  // Each batch of a deletion is a statement of its own, and it is the longest that counts.
  const ms = act.once ? most(executed.map((one) => one.ms)) : median(took);
  const scans = executed.flatMap(({ plan }) => scansOf(plan));
  const rows = act.once
    ? most(executed.map(({ plan }) => sum(scansOf(plan).map((scan) => scan.rows))))
    : sum(scans.map((scan) => scan.rows));
  const whole = scans.filter(
    ({ node, table }) =>
      node === 'Seq Scan' && (tables.get(table) ?? 0) >= bigTable && !act.mayScan?.includes(table),
  );
  const faults = [
    ...whole.map(({ table }) => `scans ${table}`),
    ...(ms > owedMs && act.excused === undefined ? ['slow'] : []),
    ...(rows > rowsMax && act.excused === undefined ? ['reads many'] : []),
    ...(executed.length === 0 ? ['no statement was seen'] : []),
  ];
  const used = [...new Set(scans.map(({ node, table, index }) => shortPlan(node, table, index)))];
  const pages = sum(executed.map(({ plan }) => pagesOf(plan)));
  return { act, ms, rows, pages, plan: used.join(', '), faults };
}

function shortPlan(node: string, table: string, index: string | undefined): string {
  const kind = node.replace(' Scan', '').replace(' Heap', '');
  return index ? `${kind} ${index}` : `${kind} ${table}`;
}

const most = (numbers: readonly number[]) => numbers.reduce((all, one) => Math.max(all, one), 0);
const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

/** Everything that reads lists or looks something up, in the words of its routes. */
async function acts(database: Database, { server, slices, key }: Platform): Promise<Act[]> {
  const keys = new Map<string, string>();
  for (const id of [large, 'medium', 'small']) keys.set(id, await key(id));
  const { kysely } = database.read;
  const first = async (organization: string) =>
    kysely
      .selectFrom('jobs')
      .select(['id', 'conversation_id'])
      .where('organization_id', '=', organization)
      .orderBy('id')
      .executeTakeFirstOrThrow();
  const job = await first(large);
  const middle = await kysely
    .selectFrom('jobs')
    .select(['id', 'conversation_id'])
    .where('organization_id', '=', large)
    .where('status', '=', 'completed')
    .orderBy('id', 'desc')
    .offset(5_000)
    .executeTakeFirstOrThrow();
  const webhook = await kysely
    .selectFrom('webhook_delivery_counts')
    .select('webhook_id')
    .orderBy('count', 'desc')
    .executeTakeFirstOrThrow();
  const schedule = await kysely
    .selectFrom('scheduled_jobs')
    .select('id')
    .where('organization_id', '=', large)
    .orderBy('id')
    .executeTakeFirstOrThrow();
  const triggers = await kysely
    .selectFrom('agent_triggers')
    .select('id')
    .where('organization_id', '=', large)
    .limit(50)
    .execute();
  const trigger = triggers[0] as { id: string };
  const calls = triggers.map(({ id }) => ({
    ...{ trigger_id: id, id: newId(), received_at: Date.now(), duration_ms: 3, status: 202 },
    ...{ error: null, message: null, job_id: null, event_id: null, replayed: 0, body_bytes: 100 },
  }));
  const steps = await kysely
    .selectFrom('job_steps')
    .select('job_id')
    .where('n', '=', 2000)
    .executeTakeFirstOrThrow();
  const memory = await kysely
    .selectFrom('memories')
    .select('id')
    .orderBy('seq')
    .executeTakeFirstOrThrow();
  const idsIn = async (status: 'queued' | 'active' | 'waiting') => {
    const found = kysely.selectFrom('jobs').select(['id', 'conversation_id']).limit(50);
    return await found.where('status', '=', status).execute();
  };
  const running = await idsIn('active');
  const active = running.map(({ id }) => id);
  const conversationIds = running.map(({ conversation_id }) => conversation_id);
  const queued = (await idsIn('queued')).map(({ id }) => id);
  const waiting = (await idsIn('waiting')).map(({ id }) => id);
  const { parent_job_id: parent } = await kysely
    .selectFrom('jobs')
    .select(sql<string>`parent_job_id`.as('parent_job_id'))
    .where('parent_job_id', 'is not', null)
    .where('organization_id', '=', large)
    .executeTakeFirstOrThrow();
  const sendIn = (tx: Transaction, eventKey: string) =>
    new RunEvents(
      contextOf({ database: { ...database, write: (unit) => unit(tx) }, clock: systemClock }),
      slices.jobs.waitEnds,
    ).send(
      { organizationId: large, owner: 'key' },
      { event: 'order.paid', key: eventKey, jobId: null, data: 1 },
    );
  const idempotencyKeys = active.map((id, i) => ({
    owner: 'key',
    idempotency_key: `key ${i * 20}`,
    fingerprint: 'f',
    job_id: id,
    created_at: Date.now(),
  }));

  const get = (path: string, query = '', more: Partial<Act> & { of?: string } = {}): Act => {
    const { of = large, ...rest } = more;
    return {
      name: `GET ${path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, ':id')}`,
      detail: `${query}${of === large ? '' : ` (${of} organization)`}`,
      async run() {
        const headers = path.startsWith('/admin')
          ? { 'x-admin-secret': adminSecret }
          : { 'x-api-key': keys.get(of) ?? '' };
        const answer = await server.inject({ url: `${path}${query && `?${query}`}`, headers });
        if (answer.statusCode >= 400)
          throw new Error(`${path}: ${answer.statusCode} ${answer.body}`);
      },
      ...rest,
    };
  };
  const task = (detail: string, run: () => Promise<unknown>, more: Partial<Act> = {}): Act => ({
    name: 'task',
    detail,
    run,
    ...more,
  });
  const daysAgo = (days: number) => new Date(Date.now() - days * day).toISOString();
  const skips = { excused: 'skips what lies before the page' };
  const counts = { excused: 'counts what there is' };
  const clock = systemClock;
  const parts = { database, clock, writer: 'explain', readTo: null, removeOfJobs: removeApprovals };
  const undone = (detail: string, run: (tx: Transaction) => Promise<unknown>) =>
    task(`${detail} (then taken back)`, async () => {
      const enough = new Error('enough');
      const write = database.write(async (tx) => {
        await run(tx);
        throw enough;
      });
      await write.catch((error) => {
        if (error !== enough) throw error;
      });
    });
  const jobFilters = [
    '',
    'limit=200',
    ...['queued', 'active', 'waiting', 'completed', 'failed', 'cancelled'].map(
      (one) => `status=${one}`,
    ),
    ...['agent-0', 'agent-7', 'agent-1999', 'agent-old', 'agent-forgotten', 'nobody'].map(
      (one) => `agent_id=${one}`,
    ),
    'skill_category=text',
    'skill_category=rare',
    'skill_name=skill-3',
    'skill_name=skill-rare',
    'skill_category=text&skill_name=skill-4&skill_version=v2.0',
    'skill_category=rare&skill_name=skill-rare&skill_version=v1.0',
    'skill_version=v3.0',
    ...['api', 'scheduled', 'webhook'].map((one) => `trigger_type=${one}`),
    'agent_id=agent-0&status=failed',
    'agent_id=agent-old&status=failed',
    'agent_id=agent-old&status=completed',
    'agent_id=agent-forgotten&status=completed',
    'agent_id=agent-1999&status=failed&trigger_type=webhook',
    'agent_id=agent-0&status=queued',
    'agent_id=agent-0&status=active',
    'status=cancelled&trigger_type=scheduled',
    'skill_category=rare&status=failed',
    'trigger_type=webhook&skill_name=skill-3&status=completed',
  ];
  const conversationFilters = [
    '',
    'limit=200',
    ...['active', 'completed', 'failed'].map((one) => `status=${one}`),
    ...['agent-0', 'agent-1999', 'agent-old', 'agent-forgotten', 'nobody'].map(
      (one) => `agent_id=${one}`,
    ),
    ...['api', 'scheduled', 'webhook'].map((one) => `trigger_type=${one}`),
    'agent_id=agent-0&status=failed',
    'agent_id=agent-old&status=failed',
    'agent_id=agent-0&status=active',
    'agent_id=agent-forgotten&trigger_type=api',
    'status=failed&trigger_type=webhook',
    'user_id=user-17',
    'user_id=somebody',
    'user_id=nobody',
    'user_id=user-17&status=failed',
    'user_id=user-17&agent_id=agent-1999',
  ];
  const memoriesPath = `/api/agents/${agentOfMemories}/memories`;
  return [
    ...jobFilters.map((query) => get('/api/jobs', query)),
    get('/api/jobs', 'skill_version=v1.0', {
      excused: 'a tenth of the jobs, all long ago, of thousands of kinds',
    }),
    get('/api/jobs', 'include=timing'),
    get('/api/jobs', `created_after=${daysAgo(0.25)}`),
    get('/api/jobs', `created_after=${daysAgo(0.25)}&status=failed&agent_id=agent-0`),
    get('/api/jobs', `created_after=${daysAgo(0.5)}&created_before=${daysAgo(0.25)}`),
    get('/api/jobs', `created_before=${daysAgo(2)}`),
    get('/api/jobs', `created_before=${daysAgo(2)}&offset=9950`),
    get('/api/jobs', `created_after=${daysAgo(10)}`),
    get('/api/jobs', `created_after=${daysAgo(10)}&skill_category=rare`),
    get('/api/jobs', `created_after=${daysAgo(10)}&skill_name=skill-rare`),
    get('/api/jobs', `created_after=${daysAgo(10)}&status=completed`),
    get('/api/jobs', `created_after=${daysAgo(10)}&agent_id=agent-old&status=failed`),
    get('/api/jobs', 'created_after=2000-01-01T00:00:00Z'),
    get('/api/jobs', 'created_after=2000-01-01T00:00:00Z&status=failed'),
    get('/api/jobs', `created_after=${daysAgo(15)}`, { of: 'small' }),
    get('/api/jobs', `conversation_id=${middle.conversation_id}`),
    get('/api/jobs', `conversation_id=${job.conversation_id}`),
    get('/api/jobs', '', { of: 'small' }),
    get('/api/jobs', 'status=completed', { of: 'small' }),
    get('/api/jobs', 'trigger_type=webhook', { of: 'medium' }),
    get('/api/jobs', 'status=failed', { of: 'medium' }),
    get('/api/jobs', 'status=failed&trigger_type=webhook', { of: 'medium' }),
    get('/api/jobs', 'offset=10000'),
    get('/api/jobs', 'offset=600000', skips),
    get('/api/jobs', 'status=completed&offset=600000', skips),
    get('/api/jobs', 'agent_id=agent-0&offset=300000', skips),
    get('/api/jobs', 'status=failed&offset=15000', skips),
    get(`/api/jobs/${middle.id}`),
    get(`/api/jobs/${job.id}`),
    get(`/api/jobs/${middle.id}`, 'include=origin'),
    get(`/api/jobs/${middle.id}/deliveries`),
    get(`/api/jobs/${steps.job_id}/steps`),
    get(`/api/jobs/${steps.job_id}/steps`, 'offset=1950'),
    ...conversationFilters.map((query) => get('/api/conversations', query)),
    get('/api/conversations', 'include=opening'),
    get('/api/conversations', 'user_id=everyone', counts),
    get('/api/conversations', 'user_id=everyone&status=failed', counts),
    get('/api/conversations', '', { of: 'small' }),
    get('/api/conversations', 'status=failed', { of: 'medium' }),
    get('/api/conversations', 'trigger_type=webhook', { of: 'medium' }),
    get('/api/conversations', 'offset=600000', skips),
    get('/api/conversations', 'agent_id=agent-0&offset=300000', skips),
    get(`/api/conversations/${middle.conversation_id}`),
    get(`/api/conversations/${job.conversation_id}`),
    get(`/api/conversations/${middle.conversation_id}/messages`),
    get(`/api/conversations/${job.conversation_id}/messages`, '', counts),
    get(`/api/conversations/${job.conversation_id}/messages`, 'role=tool', counts),
    get(`/api/conversations/${job.conversation_id}/messages`, 'offset=9900', counts),
    get(`/api/conversations/${job.conversation_id}/token-usage`, '', {
      excused: 'shows every message',
    }),
    get(memoriesPath),
    get(memoriesPath, 'tag=tag-3'),
    get(memoriesPath, 'tag=none'),
    get(memoriesPath, 'q=word19000'),
    get(memoriesPath, 'q=tenth', { excused: 'ranks what it finds' }),
    get(memoriesPath, 'q=even%20tenth&tag=tag-4', { excused: 'ranks what it finds' }),
    get(memoriesPath, 'offset=90000', skips),
    get(`${memoriesPath}/${memory.id}`),
    get('/api/agents'),
    get('/api/agents', 'offset=4900'),
    get('/api/agents/agent-17'),
    get('/api/scheduled-jobs'),
    get('/api/scheduled-jobs', '', { of: 'small' }),
    get(`/api/scheduled-jobs/${schedule.id}`),
    get(`/api/scheduled-jobs/${schedule.id}/runs`, '', counts),
    get(`/api/scheduled-jobs/${schedule.id}/runs`, 'offset=80000', skips),
    get('/api/agent-webhooks'),
    get(`/api/agent-webhooks/${webhook.webhook_id}`),
    get(`/api/agent-webhooks/${webhook.webhook_id}/deliveries`),
    get(`/api/agent-webhooks/${webhook.webhook_id}/deliveries`, 'offset=350000', skips),
    get('/api/agent-triggers'),
    get('/api/agent-triggers', 'offset=900'),
    get(`/api/agent-triggers/${trigger.id}`),
    get(`/api/agent-triggers/${trigger.id}/calls`),
    get(`/api/agent-triggers/${trigger.id}/calls`, 'offset=150'),
    get('/api/agents/agent-17/usage'),
    get('/api/agents/agent-17/budget'),
    get('/admin/usage'),
    get('/admin/usage', `organization_id=${large}`),
    get('/admin/usage', 'organization_id=org-270'),
    get('/admin/usage', 'owner_kind=agent&offset=5000'),
    get('/admin/api-keys', '', { excused: 'shows every key' }),
    get(`/admin/organizations/${large}/credentials`),
    get('/metrics'),
    get('/api/approvals'),
    get('/api/approvals', 'status=pending'),
    get('/api/approvals', 'status=approved'),
    get('/api/approvals', `job_id=${parent}`, { detail: 'job_id=:id' }),
    get('/api/approvals', 'agent_id=agent-3&status=pending'),
    get('/api/jobs', `parent_job_id=${parent}`, { detail: 'parent_job_id=:id' }),
    get(`/api/jobs/${parent}/steps`, 'status=waiting'),
    get('/api/statistics'),
    get('/api/statistics', 'window=day'),
    get('/api/statistics', '', { of: 'small' }),
    get('/api/skills/text/v1.0/skill-1/usages'),
    get('/api/skills/text/v1.0/skill-1/usages', '', { of: 'small' }),
    task('sweep of jobs', () => slices.jobs.recovery.sweep()),
    task('sweep of deliveries', () => slices.webhooks.recovery.sweep()),
    task('dispatch of events', () => slices.webhooks.dispatcher.dispatch()),
    task('tick of schedules', () => slices.tick.run()),
    task('memories of deleted agents', () => slices.memories.purge()),
    task('undelivered events', () => slices.runEvents.handover.handOverAll()),
    undone('an event that one run waits for', (tx) => sendIn(tx, 'order-2')),
    {
      ...undone('an event that 500 runs wait for', (tx) => sendIn(tx, 'all')),
      excused: 'ends as many waits as one transaction may',
    },
    undone('an event that no run waits for', (tx) => sendIn(tx, 'unknown')),
    undone('end of 50 waiting jobs', (tx) => forgetJobs(tx, waiting)),
    undone('children of a waiting job, locked and listed', async (tx) => {
      await lockFamilies(tx, [parent]);
      await listDescendants(tx, [parent]);
    }),
    task('events that no job can take', () => removeUntakeable(database), {
      once: true,
    }),
    task('retention of events', () => deleteOldEvents(database, clock), { once: true }),
    undone('claim of 50 jobs', (tx) =>
      claimJobs(tx, queued, { by: 1, now: clock.now(), leaseUntil: clock.now() }),
    ),
    undone('the due jobs of one organization, in turns', (tx) =>
      findTurns(
        tx,
        'skill-execution',
        [{ organization_id: large, after_keys: [], isLowerDue: true }],
        {
          ...{ now: clock.now(), dueBy: clock.now(), ofGroup: 64 },
        },
      ),
    ),
    task('the organizations of which jobs are due', () =>
      findDueOrganizations(database.read, 'skill-execution', {
        ...{ after: '', dueBy: clock.now(), limit: 2_000 },
      }),
    ),
    ...(['open', 'retryable'] as const).map((kind) =>
      task(`the next of many ${kind} jobs by a filter that names few`, () => {
        const filters = { skill_name: 'skill-rare' };
        const asked = { kind, organizationId: large, filters, acceptedBy: clock.now() };
        return findManyJobs(database.read, asked, '', 500);
      }),
    ),
    task('the batches of which all jobs have ended', () =>
      findEndedBatches(database.read, '', 1_000),
    ),
    undone('renewal of 50 leases', (tx) =>
      renewLeases(
        tx,
        active.map((id) => ({ id, epoch: 1 })),
        clock.now(),
      ),
    ),
    undone('settlement of 50 jobs', (tx) =>
      settleJobs(
        tx,
        active.map((id) => ({ ...completed, id, finished_at: clock.now() })),
      ),
    ),
    undone('end of 50 conversations', (tx) =>
      endConversations(
        tx,
        conversationIds.map((id) => ({ id, status: 'completed' })),
        clock.now(),
        'bench',
      ),
    ),
    undone('taking 50 idempotency keys', (tx) =>
      takeIdempotencyKeys(tx, idempotencyKeys, clock.now() - day),
    ),
    task('retention of jobs', () => deleteExpired(parts, 19.99), {
      once: true,
      mayScan: ['job_counts', 'conversation_counts'],
      excused: 'takes over the counts of processes that are gone',
    }),
    task('retention of scheduled runs', () => deleteExpiredRuns(database, systemClock, 19.99), {
      once: true,
    }),
    task('retention of deliveries', () => deleteExpiredDeliveries(parts, 19.99), {
      once: true,
    }),
    undone('writing the calls of 50 triggers', (tx) => addCalls(tx, calls, 200)),
    task('retention of calls of triggers', () => slices.triggerCalls.deleteOld(), { once: true }),
    task('retention of usage', () => deleteOldUsage(parts), { once: true }),
    task('retention of statistics', () => deleteOldStatistics(parts), { once: true }),
  ];
}

function report(seen: readonly Seen[], size: Size): string {
  const rows = seen.map(({ act, ms, rows: read, pages, plan, faults }) =>
    [
      `\`${act.name}\` ${act.detail}`.trim(),
      plan,
      String(read),
      String(pages),
      ms.toFixed(1),
      [...faults, ...(act.excused === undefined ? [] : [act.excused])].join('; '),
    ].join(' | '),
  );
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  return `# Query plans

The plan, rows and time of every request and background task in a large PostgreSQL database, to find queries that read
too much.

The database has ${size.jobs} jobs with their conversations and messages, ${size.jobs / 2} deliveries,
${size.jobs / 4} runs of schedules, ${size.memories} memories and the other rows of a busy platform. Seven in
ten jobs belong to the organization of the requests; another organization has 25 jobs. Some agents, skills and
statuses are frequent, some are rare, some are in old jobs only.

Each line is a real request or background task: \`auto_explain\` logged the plans of the platform's own
statements, on its own connections, including the cached plans of prepared statements. **rows** are all
examined rows, also those that a filter removed; **ms** is the server's time for all statements of one
response, the median of ${times} (for a task that deletes, the time of its longest statement). The command fails if a
line reads more than ${rowsMax} rows, takes more than ${owedMs} ms or scans a table of more than ${bigTable} rows,
unless the last column gives a reason.

Known costs: a page far back reads all rows before it, about 0.15 µs a row with an
index-only scan and 0.6 µs if a filter examines the rows. The conversations of a user
are counted at 0.2 µs each. Filters for old jobs look up each kind of
job (an agent, skill, version, trigger and status) separately, at 12 µs each.

Written by \`npm run bench -- --explain --record\`, ${new Date().toISOString().slice(0, 10)}, commit ${commit}.

| request or task | plan | rows | pages | ms | |
|---|---|--:|--:|--:|---|
${rows.map((row) => `| ${row} |`).join('\n')}
`;
}
