/**
 * The verbs of `src/jobs` on a real database, with everything around them in the test's hand: time,
 * executors, and a queue that remembers its hints and handles none.
 */
import type { Selectable } from 'kysely';
import {
  type AgentDependents,
  type Agents,
  createAgents,
  insertDefaultAgent,
} from '../../src/agents/agents.ts';
import { createJournals } from '../../src/agents/journal.ts';
import type { Thinking } from '../../src/agents/thinking.ts';
import { type ApiKeys, createApiKeys } from '../../src/api-keys/api-keys.ts';
import { type Conversations, createConversations } from '../../src/conversations/conversations.ts';
import type { Database } from '../../src/database/database.ts';
import type { EventsTable, MessagesTable } from '../../src/database/tables.ts';
import type { RunOutcome } from '../../src/executors/run.ts';
import {
  type Accept,
  type AcceptedJob,
  createAccept,
  type WorkRequest,
} from '../../src/jobs/accept.ts';
import { type AdmissionDeps, createAdmission } from '../../src/jobs/admission.ts';
import { createJobFeed, type JobEvent, type JobFeed, type Position } from '../../src/jobs/feed.ts';
import { type ClaimedJob, isHeld, type JobRow } from '../../src/jobs/jobs.store.ts';
import { createJobs, type Jobs } from '../../src/jobs/jobs.ts';
import { createPerformer, type PerformDeps, type Performer } from '../../src/jobs/perform.ts';
import { createRecovery, type Recovery } from '../../src/jobs/recover.ts';
import { createReports } from '../../src/jobs/reports.ts';
import { createRuns } from '../../src/jobs/run.ts';
import type { ScheduledRuns } from '../../src/jobs/scheduled-runs.ts';
import { createSettle, type Settle } from '../../src/jobs/settle.ts';
import { beginning, jobStream } from '../../src/jobs/stream.ts';
import type { Caller } from '../../src/kernel/caller.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { createMemories, type Memories } from '../../src/memories/memories.ts';
import { createRunMemories } from '../../src/memories/run-memory.ts';
import type { Hint, Queue } from '../../src/queue/queue.ts';
import { createSkillRegistry, type SkillRegistry } from '../../src/skills/registry.ts';
import { createReservations } from '../../src/usage/reservations.ts';
import type { Engine } from './databases.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';
import { type ScriptedPool, type ScriptedRun, scriptedPool } from './scripted-pool.ts';

/** No other slice keeps anything of an agent, or has started a run. */
export const noDependents: AgentDependents = { areThere: async () => false, async remove() {} };
const noSchedules: ScheduledRuns = {
  scheduledJobOf: async () => undefined,
  unwanted: async () => new Set(),
  async ended() {},
};
/** No run here has a model to ask. */
const noThinking: Thinking = () => {
  throw new Error('There are no models.');
};

export const leaseMs = 30_000;
const backoffMs = 1_000;

/** A process that runs jobs: executors of its own, and whatever it claims. */
export interface Worker {
  readonly pool: ScriptedPool;
  readonly performer: Performer;
  readonly settle: Settle;
  /** Lines of level warn and above. */
  readonly warnings: string[];
  /**
   * One whole attempt: claims the job, lets `act` do what the run does, ends it with `outcome`.
   * False when there was nothing to claim.
   */
  attempt(
    jobId: string,
    outcome: RunOutcome,
    act?: (run: ScriptedRun) => unknown,
  ): Promise<boolean>;
  /** Claims the job and leaves its run under way; `ended` resolves when it is settled. */
  begin(jobId: string): Promise<{ run: ScriptedRun; ended: Promise<void> }>;
}

/** What a worker may be given beside what it needs. */
type WorkerOptions = Partial<Pick<AdmissionDeps, 'isLoaded' | 'absentMs'>> &
  Pick<PerformDeps, 'yieldSlot'>;

