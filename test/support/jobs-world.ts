/**
 * The verbs of `src/core/jobs` on a real database, with everything around them in the test's hand: time,
 * executors, and a queue that remembers its hints and handles none.
 */

import type { Selectable } from 'kysely';
import { Batch } from '../../src/adapters/database/batch.ts';
import type { Database } from '../../src/adapters/database/database.ts';
import type { EventsTable, MessagesTable } from '../../src/adapters/database/tables.ts';
import { Metrics } from '../../src/adapters/http/metrics.ts';
import type { Hint, Queue } from '../../src/adapters/queue/queue.ts';
import { Expressions } from '../../src/adapters/sandbox/expressions.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { composeJobRuns, composeWaitKinds } from '../../src/apps/composition/job-runs.ts';
import { composeThinking } from '../../src/apps/composition/thinking.ts';
import type { Agents } from '../../src/core/agents/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { type Config, readConfig } from '../../src/core/config/config.ts';
import type { Context } from '../../src/core/context/context.ts';
import { RunObservers } from '../../src/core/context/run-observer.ts';
import { Conversations } from '../../src/core/conversations/conversations.ts';
import { Credentials } from '../../src/core/credentials/credentials.ts';
import type { LoadedSkills } from '../../src/core/executors/loaded-skills.ts';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { Files } from '../../src/core/files/files.ts';
import {
  type Acceptance,
  type AcceptedJob,
  Acceptor,
  type WorkRequest,
} from '../../src/core/jobs/accept.ts';
import { ChildJobs } from '../../src/core/jobs/child-jobs.ts';
import { WaitEnds } from '../../src/core/jobs/end-waits.ts';
import { type JobEvent, JobFeed, type Position } from '../../src/core/jobs/feed.ts';
import type { ClaimedJob, JobRow } from '../../src/core/jobs/jobs.store.ts';
import { Jobs } from '../../src/core/jobs/jobs.ts';
import { type JobQueue, jobQueues } from '../../src/core/jobs/queues.ts';
import type { Performer } from '../../src/core/jobs/runs/perform.ts';
import { RunningJobs } from '../../src/core/jobs/runs/running-jobs.ts';
import type { Settlement, Settler } from '../../src/core/jobs/settle.ts';
import type { Settled } from '../../src/core/jobs/settle-effects.ts';
import { StatusStream } from '../../src/core/jobs/status-events.ts';
import { beginning, jobStream } from '../../src/core/jobs/stream.ts';
import type { Admission } from '../../src/core/jobs/turns/admission.ts';
import type { JobRecovery } from '../../src/core/jobs/turns/recover.ts';
import type { JobRunners } from '../../src/core/jobs/turns/runner.ts';
import type { Turns } from '../../src/core/jobs/turns/turns.ts';
import { PromptSettings } from '../../src/core/journal/prompts/prompt-settings.ts';
import type { Memories } from '../../src/core/memories/memories.ts';
import { ProviderPaces } from '../../src/core/paces/provider-paces.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import { SkillSettings } from '../../src/core/skills/settings.ts';
import type { Caller } from '../../src/kernel/caller.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { contextOf } from './context.ts';
import type { Engine } from './databases.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';
import { recordEvents } from './outbox.ts';
import { type ScriptedPool, type ScriptedRun, scriptedPool } from './scripted-pool.ts';

export const leaseMs = 30_000;
const backoffMs = 1_000;

