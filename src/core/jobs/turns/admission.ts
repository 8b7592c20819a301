/**
 * Admission: decides whether a run may start now. Every start passes it: that of a job at its turn (`claim`) or
 * as it is accepted (`recordNew`), of both in the process that runs them (`admit`), and of a skill that a run
 * calls (`mayCall`). `turns.ts` decides about the order of jobs.
 * Admission starts nothing itself.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import { hasScopes } from '../../../kernel/caller.ts';
import { continueAfter } from '../../../kernel/ids.ts';
import type { ApiKeys } from '../../api-keys/api-keys.ts';
import type { Context } from '../../context/context.ts';
import type { LoadedSkills } from '../../executors/loaded-skills.ts';
import { claimOfEach } from '../../leases/claims.ts';
import {
  lookupOf,
  type Skill,
  type SkillRegistry,
  skillKey,
  skillKeyParts,
} from '../../skills/registry.ts';
import { timeLimitOf } from '../../skills/time-limits.ts';
import type { Passing } from '../gates/gates.ts';
import type { Places } from '../gates/places.ts';
import { type ClaimedJob, insertJobs, jobCounts, type NewJob } from '../jobs.store.ts';
import { type JobQueue, queueOf } from '../queues.ts';
import { type AttemptOutcome, runsAlone } from '../states.ts';
import { claimJobs } from './admission.store.ts';
import type { Turns } from './turns.ts';
import type { UnconfirmedJobClaims } from './unconfirmed-claims.ts';

/** Delay of a job that goes back to the queue because only other processes have loaded its skill. */
const elsewhereMs = 2_000;
/** The same when no live process has loaded the skill. */
const absentAgainMs = 5_000;
/** The least time of a run that goes on after a wait. */
const leastMs = 1_000;

/** What this process can run. */
export interface AdmissionWorker {
  /** The turns by queue. */
  readonly turns: ReadonlyMap<JobQueue, Pick<Turns, 'offerSlots' | 'giveBack'>>;
  readonly loadedSkills: LoadedSkills;
  /** The number of this process on the jobs that it claims. */
  readonly claimedBy: number;
}

export interface AdmissionTimes {
  /** The clocks of two processes may differ by this much: a row that is due within it is due now. */
  readonly clockSkewMs?: number;
  /** How long a job waits for a skill that no live process has: its processes may be restarting. */
  readonly absentMs?: number;
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

interface AdmissionParts {
  readonly skills: SkillRegistry;
  readonly apiKeys: ApiKeys;
  /** Claims whose commit was not confirmed. */
  readonly unconfirmed: UnconfirmedJobClaims;
  readonly places: Places;
}

export class Admission {
  readonly #context: Context;
  readonly #parts: AdmissionParts;
  readonly #worker: AdmissionWorker;
  readonly #times: AdmissionTimes;
  /** Under which it counts claims: claims and settlements would wait for each other at every count that both change. */
  readonly #writer: string;

  constructor(
    context: Context,
    parts: AdmissionParts,
    worker: AdmissionWorker,
    times: AdmissionTimes = {},
  ) {
    const { config, writer } = context;
    this.#context = context;
    this.#parts = parts;
    this.#worker = worker;
    this.#times = times;
    this.#writer = config.isEmbedded ? writer : `${writer}-claims`;
  }