export interface JobsWorld extends Worker {
  readonly clock: ManualClock;
  readonly database: Database;
  readonly feed: JobFeed;
  /** Jobs that were claimed as they were accepted; the test lets their runs begin. */
  readonly begun: readonly ClaimedJob[];
  /** Every hint that was sent, with its queue. */
  readonly hints: (Hint & { queue: string })[];
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  readonly memories: Memories;
  readonly apiKeys: ApiKeys;
  readonly conversations: Conversations;
  readonly accept: Accept;
  /** Of another process: it knows nothing of the runs here. */
  readonly recovery: Recovery;
  /** Of the process that runs the jobs. */
  readonly ownRecovery: Recovery;
  readonly jobs: Jobs;
  /** The same verbs on a database of which the test decides when it writes. */
  jobsOn(database: Database): Jobs;
  /** Attempts that were settled, as the metrics hear of them. */
  readonly observed: { jobId: string; status: string; tookMs: number }[];
  /** A caller of organization `default` with all scopes. */
  readonly caller: Caller;
  /** A caller of another organization, which comes into being with it. */
  callerOf(organizationId: string, scopes?: string[]): Promise<Caller>;
  /** Accepts work; what `fields` leave out is a run of test/v1.0/echo. */
  submit(fields?: Partial<WorkRequest>): Promise<AcceptedJob>;
  /** What `submit` asks for. */
  request(fields?: Partial<WorkRequest>): WorkRequest;
  /** Another process on the same database. */
  worker(name: string, more?: WorkerOptions): Worker;
  /** The events after a position; to the end of the job. */
  stream(jobId: string, after?: Position, signal?: AbortSignal): AsyncGenerator<JobEvent>;
  /** What is recorded of a job. */
  row(jobId: string): Promise<JobRow>;
  messages(job: { conversation_id: string }): Promise<Selectable<MessagesTable>[]>;
  /** The outbox, oldest first; of one job when it is given. */
  events(job?: { id: string; conversation_id: string }): Promise<Selectable<EventsTable>[]>;
}

const skill = (name: string, more = {}) => ({
  category: 'test',
  name,
  version: 'v1.0',
  displayName: name,
  description: `Does ${name}`,
  parameters: { type: 'object' },
  output: {},
  ...more,
});

