/** Jobs, put together: how work gets in, how it runs, how it ends. */
import { randomInt } from 'node:crypto';
import type { WaitKind } from '../../adapters/database/tables.ts';
import type { Consumer } from '../../adapters/queue/queue.ts';
import { createYieldSlot } from '../../adapters/queue/yielding.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import type { Conversations } from '../../core/conversations/conversations.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import { createAccept } from '../../core/jobs/accept.ts';
import { type Admission, createAdmission } from '../../core/jobs/admission.ts';
import { createChildJobs } from '../../core/jobs/child-jobs.ts';
import { createEndWaits } from '../../core/jobs/end-waits.ts';
import { createExecute } from '../../core/jobs/execute.ts';
import { createJobFeed, createSharedJobFeed, type JobFeed } from '../../core/jobs/feed.ts';
import type { ClaimedJob, NewJob } from '../../core/jobs/jobs.store.ts';
import { createJobs, type Jobs } from '../../core/jobs/jobs.ts';
import { findUnbegunJobs, isHeld } from '../../core/jobs/leases.store.ts';
import { createMissedEnds } from '../../core/jobs/missed-ends.ts';
import { createPerformer, type Performer } from '../../core/jobs/perform.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import { giveBackUnbegun, JobRecovery } from '../../core/jobs/recover.ts';
import { createReports } from '../../core/jobs/reports.ts';
import { type EndJobsOfKey, endJobsOfRevokedKey } from '../../core/jobs/revoked-key.ts';
import { createRuns, type StartRun } from '../../core/jobs/run.ts';
import { createSettle, type Settle } from '../../core/jobs/settle.ts';
import { publishUnconfirmed, type Settled } from '../../core/jobs/settle-effects.ts';
import { abandonWaits } from '../../core/journal/abandoned-waits.ts';
import { openJournal } from '../../core/journal/journal.ts';
import { sleep } from '../../core/journal/sleep.ts';
import type { WaitKinds, WaitKindVerbs } from '../../core/journal/wait-kinds.ts';
import { UnconfirmedWrites } from '../../core/leases/unconfirmed-writes.ts';
import type { Memories } from '../../core/memories/memories.ts';
import { createRunMemories } from '../../core/memories/run-memory.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import type { SkillSettings } from '../../core/skills/settings.ts';
import type { Bus } from '../../kernel/bus.ts';
import type { QueueName } from '../../kernel/queues.ts';
import { approvalWaits } from '../../platform/approvals/approval-waits.ts';
import { eventWaits } from '../../platform/run-events/event-waits.ts';
import { scheduledRuns } from '../../platform/schedules/run-ends.ts';
import type { ClusterTimes } from './cluster-times.ts';
import type { ComposedThinking } from './thinking.ts';

/** After a key was revoked: the time until all processes refuse it. */
const lateJobsMs = 2_000;
/** Longest wait between retries of one job. */
const backoffMaxMs = 60 * 60 * 1000;

/** Called after the commits that accept, begin and end jobs. */
export interface JobObserver {
  accepted(jobs: readonly NewJob[]): void;
  /** A worker here has claimed a job from a queue. */
  claimed(): void;
  /** A job begins here, from a queue or when it was accepted. */
  begun(): void;
  /** An attempt has ended, or a job was cancelled while it waited. */
  settled(settled: Settled): void;
  /** Attempts were lost with their processes. */
  leasesLost(attempts: number): void;
}

/** What jobs need to run here. */
export interface JobRunsDeps {
  readonly base: Context;
  readonly config: Pick<
    Config,
    'isEmbedded' | 'jobLeaseMs' | 'retryBackoffMs' | 'modelWaitsMax' | 'workerConcurrency'
  > & { readonly times: ClusterTimes };
  /** Of other slices. */
  readonly slices: {
    readonly agents: Agents;
    readonly apiKeys: Pick<ApiKeys, 'callerById'>;
    readonly memories: Memories;
    readonly skills: SkillRegistry;
    readonly skillSettings: Pick<SkillSettings, 'forRun'>;
    readonly thinking: ComposedThinking;
    /** Why the service outside that runs a skill does not any more; null for all other skills. */
    whyWithdrawn?(organizationId: string, skill: string): Promise<string | null>;
  };
  /** What this process can run. */
  readonly worker: {
    readonly executors: Pick<ExecutorPool, 'run'>;
    /** Whether they have loaded a skill, named `category/version/name`. */
    isLoaded(skill: string): boolean;
    /** The consumers by queue, once the worker has started. */
    readonly consumers: ReadonlyMap<QueueName, Pick<Consumer, 'offerSlots' | 'yieldSlot'>>;
  };
  readonly watching: JobWatching;
}

