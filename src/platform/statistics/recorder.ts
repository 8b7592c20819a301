/**
 * Counts accepted and ended jobs in memory, and writes the counters at intervals, so that accepting and
 * settling a job do not wait for statistics. A process that is killed loses the counters since its last
 * write. That is acceptable, because the jobs themselves are the record.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import type { RunObserver, Transition } from '../../core/context/run-observer.ts';
import { type Clock, dayMs, timestamp } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import {
  allSkills,
  type KeyRuns,
  keyRunCounters,
  type RunCounts,
  runCounters,
  runSums,
} from './statistics.store.ts';
import { windows } from './windows.ts';

/** Counters in memory, at most, also while the database is unavailable. */
const countersMax = 10_000;
/** Counters that one transaction writes. */
const writtenMax = 500;

/** The organization and skill version that a job is counted for. */
export interface CountedJob {
  readonly organization_id: string;
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
}

interface AcceptedJob extends CountedJob {
  readonly api_key_id: string;
  readonly created_at: number;
}

interface CountedEnd {
  readonly job: CountedJob;
  readonly transition: Pick<Transition, 'status'>;
  readonly durationMs: number;
}

interface CountedCall {
  readonly tokens: { readonly prompt: number | null; readonly completion: number | null };
  readonly cost: number | null;
}

export class Recorder implements RunObserver {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By minute. */
  readonly #runs = new Map<string, RunCounts>();
  readonly #keys = new Map<string, KeyRuns>();
  /** The counters used last: most jobs use them again, and a comparison costs less than the text of a key. */
  #lastRuns: RunCounts | undefined;
  #lastKey: KeyRuns | undefined;
  readonly #dayOf = createDayFormatter();
  /** Counters without room since the last flush. */
  #dropped = 0;

  constructor({ database, clock, log }: Context) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  accepted(jobs: readonly AcceptedJob[]): void {
    for (const job of jobs) {
      const counts = this.#countsOf(job, job.created_at);
      if (counts !== undefined) counts.accepted += 1;
      const uses = this.#keyRunsOf(job, job.api_key_id, this.#dayOf(job.created_at));
      if (uses !== undefined) addUse(uses, 1, job.created_at);
    }
  }

  /** Counts an ended job, with the duration of its last attempt unless it was cancelled. */
  ended({ job, transition: { status }, durationMs }: CountedEnd): void {
    if (status === 'queued' || status === 'waiting') return;
    const counts = this.#countsOf(job, this.#clock.now());
    if (counts === undefined) return;
    counts[status] += 1;
    if (status === 'cancelled') return;
    const tookMs = Math.max(0, durationMs);
    counts.duration_ms += tookMs;
    counts.longest_ms = Math.max(counts.longest_ms, tookMs);
  }

  modelCalled(job: CountedJob, { tokens: { prompt, completion }, cost }: CountedCall): void {
    if (prompt === 0 && completion === 0) return;
    const counts = this.#countsOf(job, this.#clock.now());
    if (counts === undefined) return;
    counts.prompt_tokens += prompt ?? 0;
    counts.completion_tokens += completion ?? 0;
    counts.cost += cost ?? 0;
    if (prompt === null || completion === null) counts.unreported_calls += 1;
    else if (cost === null) counts.unpriced_calls += 1;
  }

  /** Writes the counters. Those that cannot be written stay for the next flush. Not reentrant. */
  async flush(): Promise<void> {
    const [runs, keys] = [this.#runs, this.#keys];
    if (this.#dropped > 0) {
      this.#log.warn(
        { dropped: this.#dropped },
        'there was more to count than is kept: the statistics have too little',
      );
      this.#dropped = 0;
    }
    // Counters that are added meanwhile wait for the next flush.
    const times = Math.ceil(Math.max(runs.size, keys.size) / writtenMax);
    for (let i = 0; i < times; i++) await this.#writeBatch();
  }

  async #writeBatch(): Promise<void> {
    const runs = take(this.#runs, writtenMax);
    const keys = take(this.#keys, writtenMax);
    this.#lastRuns = undefined;
    this.#lastKey = undefined;
    let isUncertain = false;
    try {
      await this.#database.write(async (tx) => {
        tx.ifUncertain(() => {
          isUncertain = true;
        });
        await runCounters.add(tx, inAllWidths(runs));
        await keyRunCounters.add(tx, keys);
      });
    } catch (error) {
      // They may be committed: a second of statistics is rather lost than counted twice.
      if (!isUncertain) this.#restore(runs, keys);
      throw error;
    }
  }

