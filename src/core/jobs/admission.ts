/**
 * Admission: decides whether a run may start now. Each way in which a run begins asks here: a job that a
 * hint names (`claim`), a job that starts here as it is accepted (`recordNew`), both then in the process
 * that runs it (`admit`), and a skill that a run calls (`mayCall`). The sweep sends hints only for jobs that
 * could be claimed: both queries are in `admission.store.ts`. Admission starts nothing itself.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import type { Clock } from '../../kernel/clock.ts';
import { continueAfter } from '../../kernel/ids.ts';
import type { QueueName } from '../../kernel/queues.ts';
import { claimOfEach } from '../leases/claims.ts';
import {
  lookupOf,
  type Skill,
  type SkillRegistry,
  skillKey,
  skillKeyParts,
} from '../skills/registry.ts';
import { timeLimitOf } from '../skills/time-limits.ts';
import { claimJobs } from './admission.store.ts';
import { type ClaimedJob, changeJobCounts, insertJobs, type NewJob } from './jobs.store.ts';
import { queueOf } from './queues.ts';
import { type AttemptOutcome, runsAlone } from './states.ts';

/** Delay of a job that goes back to the queue because only other processes have loaded its skill. */
const elsewhereMs = 2_000;
/** The same when no live process has loaded the skill. */
const absentAgainMs = 5_000;
/** The least time of a run that goes on after a wait. */
const leastMs = 1_000;

export interface AdmissionDeps {
  readonly slices: {
    readonly skills: Pick<SkillRegistry, 'definition' | 'findActive' | 'goneSince' | 'refresh'>;
    readonly apiKeys: { callerById(id: string, db?: Handle): Promise<Caller | undefined> };
    /**
     * Why the service outside that runs a skill does not run it for an organization any more: a sentence; null for all
     * other skills.
     */
    whyWithdrawn?(organizationId: string, skill: string): Promise<string | null>;
  };
  readonly clock: Clock;
  /** What this process can run. */
  readonly worker: {
    /** Slots of its worker for jobs of a queue, as `Consumer.offerSlots`; none without a worker. */
    offerSlots(queue: QueueName): (organizationId: string) => boolean;
    /** Whether it can run a skill, named `category/version/name`. */
    isLoaded(skill: string): boolean;
    readonly claims: {
      /** The number of this process on the jobs that it claims. */
      readonly by: number;
      /** Takes the jobs of claims whose commit was not confirmed. */
      unconfirmed(ids: readonly string[]): void;
    };
  };
  /** Under which it counts jobs. */
  readonly writer: string;
  readonly times: {
    readonly leaseMs: number;
    /** The clocks of two processes may differ by this much: a row that is due within it is due now. */
    readonly clockSkewMs?: number;
    /** How long a job waits for a skill that no live process has: its processes may be restarting. */
    readonly absentMs?: number;
  };
}

/** How a run starts. */
export interface RunOptions {
  readonly timeoutMs: number;
  /** With no neighbour, in a fresh executor. */
  readonly alone: boolean;
  /** The field of the skill's output that holds its answer; null when the skill names none. */
  readonly answerField: string | null;
  /** The skill, where it declares settings: its run needs their values. */
  readonly configured: Skill | null;
}

export interface Admission {
  /** Claims those of the jobs that may start; null for the others, in the order of `ids`. */
  claim(tx: Transaction, ids: readonly string[]): Promise<(ClaimedJob | null)[]>;
  /** Records accepted jobs; claims those that may start in this process at once, and returns them. */
  recordNew(tx: Transaction, jobs: readonly NewJob[], now: number): Promise<ReadonlySet<NewJob>>;
  /** How a claimed job starts in this process; null when it may not. */
  admit(job: ClaimedJob): RunOptions | null;
  /** What becomes of the attempt of a job that was not admitted. */
  refuse(job: ClaimedJob): Promise<AttemptOutcome>;
  /** Whether the run of a job may call a skill, named `category/version/name`. */
  mayCall(job: Pick<ClaimedJob, 'api_key_id'>, skill: string, db?: Handle): Promise<boolean>;
}

export function createAdmission(deps: AdmissionDeps): Admission {
  return {
    claim: (tx, ids) => claim(deps, tx, ids),
    recordNew: (tx, jobs, now) => recordNew(deps, tx, jobs, now),
    admit: (job) => admit(deps, job),
    refuse: (job) => refuse(deps, job),
    mayCall: (...asked) => mayCall(deps, ...asked),
  };
}