/** What is told of jobs while they run, and to whom. */
interface JobWatching {
  readonly feed: JobFeed;
  readonly waitKinds: WaitKinds;
  /** Tells other processes to stop the run of a job, and that a wait of a job has ended. */
  readonly elsewhere: { stop(jobId: string): void; wake(jobId: string): void };
  readonly observer: JobObserver;
}

/** What runs jobs in this process: performs hints, settles attempts, recovers lost ones. */
export function composeJobRuns(deps: JobRunsDeps) {
  const { base, config, slices, worker } = deps;
  const { clock, writer } = base;
  const { feed, waitKinds, elsewhere, observer } = deps.watching;
  const times = { ...config.times, leaseMs: config.jobLeaseMs };
  const { endAbandonedSteps } = slices.thinking;
  const wakeRun = (jobId: string) => {
    performer.wake(jobId);
    elsewhere.wake(jobId);
  };
  const stopRun = (jobId: string) => {
    performer.cancel(jobId);
    elsewhere.stop(jobId);
  };
  const endWaits = createEndWaits({ ...base, wakeRun });
  const observers = { feed, observe: observer.settled };
  const ends = publishUnconfirmed({ base, observers }, config.jobLeaseMs);
  const settle = createSettle({
    base,
    backoff: { baseMs: config.retryBackoffMs, maxMs: backoffMaxMs },
    slices,
    effects: { base, scheduled: scheduledRuns, endWaits, observers, unconfirmed: ends },
    ends: {
      endAbandonedSteps,
      abandonWaits: (tx, jobs) => abandonWaits({ clock, kinds: waitKinds }, tx, jobs),
      stopRun,
    },
  });
  const claimedBy = randomInt(1, 2 ** 31);
  const claims = unconfirmedClaims(deps, settle, claimedBy, (id) => performer.holds(id));
  const admission = createAdmission({
    slices,
    clock,
    worker: {
      offerSlots: (name) => worker.consumers.get(name)?.offerSlots() ?? (() => false),
      isLoaded: worker.isLoaded,
      claims: { by: claimedBy, unconfirmed: (ids) => claims.add(ids.map((id) => ({ id }))) },
    },
    // Claims and settlements would wait for each other at every count that both of them change.
    writer: config.isEmbedded ? writer : `${writer}-claims`,
    times,
  });
  const startRun = composeRunStart(deps, admission);
  const performer = createPerformer({
    base,
    verbs: { admission, settings: slices.skillSettings, startRun, settle, feed },
    leaseMs: config.jobLeaseMs,
    // SQLite has recorded the outcome of a run before another could begin.
    ...(config.isEmbedded
      ? {}
      : { yieldSlot: createYieldSlot(worker.consumers, config.workerConcurrency) }),
    observer,
  });
  const recovery = new JobRecovery(base, { settle, performer }, times, observer.leasesLost);
  const endMissed = createMissedEnds({ ...base, endWaits });
  const unconfirmed = [claims, ends];
  return { admission, settle, performer, unconfirmed, recovery, endWaits, endMissed, stopRun };
}

/** Gives back the jobs that this process has claimed without a confirmation, unless it has claimed them again since. */
function unconfirmedClaims(
  { base: { database, clock, log }, config }: Pick<JobRunsDeps, 'base' | 'config'>,
  settle: Settle,
  claimedBy: number,
  holds: (jobId: string) => boolean,
) {
  return new UnconfirmedWrites(
    {
      findCommitted: async (jobs: readonly { id: string }[]) => {
        const ids = jobs.map(({ id }) => id);
        const found = await findUnbegunJobs(database.read, ids, claimedBy);
        return found.filter(({ id }) => !holds(id));
      },
      settle: (job) => giveBackUnbegun(settle, job),
      onError: (err) => log.error({ err }, 'claims without a confirmation are not given back'),
    },
    clock,
    config.jobLeaseMs,
  );
}

function composeRunStart(deps: JobRunsDeps, { mayCall }: Pick<Admission, 'mayCall'>): StartRun {
  const { base, config, slices, worker, watching } = deps;
  const { database, clock, log } = base;
  return createRuns({
    base,
    executors: worker.executors,
    skills: { registry: slices.skills, settings: slices.skillSettings, mayCall },
    records: {
      reports: createReports({
        database,
        feed: watching.feed,
        clock,
        onError: (err) => log.error({ err }, 'what a run said could not be recorded'),
      }),
      startMemory: createRunMemories({ ...base, ...slices.memories }, slices.agents.memoryOf),
      openJournal: (job) => openJournal({ database, clock, isHeld }, job),
    },
    waits: {
      kinds: watching.waitKinds,
      thinking: slices.thinking.thinking,
      yieldSlot: createYieldSlot(worker.consumers, config.modelWaitsMax),
    },
  });
}