export async function jobsWorld(
  engine: Engine,
  options: {
    clock?: ManualClock;
    database?: Database;
    scheduled?: ScheduledRuns;
    /** How many jobs of each queue are claimed as they are accepted; none when it is left out. */
    freeSlots?: () => number;
  } = {},
): Promise<JobsWorld> {
  const clock = options.clock ?? manualClock();
  const database = options.database ?? (await engine.fresh());
  const { scheduled = noSchedules } = options;
  const feed = createJobFeed();
  const hints: JobsWorld['hints'] = [];
  const queue = rememberingQueue(hints);
  const observed: JobsWorld['observed'] = [];
  const begun: ClaimedJob[] = [];
  const apiKeys = createApiKeys(database, clock, insertDefaultAgent);
  const agents = createAgents(database, clock, {
    ...noDependents,
    remove: (tx, organizationId, agentId) => memories.removeAll(tx, { organizationId, agentId }),
  });
  const memories = createMemories({ database, clock, agents });
  const skills = createSkillRegistry(database, clock);
  const conversations = createConversations(database);
  const journals = createJournals({
    database,
    conversations,
    reservations: createReservations(),
    clock,
    isHeld,
    scheduledJobOf: scheduled.scheduledJobOf,
  });
  await skills.register([
    skill('echo'),
    skill('other', { maxAttempts: 2 }),
    skill('guarded', { requiredScopes: ['test', 'secret'] }),
    skill('single', { maxAttempts: 1 }),
  ]);
  const common = { database, queue, feed, clock };
  const worker = {
    freeSlots: options.freeSlots ?? (() => 0),
    begin: (job: ClaimedJob) => void begun.push(job),
    leaseMs,
  };
  const accept = createAccept({ ...common, writer: 'first', worker });

  const workerOf: JobsWorld['worker'] = (writer, { yieldSlot, ...more } = {}) => {
    const warnings: string[] = [];
    const log = createLogger('warn', {
      write: (line) => void warnings.push((JSON.parse(line) as { msg: string }).msg),
    });
    const pool = scriptedPool();
    const settle = createSettle({
      ...common,
      writer,
      backoff: { baseMs: backoffMs, maxMs: 3_600_000 },
      scheduled,
      agents,
      memories,
      journals,
      observe: (job, { status }, tookMs) => void observed.push({ jobId: job.id, status, tookMs }),
    });
    const startRun = createRuns({
      executors: pool,
      skills,
      reports: createReports({ ...common, onError: (err) => log.error({ err }, 'report lost') }),
      mayCall: async (_job, name) => name === 'test/v1.0/echo',
      startMemory: createRunMemories(database, clock),
      journals,
      thinking: noThinking,
      yieldSlot: () => () => {},
      clock,
      log,
    });
    const admission = createAdmission({
      skills,
      apiKeys,
      clock,
      isLoaded: () => true,
      writer,
      leaseMs,
      ...more,
    });
    const performer = createPerformer({
      ...common,
      admission,
      startRun,
      settle,
      log,
      leaseMs,
      ...(yieldSlot === undefined ? {} : { yieldSlot }),
    });
    const begin = async (jobId: string) => {
      const ended = performer.perform(jobId);
      return { run: await pool.begun(jobId, ended), ended };
    };
    return {
      pool,
      performer,
      settle,
      warnings,
      async attempt(jobId, outcome, act) {
        const { run, ended } = await begin(jobId);
        if (run === null) return false;
        await act?.(run);
        run.end(outcome);
        await ended;
        return true;
      },
      async begin(jobId) {
        const { run, ended } = await begin(jobId);
        if (run === null) throw new Error('There was nothing to claim.');
        return { run, ended };
      },
    };
  };

  async function callerOf(organizationId: string, scopes = ['*']): Promise<Caller> {
    const key = { client_name: 'a client', scopes, organization_id: organizationId };
    return apiKeys.verify((await apiKeys.issue(key)).plaintext_key);
  }

  const first = workerOf('first');
  const recoveryOf = (renewOwn: () => Promise<void>) =>
    createRecovery({
      ...common,
      settle: first.settle,
      renewOwn,
      log: createLogger('silent'),
      leaseMs,
    });
  const jobsOn = (on: Database) =>
    createJobs({
      ...common,
      database: on,
      conversations,
      skills,
      agents,
      accept,
      writer: 'first',
      stopRun: (jobId) => first.performer.cancel(jobId),
      scheduled,
    });
  const caller = await callerOf('default');
  const request = (fields: Partial<WorkRequest> = {}): WorkRequest => ({
    organizationId: caller.organizationId,
    apiKeyId: caller.keyId,
    agentId: 'default',
    userId: 'someone',
    triggerType: 'api',
    skill: { category: 'test', name: 'echo', version: 'v1.0' },
    maxAttempts: 3,
    input: '{"a":1}',
    retryOf: null,
    ...fields,
  });
  return {
    ...first,
    clock,
    database,
    feed,
    begun,
    hints,
    skills,
    agents,
    memories,
    apiKeys,
    conversations,
    accept,
    observed,
    caller,
    callerOf,
    worker: workerOf,
    recovery: recoveryOf(async () => {}),
    ownRecovery: recoveryOf(() => first.performer.renew()),
    jobs: jobsOn(database),
    jobsOn,

    request,

    async submit(fields = {}) {
      const acceptance = await accept(request(fields));
      if ('job' in acceptance) return acceptance.job;
      throw new Error(`It was not accepted: ${acceptance.kind}.`);
    },

    stream: (jobId, after = beginning, signal = new AbortController().signal) =>
      jobStream({ database, feed }, 'default', jobId, after, signal),

    row: (jobId) =>
      database.read.kysely
        .selectFrom('jobs')
        .selectAll()
        .where('id', '=', jobId)
        .executeTakeFirstOrThrow(),

    messages: ({ conversation_id }) =>
      database.read.kysely
        .selectFrom('messages')
        .selectAll()
        .where('conversation_id', '=', conversation_id)
        .orderBy('id')
        .execute(),

    async events(job) {
      const rows = await database.read.kysely
        .selectFrom('events')
        .selectAll()
        .orderBy('seq')
        .execute();
      if (job === undefined) return rows;
      return rows.filter(({ data }) => data.includes(job.id) || data.includes(job.conversation_id));
    },
  };
}

function rememberingQueue(hints: JobsWorld['hints']): Queue {
  return {
    sendHints(queue, sent) {
      hints.push(...sent.map((hint) => ({ ...hint, queue })));
    },
    consume() {
      throw new Error('This queue handles nothing.');
    },
    isRunningLow: () => true,
    isConnected: () => true,
    async close() {},
  };
}

/** Outcomes of runs. */
export const completed = (output: unknown = { done: true }): RunOutcome => ({
  kind: 'completed',
  output: JSON.stringify(output),
});
export const failed = (more: { retryable?: boolean; message?: string } = {}): RunOutcome => ({
  kind: 'failed',
  code: 'skill_execution_failed',
  message: 'it broke',
  retryable: true,
  ...more,
});