/** A process that runs jobs: executors of its own, and whatever it claims. */
export interface Worker {
  readonly context: Context;
  readonly pool: ScriptedPool;
  readonly admission: Admission;
  readonly performer: Performer;
  readonly running: RunningJobs;
  readonly settler: Settler;
  /** Claims the job, if it may be claimed, and runs it; resolves when it is settled. */
  perform(jobId: string): Promise<void>;
  settle(settlement: Settlement): ReturnType<Settler['settle']>;
  readonly recovery: JobRecovery;
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

/** What differs from worker to worker. */
interface WorkerOptions {
  canRun?(skill: string): boolean;
  /** How long a job waits for a skill that no live process has loaded. */
  absentMs?: number;
  /** Yields the slot of a run, as a worker in a cluster does. */
  yieldSlot?(queue: JobQueue, organizationId: string): () => void;
}

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
  readonly files: Files;
  readonly acceptor: Acceptor;
  accept(request: WorkRequest): Promise<Acceptance>;
  /** Waits for jobs that runs start. */
  readonly childJobs: ChildJobs;
  /** Of another process: it knows nothing of the runs here. */
  readonly recovery: JobRecovery;
  /** Of the process that runs the jobs. */
  readonly ownRecovery: JobRecovery;
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
  worker(name: string, options?: WorkerOptions): Worker;
  /** The events after a position; to the end of the job. */
  stream(jobId: string, after?: Position, signal?: AbortSignal): AsyncGenerator<JobEvent>;
  /** What is recorded of a job. */
  row(jobId: string): Promise<JobRow>;
  messages(job: { conversation_id: string }): Promise<Selectable<MessagesTable>[]>;
  /** The outbox, oldest first; of one job when it is given. */
  events(job?: { id: string; conversation_id: string }): Promise<Selectable<EventsTable>[]>;
}

