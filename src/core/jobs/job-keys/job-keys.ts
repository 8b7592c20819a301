/**
 * Job keys: of the requests with one key of a skill the latest one runs, or the first, or one of them once no other has come
 * for a while (docs/decisions/jobs.md). A row for each key names its newest job. The acceptance of a request locks the
 * row, and then that job, so requests of two processes are decided one after the other, and none of them beside the claim
 * of the job. A job without a key pays nothing for this.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { Queue } from '../../../adapters/queue/queue.ts';
import { invalid } from '../../../kernel/errors.ts';
import { skillKey } from '../../skills/registry.ts';
import type { Acceptance } from '../accept.ts';
import { lockFamilies } from '../families.store.ts';
import type { JobRow, NewJob } from '../jobs.store.ts';
import { messageText } from '../message-text.ts';
import type { Settler } from '../settle.ts';
import { isFinal, replacedError } from '../states.ts';
import type { JobTiming } from '../timing.ts';
import { hintInTime } from '../turns/later.ts';
import {
  changeJobsOfKeys,
  findJobsOfKeys,
  findOpenOfKeys,
  giveJobKeys,
  type JobKeyRow,
  keyNameOf,
  moveJobsOfKeys,
  recordReplaced,
  takeJobKeys,
} from './job-keys.store.ts';

/**
 * What a later request does to an earlier job of its key. The mode is that of the request, whatever those of earlier ones were:
 * replace and debounce act upon the newest job of the key, and skip holds while any of its jobs has not ended.
 */
export const jobKeyModes = ['replace', 'skip', 'debounce'] as const;
export type JobKeyMode = (typeof jobKeyModes)[number];

/** Characters of a key. */
export const jobKeyMax = 255;
/** Seconds for which no further request may come before a debounced job begins; and since the first request, at most. */
export const debounceMax = 86_400;
export const debounceTotalMax = 604_800;
/** The most by default, in times of the debounce. */
const debounceTimes = 10;

/** The key of a request. */
export interface JobKey {
  readonly key: string;
  readonly mode: JobKeyMode;
  /** With the mode debounce: milliseconds without a further request, and since the first one. */
  readonly debounceMs?: number;
  readonly debounceTotalMs?: number;
}

/** A key as a client gives it. */
interface GivenKey {
  readonly key?: string | undefined;
  readonly mode?: JobKeyMode | undefined;
  readonly debounceSeconds?: number | undefined;
  readonly debounceMaxSeconds?: number | undefined;
}

/** The names of the fields that hold it, for refusals. */
export interface JobKeyNames {
  readonly key: string;
  readonly debounceSeconds: string;
  readonly debounceMaxSeconds: string;
}

/** The key of a request, undefined without one; throws `400` where its parts do not fit together. */
export function jobKeyOf(given: GivenKey, names: JobKeyNames): JobKey | undefined {
  const { key, mode = 'replace', debounceSeconds: calm, debounceMaxSeconds: most } = given;
  if (key === undefined) {
    if (given.mode === undefined && calm === undefined && most === undefined) return undefined;
    throw invalid(names.key, 'is required with the fields that say what it does');
  }
  if (mode !== 'debounce') {
    if (calm !== undefined) throw invalid(names.debounceSeconds, 'is for the mode debounce');
    if (most !== undefined) throw invalid(names.debounceMaxSeconds, 'is for the mode debounce');
    return { key, mode };
  }
  if (calm === undefined) {
    throw invalid(names.debounceSeconds, 'is required with the mode debounce');
  }
  if (most !== undefined && most < calm) {
    throw invalid(names.debounceMaxSeconds, `must not be less than ${names.debounceSeconds}`);
  }
  const seconds = most ?? Math.min(debounceTotalMax, calm * debounceTimes);
  return { key, mode, debounceMs: calm * 1000, debounceTotalMs: seconds * 1000 };
}

/** The times of a request with a key: a debounced job begins later. Throws `400` where it names a moment of its own. */
export function timingWith(
  jobKey: JobKey | undefined,
  timing: JobTiming | undefined,
  name: string,
): JobTiming | undefined {
  if (jobKey?.debounceMs === undefined) return timing;
  if (timing?.runAt !== undefined || timing?.delayMs !== undefined) {
    throw invalid(
      name,
      'must not be sent with the mode debounce, which decides when the job begins',
    );
  }
  return { ...timing, delayMs: jobKey.debounceMs };
}

/** The key as part of the fingerprint of a request with an Idempotency-Key. */
export function jobKeyText({ key, mode, debounceMs, debounceTotalMs }: JobKey): string {
  return `\njob key ${JSON.stringify([key, mode, debounceMs ?? null, debounceTotalMs ?? null])}`;
}

/** What is decided about a request by its key: by the job of an earlier one. */
type KeyOutcome = 'accepted' | 'skipped' | 'replaced' | 'debounced' | 'other_users_key';