  /**
   * Claims those of the jobs that may start; null for the others, in the order of `ids`. Adds those to `held` that a gate
   * holds from now on.
   */
  async claim(
    tx: Transaction,
    ids: readonly string[],
    held?: Set<string>,
  ): Promise<(ClaimedJob | null)[]> {
    const { clock, config } = this.#context;
    const { clockSkewMs = 0 } = this.#times;
    const now = clock.now();
    const times = { now, leaseUntil: now + config.jobLeaseMs, dueBy: now + clockSkewMs };
    const { places } = this.#parts;
    const limited = places.limits.areAny() ? places.limits.limitedSkills() : null;
    const claim = { by: this.#worker.claimedBy, ...times };
    const claimed = await claimJobs(tx, ids, claim, limited);
    if (limited !== null && claimed.length < ids.length) {
      const known = new Set(claimed.map(({ id }) => id));
      const left = ids.filter((id) => !known.has(id));
      claimed.push(...(await this.#claimGated(tx, left, claim, held)));
    }
    tx.ifUncertain(() => this.#parts.unconfirmed.add(claimed.map(identity)));
    await jobCounts.change(
      tx,
      this.#writer,
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

  /** Claims those of the jobs whose gates have places for them. */
  async #claimGated(
    tx: Transaction,
    ids: readonly string[],
    claim: Parameters<typeof claimJobs>[2],
    held?: Set<string>,
  ) {
    const { places } = this.#parts;
    const admitted = await places.admit(tx, ids, claim.dueBy ?? claim.now);
    for (const id of admitted.held) held?.add(id);
    const { passed } = admitted;
    if (passed.length === 0) return [];
    const claimed = await claimJobs(
      tx,
      passed.map(({ id }) => id),
      claim,
    );
    await places.claimed(tx, passed, claimed);
    return claimed;
  }

  /**
   * Records accepted jobs; claims those that may start in this process at once, and returns them. A job is claimed as
   * it is recorded where it may begin by its organization's share, and no earlier job of that waits. `placed` names those
   * that have the places of their gates.
   */
  async recordNew(
    tx: Transaction,
    jobs: readonly NewJob[],
    now: number,
    placed?: ReadonlySet<string>,
  ): Promise<ReadonlySet<NewJob>> {
    const { turns, claimedBy } = this.#worker;
    const claimed = new Set<NewJob>();
    await this.#holdNew(tx, jobs, now, placed);
    // A first claim reads no records, so one that goes on from some is claimed at its turn.
    const isDue = (job: NewJob) => job.run_at <= now && !job.held_by && job.resumes === null;
    for (const [name, ofQueue] of turns) {
      const due = jobs.filter((job) => isDue(job) && queueOf(job.trigger_type) === name);
      for (const job of ofQueue.offerSlots(due)) {
        claimed.add(job);
        tx.ifNotCommitted(() => ofQueue.giveBack(job.organization_id));
      }
    }
    const leaseUntil = now + this.#context.config.jobLeaseMs;
    await insertJobs(tx, jobs, claimed, { by: claimedBy, leaseUntil });
    if (claimed.size > 0) {
      tx.ifUncertain(() => this.#parts.unconfirmed.add([...claimed].map(identity)));
    }
    return claimed;
  }

  /** Takes places for the jobs that are due and have gates, or sets where they are held. */
  async #holdNew(
    tx: Transaction,
    jobs: readonly NewJob[],
    now: number,
    placed?: ReadonlySet<string>,
  ): Promise<void> {
    const { places } = this.#parts;
    const gated: (Passing & { organization_id: string; job: NewJob })[] = [];
    for (const job of jobs) {
      const gates = places.limits.gatesOf(job);
      // One that waits in its conversation asks its gates when it is let go.
      if (gates.length === 0 || job.held_by) continue;
      job.gated = 1;
      job.held_by = null;
      job.concurrency_key ??= null;
      if (job.run_at <= now && !placed?.has(job.id))
        gated.push({ id: job.id, gates, organization_id: job.organization_id, job });
    }
    if (gated.length === 0) return;
    const held = await places.accept(tx, gated);
    for (const { job } of gated) job.held_by = held.get(job.id) ?? null;
  }

  /** How a claimed job starts in this process; null when it may not. */
  admit(job: ClaimedJob): RunOptions | null {
    const { skills } = this.#parts;
    const key = skillOf(job);
    const skill =
      skills.definition(...lookupOf(job.organization_id, job)) ?? skills.remoteSkill(key);
    if (skill === undefined || !this.#worker.loadedSkills.canRun(key)) return null;
    const { answerField, hasConfig } = skill;
    // The time that the attempt has waited does not count.
    const limitMs = timeLimitOf(skill, job.input);
    const timeoutMs = job.active_ms === 0 ? limitMs : Math.max(leastMs, limitMs - job.active_ms);
    return { timeoutMs, alone: runsAlone(job), answerField, configured: hasConfig ? skill : null };
  }

  /** The outcome of an attempt whose job was not admitted. */
  async refuse(job: ClaimedJob): Promise<AttemptOutcome> {
    const { skills } = this.#parts;
    const { absentMs = 0 } = this.#times;
    const skill = lookupOf(job.organization_id, job);
    if (absentMs > 0 && skills.definition(...skill) === undefined) {
      try {
        // Another process may have loaded it meanwhile.
        await skills.refresh();
      } catch {
        return { kind: 'deferred', afterMs: elsewhereMs };
      }
    }
    // During a rolling update some workers have skills that others do not.
    if (skills.definition(...skill) !== undefined) {
      return { kind: 'deferred', afterMs: elsewhereMs };
    }
    const since = skills.goneSince(job.skill_category, job.skill_version, job.skill_name);
    if (since !== undefined && this.#context.clock.now() - since < absentMs) {
      return { kind: 'deferred', afterMs: absentAgainMs };
    }
    return cannotRun(`No definition of the skill ${skillOf(job)} is loaded here`);
  }

  /**
   * Whether the run of a job may call a skill, named `category/version/name`. The key that the job was accepted with may
   * have been revoked, and the skill withdrawn, since.
   */
  async mayCall(job: Pick<ClaimedJob, 'api_key_id'>, name: string, db?: Handle): Promise<boolean> {
    const { skills, apiKeys } = this.#parts;
    const caller = await apiKeys.callerById(job.api_key_id, db);
    if (caller === undefined) return false;
    const skill = skills.findActive(caller.organizationId, ...skillKeyParts(name));
    return skill !== undefined && hasScopes(caller.scopes, skill.requiredScopes);
  }
}

const identity = ({ id }: { readonly id: string }) => ({ id });

function cannotRun(message: string): AttemptOutcome {
  return { kind: 'failed', code: 'skill_execution_failed', message, retryable: false };
}

/** `category/version/name`. */
export function skillOf(job: ClaimedJob): string {
  return skillKey(job.skill_category, job.skill_version, job.skill_name);
}