/** What accepting and asking for jobs needs. */
export interface JobVerbsDeps {
  readonly base: Context;
  readonly slices: {
    readonly agents: Agents;
    readonly conversations: Conversations;
    readonly skills: SkillRegistry;
  };
  readonly runs: {
    readonly admission: Admission;
    readonly settle: Settle;
    /** Runs a job that was claimed for this process as it was accepted. */
    begin(job: ClaimedJob): void;
    /** Tells the process that runs a job to stop it. */
    stopRun(jobId: string): void;
    readonly performer: Pick<Performer, 'isRunning'>;
  };
  readonly watching: {
    readonly feed: JobFeed;
    readonly observer: Pick<JobObserver, 'accepted'>;
  };
  /** Starts an executor of this process if there is none. */
  warm?(): void;
}

export function composeJobVerbs({ base, slices, runs, watching, warm }: JobVerbsDeps) {
  const { admission, settle, begin, stopRun, performer } = runs;
  const { isRunning } = performer;
  const { feed, observer } = watching;
  const accept = createAccept({ base, admission, begin, observe: observer.accepted });
  const jobs = createJobs({ base, slices, verbs: { accept, settle, stopRun, isRunning }, feed });
  const childJobs = createChildJobs({
    ...{ skills: slices.skills, mayCall: admission.mayCall, accept },
    agentStatus: slices.agents.statusIn,
  });
  return {
    accept,
    jobs,
    execute: createExecute({ ...base, slices, accept, ...(warm && { warm }) }),
    childJobs,
  };
}

export function composeJobs(
  deps: Pick<JobRunsDeps, 'base' | 'config'> & {
    readonly slices: JobRunsDeps['slices'] & JobVerbsDeps['slices'];
    readonly worker: Omit<JobRunsDeps['worker'], 'consumers'> & Pick<JobVerbsDeps, 'warm'>;
    readonly observer: JobObserver;
    /** Null where the platform is embedded. */
    readonly bus: Bus | null;
  },
) {
  const { base, config, slices, bus, observer } = deps;
  const { warm } = deps.worker;
  const feed = bus === null ? createJobFeed() : createSharedJobFeed(bus);
  const workers = new Map<QueueName, Consumer>();
  const waitKinds = composeWaitKinds();
  const elsewhere: JobWatching['elsewhere'] = {
    stop: (jobId) => bus?.send('cancellations', jobId),
    wake: (jobId) => bus?.send('wake-ups', jobId),
  };
  const runs = composeJobRuns({
    ...{ base, config, slices },
    worker: { ...deps.worker, consumers: workers },
    watching: { feed, waitKinds, elsewhere, observer },
  });
  const { performer, stopRun } = runs;
  const begin = (job: ClaimedJob) =>
    workers
      .get(queueOf(job.trigger_type))
      ?.run({ id: job.id, organizationId: job.organization_id }, () => performer.begin(job));
  const verbs = composeJobVerbs({
    ...{ base, slices },
    runs: { ...runs, begin },
    watching: { feed, observer },
    ...(warm && { warm }),
  });
  waitKinds.set('run', verbs.childJobs);
  const endJobsOfKey = createEndJobsOfKey(base, verbs.jobs, stopRun);
  return { ...runs, ...verbs, feed, workers, endJobsOfKey, waitKinds };
}

/** The kinds of waits that need no other slice; those of others are set by their composition. */
export function composeWaitKinds(): WaitKinds {
  return new Map<WaitKind, WaitKindVerbs>([
    ['sleep', sleep],
    ['approval', approvalWaits],
    ['event', eventWaits],
  ]);
}

function createEndJobsOfKey(
  { database, clock, log }: Context,
  jobs: Jobs,
  stopRun: (jobId: string) => void,
): EndJobsOfKey {
  return async (keyId, options) => {
    const end = () => endJobsOfRevokedKey({ database, clock, jobs, stopRun }, keyId, options);
    await end();
    // Another process may have accepted a job before it read that the key was revoked.
    setTimeout(() => {
      end().catch((err) => log.warn({ err, api_key_id: keyId }, 'jobs of a revoked key may go on'));
    }, lateJobsMs).unref();
  };
}