async function claim(
  { clock, writer, worker: { claims }, times: { leaseMs, clockSkewMs = 0 } }: AdmissionDeps,
  tx: Transaction,
  ids: readonly string[],
): Promise<(ClaimedJob | null)[]> {
  const now = clock.now();
  const times = { now, leaseUntil: now + leaseMs, dueBy: now + clockSkewMs };
  const claimed = await claimJobs(tx, ids, { by: claims.by, ...times });
  tx.ifUncertain(() => claims.unconfirmed(claimed.map(({ id }) => id)));
  await changeJobCounts(
    tx,
    writer,
    claimed.map((kind) => ({
      kind,
      from: kind.resumed_at === null ? 'queued' : 'waiting',
      to: 'active',
    })),
  );
  for (const { last_message_id } of claimed) {
    if (last_message_id !== null) continueAfter(last_message_id);
  }
  return claimOfEach(ids, claimed);
}

/** A job is claimed as it is recorded where a slot is free for it and no earlier hint waits for that. */
async function recordNew(
  { worker, times: { leaseMs } }: AdmissionDeps,
  tx: Transaction,
  jobs: readonly NewJob[],
  now: number,
): Promise<ReadonlySet<NewJob>> {
  const { claims } = worker;
  const claimed = new Set<NewJob>();
  const offers = new Map<QueueName, (organizationId: string) => boolean>();
  for (const job of jobs) {
    const name = queueOf(job.trigger_type);
    const hasSlotFor = offers.get(name) ?? worker.offerSlots(name);
    offers.set(name, hasSlotFor);
    if (hasSlotFor(job.organization_id)) claimed.add(job);
  }
  await insertJobs(tx, jobs, claimed, { by: claims.by, leaseUntil: now + leaseMs });
  if (claimed.size > 0) tx.ifUncertain(() => claims.unconfirmed([...claimed].map(({ id }) => id)));
  return claimed;
}

function admit({ slices, worker }: AdmissionDeps, job: ClaimedJob): RunOptions | null {
  const skill = slices.skills.definition(...lookupOf(job.organization_id, job));
  if (skill === undefined || !worker.isLoaded(skillOf(job))) return null;
  const { answerField, hasConfig } = skill;
  // The time that the attempt has waited does not count.
  const limitMs = timeLimitOf(skill, job.input);
  const timeoutMs = job.active_ms === 0 ? limitMs : Math.max(leastMs, limitMs - job.active_ms);
  return { timeoutMs, alone: runsAlone(job), answerField, configured: hasConfig ? skill : null };
}

async function refuse(
  { slices: { skills, whyWithdrawn }, clock, times: { absentMs = 0 } }: AdmissionDeps,
  job: ClaimedJob,
): Promise<AttemptOutcome> {
  const skill = lookupOf(job.organization_id, job);
  const withdrawn = await whyWithdrawn?.(job.organization_id, skillOf(job));
  if (withdrawn) return cannotRun(withdrawn);
  if (absentMs > 0 && skills.definition(...skill) === undefined) {
    try {
      // Another process may have loaded it meanwhile.
      await skills.refresh();
    } catch {
      return { kind: 'deferred', afterMs: elsewhereMs };
    }
  }
  // During a rolling update some workers have skills that others do not.
  if (skills.definition(...skill) !== undefined) return { kind: 'deferred', afterMs: elsewhereMs };
  const since = skills.goneSince(job.skill_category, job.skill_version, job.skill_name);
  if (since !== undefined && clock.now() - since < absentMs) {
    return { kind: 'deferred', afterMs: absentAgainMs };
  }
  return cannotRun(`No definition of the skill ${skillOf(job)} is loaded here`);
}

function cannotRun(message: string): AttemptOutcome {
  return { kind: 'failed', code: 'skill_execution_failed', message, retryable: false };
}

/** The key that the job was accepted with may have been revoked, and the skill withdrawn, since. */
async function mayCall(
  { slices: { skills, apiKeys } }: AdmissionDeps,
  job: Pick<ClaimedJob, 'api_key_id'>,
  name: string,
  db?: Handle,
): Promise<boolean> {
  const caller = await apiKeys.callerById(job.api_key_id, db);
  if (caller === undefined) return false;
  const skill = skills.findActive(caller.organizationId, ...skillKeyParts(name));
  return skill !== undefined && hasScopes(caller.scopes, skill.requiredScopes);
}

/** `category/version/name`. */
export function skillOf(job: ClaimedJob): string {
  return skillKey(job.skill_category, job.skill_version, job.skill_name);
}