type EarlierJob = Pick<
  JobRow,
  | 'status'
  | 'started_at'
  | 'expires_at'
  | 'agent_id'
  | 'api_key_id'
  | 'user_id'
  | 'for_user'
  | 'trigger_type'
> & { readonly concurrency_key?: string | null | undefined };

/** What becomes of a request that would make `job`, beside the newest job of its key. Pure. */
function keyOutcome(
  mode: JobKeyMode,
  earlier: EarlierJob | undefined,
  job: Omit<EarlierJob, 'status' | 'started_at' | 'expires_at'>,
  now: number,
): KeyOutcome {
  if (earlier === undefined || isFinal(earlier.status)) return 'accepted';
  const hasBegun = earlier.status !== 'queued' || earlier.started_at !== null;
  // No claim takes it any more, and the sweep ends it.
  const hasExpired = !hasBegun && earlier.expires_at !== null && Number(earlier.expires_at) <= now;
  if (hasExpired) return 'accepted';
  const isSameUser = earlier.user_id === job.user_id && earlier.for_user === job.for_user;
  // A client that skips reads the answer of the earlier job.
  if (mode === 'skip') return earlier.for_user === 1 && !isSameUser ? 'other_users_key' : 'skipped';
  if (hasBegun) return 'accepted';
  // A job stays with its agent, its user and its limit, and with the key in whose name it runs.
  const isSame =
    earlier.agent_id === job.agent_id &&
    earlier.api_key_id === job.api_key_id &&
    isSameUser &&
    earlier.trigger_type === job.trigger_type &&
    (earlier.concurrency_key ?? null) === (job.concurrency_key ?? null);
  return mode === 'debounce' && isSame ? 'debounced' : 'replaced';
}

/** A request with a key, and the job that it is about to become. */
export interface KeyedRequest {
  readonly jobKey: JobKey;
  readonly job: NewJob;
}

interface Held {
  readonly row: JobKeyRow;
  /** The newest job of the key, if it is still there; with the mode skip the newest that has not ended. */
  readonly earlier: JobRow | undefined;
}

/** Locks the keys of requests, all different, and the newest jobs of these keys. */
export async function lockJobKeys(
  tx: Transaction,
  requests: readonly KeyedRequest[],
  now: number,
): Promise<HeldJobKeys> {
  const wanted = requests.map(({ jobKey, job }) => rowOf(jobKey, job, now));
  const rows = await takeJobKeys(tx, wanted);
  const own = new Set(requests.map(({ job }) => job.id));
  const ids = rows.map(({ job_id }) => job_id).filter((id) => !own.has(id));
  if (ids.length > 0) await lockFamilies(tx, ids);
  const jobs = ids.length === 0 ? [] : await findJobsOfKeys(tx, { ids });
  const jobsById = new Map(jobs.map((job) => [job.id, job]));
  const rowsByName = new Map(rows.map((row) => [keyNameOf(row), row]));
  const held = new Map<NewJob, Held>();
  requests.forEach(({ job }, i) => {
    const row = rowsByName.get(keyNameOf(wanted[i] as JobKeyRow)) as JobKeyRow;
    held.set(job, { row, earlier: jobsById.get(row.job_id) });
  });
  await holdOpen(tx, requests, held, now);
  return new HeldJobKeys(held, now);
}

/**
 * Requests of other modes let jobs of a key begin beside one another, so an older one than the newest may go on, also where the
 * row of the key is new: rows are deleted by their newest jobs. It holds requests with the mode skip, too.
 */
async function holdOpen(
  tx: Transaction,
  requests: readonly KeyedRequest[],
  held: Map<NewJob, Held>,
  now: number,
): Promise<void> {
  const skipping = requests.flatMap(({ jobKey, job }) => {
    const { row, earlier } = held.get(job) as Held;
    if (jobKey.mode !== 'skip' || keyOutcome('skip', earlier, job, now) === 'skipped') return [];
    return [{ job, row }];
  });
  if (skipping.length === 0) return;
  const keys = skipping.map(({ row }) => row);
  const open = await findOpenOfKeys(tx, keys, now);
  const openByName = new Map(open.map((job) => [keyNameOfJob(job), job]));
  for (const { job, row } of skipping) {
    const earlier = openByName.get(keyNameOf(row));
    if (earlier !== undefined) held.set(job, { row, earlier });
  }
}

