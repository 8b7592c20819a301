/**
 * The state of one attempt of a job while a claim executes it. Undefined parts are
 * created on first use: most runs make no request.
 */

import type { Context } from '../../context/context.ts';
import type { RunStarter } from '../../executors/pool.ts';
import type { RunHandle, RunRequest } from '../../executors/run.ts';
import type { Files } from '../../files/files.ts';
import { Journal } from '../../journal/journal.ts';
import { JournalFault, type Records } from '../../journal/records.ts';
import { jobsOnRecord, recordedSince } from '../../journal/taken-over.ts';
import type { WaitKinds } from '../../journal/wait-kinds.ts';
import type { RunMemories, RunMemory } from '../../memories/run-memory.ts';
import type { SkillRegistry } from '../../skills/registry.ts';
import type { SkillSettings } from '../../skills/settings.ts';
import type { CalledPlaces } from '../gates/called-places.ts';
import type { Places } from '../gates/places.ts';
import { type ClaimedJob, memoryUserOf } from '../jobs.store.ts';
import { queueOf } from '../queues.ts';
import type { Admission } from '../turns/admission.ts';
import type { ReportStream, Reports } from './reports.ts';
import { RunFiles } from './run-files.ts';
import type { RunWaits } from './run-waits.ts';
import type { RunThinking, Thinking } from './thinking.ts';
import { RunSlot, type YieldedSlots } from './yielding.ts';

/** How long runs wait for what may come soon. */
export interface RunPace {
  /** A run whose next wait ends within this time stays loaded. */
  readonly keepLoadedMs: number;
  /** How long an end on record is held for code that requests an earlier one. */
  readonly patienceMs: number;
}

/** To load a run again takes about as long as it is kept loaded. The tests of skills have a pace of their own. */
export const runPace: RunPace = { keepLoadedMs: 100, patienceMs: 5_000 };

/** What the runs of a process share. */
export interface Runs {
  readonly context: Context;
  readonly executors: RunStarter;
  readonly skills: SkillRegistry;
  readonly skillSettings: SkillSettings;
  readonly admission: Admission;
  readonly places: Places;
  readonly reports: Reports;
  readonly memories: RunMemories;
  readonly files: Files;
  readonly thinking: Thinking;
  readonly waitKinds: WaitKinds;
  /** The slots of runs that wait for a model, a person or a place. */
  readonly yieldedSlots: YieldedSlots;
  readonly pace: RunPace;
}

export interface Attempt {
  readonly runs: Runs;
  readonly job: ClaimedJob;
  readonly context: RunRequest['context'];
  /** In monotonic milliseconds: when its time limit ends it. */
  endsAt: number;
  handle: RunHandle | undefined;
  stream: ReportStream | undefined;
  memory: RunMemory | undefined;
  files: RunFiles | undefined;
  thinking: RunThinking | undefined;
  /** One for the whole attempt, because it numbers the steps. */
  journal: Journal | undefined;
  /** What is on record of the job, once it was read. */
  records: Records | undefined;
  waits: RunWaits | undefined;
  places: CalledPlaces | undefined;
  /** The fault that ends the job, even if the code of the run catches it. */
  fault: JournalFault | undefined;
  /** Writes to the journal under way. */
  recording: Set<Promise<unknown>> | undefined;
  slot: RunSlot | undefined;
}

export function newAttempt(runs: Runs, job: ClaimedJob): Attempt {
  return {
    runs,
    job,
    context: {
      jobId: job.id,
      agentId: job.agent_id,
      conversationId: job.conversation_id,
      organizationId: job.organization_id,
      attempt: job.attempt,
      // The same for each attempt, so that what a run makes of it is the same.
      now: recordedSince(job),
      ...(job.resumes === null ? {} : { recordOf: jobsOnRecord(job)[0] }),
    },
    endsAt: Number.POSITIVE_INFINITY,
    handle: undefined,
    stream: undefined,
    memory: undefined,
    files: undefined,
    thinking: undefined,
    journal: undefined,
    records: undefined,
    waits: undefined,
    places: undefined,
    fault: undefined,
    recording: undefined,
    slot: undefined,
  };
}

export function streamOf(attempt: Attempt): ReportStream {
  attempt.stream ??= attempt.runs.reports.open(attempt.job);
  return attempt.stream;
}

export function memoryOf(attempt: Attempt): RunMemory {
  const { job, runs } = attempt;
  attempt.memory ??= runs.memories.begin({
    organizationId: job.organization_id,
    agentId: job.agent_id,
    userId: memoryUserOf(job),
    jobId: job.id,
    conversationId: job.conversation_id,
    acceptedAt: job.created_at,
    isTrial: job.agent_overrides !== null,
  });
  return attempt.memory;
}

export function filesOf(attempt: Attempt): RunFiles {
  attempt.files ??= new RunFiles(attempt.runs.files, attempt.job);
  return attempt.files;
}

export function journalOf(attempt: Attempt): Journal {
  attempt.journal ??= new Journal(attempt.runs.context, attempt.job);
  return attempt.journal;
}

/** Reads what is on record of the job. */
export async function recordsOf(attempt: Attempt): Promise<Records> {
  attempt.records ??= await journalOf(attempt).records();
  return attempt.records;
}

/**
 * Whether the run repeats what is on record, so that clients have had its reports. A run that goes on after a
 * wait has a record, even before that has been read.
 */
export function isReplaying({ job, records }: Attempt): boolean {
  return records === undefined ? job.resumed_at !== null : records.pending.size > 0;
}

/** Ends the run for good where its code no longer fits its record, or a bound of its record is passed. */
export function endOnFault(attempt: Attempt, error: unknown): void {
  if (!(error instanceof JournalFault) || attempt.fault !== undefined) return;
  attempt.fault = error;
  attempt.handle?.abort(error.message);
}

/** A run has one slot to yield, however many of its calls wait at once. */
export function yieldSlot(attempt: Attempt): () => void {
  const { runs, job } = attempt;
  attempt.slot ??= new RunSlot(runs.yieldedSlots, queueOf(job.trigger_type), job.organization_id);
  return attempt.slot.yieldSlot();
}

export function recordingOf(attempt: Attempt): Set<Promise<unknown>> {
  attempt.recording ??= new Set();
  return attempt.recording;
}

/** Keeps a promise in a set until it has settled. */
export function remember<T>(pending: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  const done = promise.catch(() => {}).then(() => void pending.delete(done));
  pending.add(done);
  return promise;
}