const settings = {
  ...readConfig({}),
  jobLeaseMs: leaseMs,
  retryBackoffMs: backoffMs,
  modelWaitsMax: 0,
  workerConcurrency: 1,
  modelFirstTokenTimeoutMs: 60_000,
  modelSilenceTimeoutMs: 60_000,
  modelKeepAliveTimeoutMs: 60_000,
  agentTurnsMax: 20,
  agentTokensMax: 1e9,
  modelOutputTokens: 1_000,
  modelContextTokens: 100_000,
  modelAbilities: [],
  modelPrices: [],
};

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
    /** The accounts with providers of models; none when they are left out. */
    providers?: Config['providers'];
    /** Takes the hints; they are remembered when it is left out. */
    queue?: Queue;
    /** How many jobs of each queue are claimed as they are accepted; none when it is left out. */
    freeSlots?: () => number;
    /** The turns that offer slots instead. */
    turns?: ReadonlyMap<JobQueue, Turns>;
  } = {},
): Promise<JobsWorld> {
  const clock = options.clock ?? manualClock();
  const freeSlots = options.freeSlots ?? (() => 0);
  const database = options.database ?? (await engine.emptied());
  await recordEvents(database);
  const feed = new JobFeed();
  const hints: JobsWorld['hints'] = [];
  const queue = options.queue ?? rememberingQueue(hints);
  const observed: JobsWorld['observed'] = [];
  const observers = new RunObservers();
  observers.add({
    ended({ job, from, transition: { status }, durationMs }: Settled) {
      if (from === 'active') observed.push({ jobId: job.id, status, tookMs: durationMs });
    },
  });
  observers.add(new StatusStream(feed));
  const begun: ClaimedJob[] = [];
  const waitKinds = composeWaitKinds();
  const config = { ...settings, providers: options.providers ?? new Map() };
  const base = contextOf({ config, database, queue, clock, observers });
  const { agents, memories } = composeAgents(base);
  const apiKeys = new ApiKeys(contextOf({ database, clock }), agents);
  const skills = new SkillRegistry(base);
  const skillSettings = new SkillSettings(base, null);
  const files = new Files(base, null);
  const conversations = new Conversations(base, files);
  const credentials = new Credentials(base, null);
  const thinking = composeThinking(
    base,
    {
      ...{ agents, apiKeys, conversations, credentials, expressions: new Expressions(), skills },
      files,
      paces: new ProviderPaces(base),
      prompts: new PromptSettings(base),
    },
    () => [],
    new Metrics({ version: 'test', roles: 'all' }),
  );
  await skills.register([
    skill('echo'),
    skill('other', { maxAttempts: 2 }),
    skill('guarded', { requiredScopes: ['test', 'secret'] }),
    skill('single', { maxAttempts: 1 }),
  ]);

  const workerOf: JobsWorld['worker'] = (
    writer,
    { canRun = () => true, absentMs, yieldSlot } = {},
  ) => {
    const warnings: string[] = [];
    const log = createLogger('warn', {
      write: (line) => void warnings.push((JSON.parse(line) as { msg: string }).msg),
    });
    const pool = scriptedPool();
    const turns = options.turns ?? new Map(jobQueues.map((name) => [name, offerOf(freeSlots)]));
    const runners = new Map(
      jobQueues.map((name) => {
        const yieldOf = (id: string) => yieldSlot?.(name, id) ?? (() => {});
        // What begins is for the tests to say, so all jobs are announced to the queue.
        return [name, { yieldSlot: yieldOf, hasSlotFor: () => false }];
      }),
    );
    const context = { ...base, config: { ...config, isEmbedded: !yieldSlot }, log, writer };
    const runs = composeJobRuns(
      context,
      { agents, apiKeys, files, memories, skills, skillSettings, thinking },
      {
        executors: pool,
        loadedSkills: { canRun } as LoadedSkills,
        turns,
        runners: runners as unknown as JobRunners,
      },
      { feed, waitKinds, times: absentMs === undefined ? {} : { absentMs } },
    );
    const { admission, performer, running, settler } = runs;
    const claims = new Batch(database, (tx, ids: readonly string[]) => admission.claim(tx, ids));
    const perform = async (jobId: string) => {
      running.start(jobId);
      const job = await claims.add(jobId).catch((error: unknown) => {
        running.endStart(jobId);
        throw error;
      });
      if (job === null) running.endStart(jobId);
      else await performer.perform(job);
    };
    const begin = async (jobId: string) => {
      const ended = perform(jobId);
      return { run: await pool.begun(jobId, ended), ended };
    };
    return {
      ...runs,
      context,
      pool,
      perform,
      settle: (settlement) => settler.settle(settlement),
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
    await recordEvents(database, organizationId);
    return apiKeys.verify((await apiKeys.issue(key)).plaintext_key);
  }

  const first = workerOf('first');
  const { admission, running, settler } = first;
  const begin = { beginAccepted: (job: ClaimedJob) => void begun.push(job) };
  const beginners = new Map(jobQueues.map((name) => [name, begin]));
  const acceptorOn = (context: Context) =>
    new Acceptor(context, admission, settler, beginners as unknown as JobRunners);
  const acceptor = acceptorOn(base);
  const jobsOn = (on: Database) => {
    const context = { ...base, database: on };
    const parts = { agents, conversations, skills, settler, running, feed };
    return new Jobs(context, { ...parts, acceptor: acceptorOn(context) });
  };
  const accept = (request: WorkRequest) => acceptor.accept(request);
  const childJobs = new ChildJobs({ skills, agents, admission, acceptor });
  waitKinds.set('run', childJobs);
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
    files,
    acceptor,
    accept,
    childJobs,
    observed,
    caller,
    callerOf,
    worker: workerOf,
    recovery: workerOf('elsewhere').recovery,
    ownRecovery: first.recovery,
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

/** Ends waits whose jobs have no run in this process, and sends their hints to this queue. */
export function waitEndsOf(queue: Pick<Queue, 'sendHints'> = { sendHints() {} }): WaitEnds {
  const context = contextOf({ database: {} as Database, queue: queue as Queue });
  return new WaitEnds(context, new RunningJobs(context));
}

/** So many slots for the jobs of one transaction, of all organizations together. */
/** Slots of which none is ever taken. */
function offerOf(freeSlots: () => number): Pick<Turns, 'offerSlots' | 'giveBack'> {
  return { offerSlots: (jobs) => jobs.slice(0, freeSlots()), giveBack() {} };
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