/** The locked keys of the requests of one transaction, and what was decided about these. */
export class HeldJobKeys {
  readonly #held: ReadonlyMap<NewJob, Held>;
  readonly #now: number;
  readonly #given: JobKeyRow[] = [];
  readonly #replaced: { readonly earlier: JobRow; readonly job: NewJob }[] = [];
  readonly #changed: {
    readonly earlier: JobRow;
    readonly job: NewJob;
    /** Null where it keeps its moment. */
    readonly runAt: number | null;
  }[] = [];

  constructor(held: ReadonlyMap<NewJob, Held>, now: number) {
    this.#held = held;
    this.#now = now;
  }

  /** The newest jobs of the keys. */
  earlierJobs(): JobRow[] {
    return [...this.#held.values()].flatMap(({ earlier }) => earlier ?? []);
  }

  /** The acceptance of a request that nothing else keeps from being accepted. It may move the beginning of its job. */
  acceptanceOf({ mode, debounceTotalMs = 0 }: JobKey, job: NewJob): Acceptance {
    const { row, earlier } = this.#held.get(job) as Held;
    const isDebounce = mode === 'debounce';
    const given = { ...row, job_id: job.id, first_at: this.#now, is_debounced: Number(isDebounce) };
    const outcome = keyOutcome(mode, earlier, job, this.#now);
    if (earlier === undefined || outcome === 'accepted') {
      this.#given.push(given);
      return { kind: 'accepted', job };
    }
    if (outcome === 'skipped') return { kind: 'skipped', job: earlier };
    if (outcome === 'other_users_key') return { kind: outcome };
    const isLater = isDebounce && row.is_debounced === 1;
    const firstAt = isLater ? Number(row.first_at) : this.#now;
    const latest = firstAt + debounceTotalMs;
    const runAt = Math.max(this.#now, Math.min(job.run_at, latest));
    const dueAt = Number(earlier.due_at);
    if (outcome === 'debounced') {
      // One whose turn may come keeps its turn: else it would never come while others wait and requests go on.
      const keepsTurn = dueAt <= this.#now || latest <= this.#now;
      this.#changed.push({ earlier, job, runAt: keepsTurn ? null : runAt });
      if (!isLater) this.#given.push({ ...given, job_id: earlier.id });
      return { kind: 'debounced', job: earlier };
    }
    if (isDebounce) job.run_at = runAt;
    // It takes over the turn of the earlier one.
    if (job.run_at <= this.#now) job.run_at = Math.min(job.run_at, dueAt);
    this.#replaced.push({ earlier, job });
    this.#given.push({ ...given, first_at: firstAt });
    return { kind: 'accepted', job, replaces: earlier.id };
  }

  /**
   * Records what was decided, and cancels the jobs whose places others take. The ids of new jobs that have the places of
   * their gates already.
   */
  async record(
    tx: Transaction,
    settler: Settler,
    queue: Pick<Queue, 'sendHints'>,
  ): Promise<ReadonlySet<string>> {
    const now = this.#now;
    await giveJobKeys(tx, this.#given);
    const placed = await this.#replace(tx, settler);
    const changed = this.#changed.map(({ earlier, job }) => ({
      id: earlier.id,
      conversation_id: earlier.conversation_id,
      input: job.input,
      agent_overrides: job.agent_overrides,
      priority: job.priority,
      expires_at: job.expires_at,
      content: messageText(job.input),
    }));
    await changeJobsOfKeys(tx, changed);
    const moved = this.#changed.flatMap(({ earlier, runAt }) =>
      runAt === null ? [] : [{ earlier, runAt }],
    );
    await moveJobsOfKeys(
      tx,
      moved.map(({ earlier, runAt }) => ({ id: earlier.id, run_at: runAt })),
    );
    // One that is to begin later holds no place of a limit.
    const gated = moved.map(({ earlier }) => earlier).filter((one) => one.gated === 1);
    if (gated.length > 0) await settler.parts.places.release(tx, gated);
    tx.afterCommit(() => {
      for (const { earlier, runAt } of moved) {
        // The queue may know an earlier hint by the number of claims alone.
        hintInTime(queue, earlier, `${earlier.epoch}-at${runAt}`, runAt, now);
      }
    });
    return placed;
  }

  /** Cancels the replaced jobs; the ids of those that take over their places at gates. */
  async #replace(tx: Transaction, settler: Settler): Promise<ReadonlySet<string>> {
    const replaced = this.#replaced;
    if (replaced.length === 0) return new Set();
    const inTurn = replaced.filter(({ job }) => job.run_at <= this.#now);
    // Before the cancellation, which passes on the places that are left.
    const placed = await settler.parts.places.handOver(
      tx,
      inTurn.map(({ earlier, job }) => ({ from: earlier, to: job })),
    );
    await recordReplaced(
      tx,
      replaced.map(({ earlier, job }) => ({ id: earlier.id, replaced_by: job.id })),
    );
    const ids = replaced.map(({ earlier }) => earlier.id);
    await settler.cancelUnclaimed(tx, ids, replacedError);
    return placed;
  }
}

function keyNameOfJob(job: JobRow): string {
  const { organization_id, skill_category, skill_version, skill_name } = job;
  const skill = skillKey(skill_category, skill_version, skill_name);
  return keyNameOf({ organization_id, skill, job_key: job.job_key ?? '' });
}

function rowOf({ key, mode }: JobKey, job: NewJob, now: number): JobKeyRow {
  const { organization_id, skill_category, skill_version, skill_name } = job;
  const skill = skillKey(skill_category, skill_version, skill_name);
  const is_debounced = Number(mode === 'debounce');
  return { organization_id, skill, job_key: key, job_id: job.id, first_at: now, is_debounced };
}