  /** Adds counters that could not be written to those in memory. */
  #restore(runs: readonly RunCounts[], keys: readonly KeyRuns[]): void {
    for (const row of runs) {
      const counts = this.#countsOf(row, row.start);
      if (counts !== undefined) addUp(counts, row);
    }
    for (const row of keys) {
      const uses = this.#keyRunsOf(row, row.api_key_id, row.day);
      if (uses !== undefined) addUse(uses, row.runs, row.last_used_at);
    }
  }

  /** The counter of a job for the minute of `at`; undefined when there is no room for another one. */
  #countsOf(job: CountedJob, at: number): RunCounts | undefined {
    const runs = this.#runs;
    const last = this.#lastRuns;
    const { seconds } = windows.hour;
    const start = startOf(at, seconds);
    if (last?.start === start && isOfKind(last, job)) return last;
    const key = `${start} ${nameOf(job)}`;
    let row = runs.get(key);
    if (row === undefined) {
      if (!this.#hasRoom(runs)) return undefined;
      row = { ...kindOf(job), seconds, start, ...none };
      runs.set(key, row);
    }
    this.#lastRuns = row;
    return row;
  }

  /** The counter of a key on a day; undefined when there is no room for another one. */
  #keyRunsOf(job: CountedJob, api_key_id: string, day: string): KeyRuns | undefined {
    const keys = this.#keys;
    const last = this.#lastKey;
    if (last?.day === day && last.api_key_id === api_key_id && isOfKind(last, job)) return last;
    const key = `${day} ${api_key_id} ${nameOf(job)}`;
    let row = keys.get(key);
    if (row === undefined) {
      if (!this.#hasRoom(keys)) return undefined;
      row = { ...kindOf(job), api_key_id, day, runs: 0, last_used_at: 0 };
      keys.set(key, row);
    }
    this.#lastKey = row;
    return row;
  }

  #hasRoom(target: ReadonlyMap<string, unknown>): boolean {
    if (target.size < countersMax) return true;
    this.#dropped += 1;
    return false;
  }
}

const none = {
  accepted: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  duration_ms: 0,
  longest_ms: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cost: 0,
  unreported_calls: 0,
  unpriced_calls: 0,
};

function addUp(target: RunCounts, added: RunCounts): void {
  for (const name of runSums) target[name] += added[name];
  target.longest_ms = Math.max(target.longest_ms, added.longest_ms);
}

function addUse(target: KeyRuns, runs: number, lastUsedAt: number): void {
  target.runs += runs;
  target.last_used_at = Math.max(target.last_used_at, lastUsedAt);
}

/** Formats the day of a moment; the text is cached, because it is needed for each job. */
function createDayFormatter(): (at: number) => string {
  let start = 0;
  let day = timestamp(0).slice(0, 10);
  return (at) => {
    if (at - start >= dayMs || at < start) {
      start = at - (at % dayMs);
      day = timestamp(start).slice(0, 10);
    }
    return day;
  };
}

const startOf = (at: number, seconds: number) => at - (at % (seconds * 1_000));

/** The rows that the counters of minutes add to: one per bucket width, for the skill and for all skills. */
function inAllWidths(minutes: readonly RunCounts[]): RunCounts[] {
  const rows = new Map<string, RunCounts>();
  for (const minute of minutes) {
    for (const { seconds } of Object.values(windows)) {
      const row = { ...minute, seconds, start: startOf(minute.start, seconds) };
      for (const one of [row, { ...row, ...allSkills }]) {
        const key = keyOf(one);
        const known = rows.get(key);
        if (known === undefined) rows.set(key, one);
        else addUp(known, one);
      }
    }
  }
  return [...rows.values()];
}

const keyOf = (row: RunCounts) => `${row.seconds} ${row.start} ${nameOf(row)}`;

/** Names have no spaces. */
const nameOf = (kind: CountedJob) =>
  `${kind.organization_id} ${kind.skill_category} ${kind.skill_name} ${kind.skill_version}`;

const isOfKind = (counter: CountedJob, job: CountedJob) =>
  counter.organization_id === job.organization_id &&
  counter.skill_category === job.skill_category &&
  counter.skill_name === job.skill_name &&
  counter.skill_version === job.skill_version;

const kindOf = (job: CountedJob): CountedJob => ({
  organization_id: job.organization_id,
  skill_category: job.skill_category,
  skill_name: job.skill_name,
  skill_version: job.skill_version,
});

/** Removes and returns the first entries. */
function take<Row>(from: Map<string, Row>, max: number): Row[] {
  const taken: Row[] = [];
  for (const [key, row] of from) {
    if (taken.length === max) break;
    taken.push(row);
    from.delete(key);
  }
  return taken;
}
