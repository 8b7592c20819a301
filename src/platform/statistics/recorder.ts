/**
 * Counts accepted and ended jobs in memory, and writes the counters at intervals, so that accepting and
 * settling a job do not wait for statistics. A process that is killed loses the counters since its last
 * write. That is acceptable, because the jobs themselves are the record.
 */
import type { Database } from '../../adapters/database/database.ts';
import { bind } from '../../kernel/bind.ts';
import { dayMs, timestamp } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import {
  addKeyRuns,
  addRunCounts,
  allSkills,
  type KeyRuns,
  type RunCounts,
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

interface CountedUsage {
  readonly prompt: number | null;
  readonly completion: number | null;
}

export interface Recorder {
  /** Counts accepted jobs. Each method is called after the commit that it counts. */
  accepted(jobs: readonly AcceptedJob[]): void;
  /** Counts an ended job. `durationMs` is that of the last attempt; ignored for a cancelled job. */
  ended(job: CountedJob, status: 'completed' | 'failed' | 'cancelled', durationMs: number): void;
  /** Counts a model call: tokens, null where not reported, and nano-dollars, null where unknown. */
  used(job: CountedJob, usage: CountedUsage, cost: number | null): void;
  /** Writes the counters. Those that cannot be written stay for the next flush. Not reentrant. */
  flush(): Promise<void>;
}

interface RecorderDeps {
  readonly database: Pick<Database, 'write'>;
  readonly clock: { now(): number };
  readonly log: Pick<Logger, 'warn'>;
}

interface Recording extends RecorderDeps {
  /** By minute. */
  readonly runs: Map<string, RunCounts>;
  readonly keys: Map<string, KeyRuns>;
  /** The counters used last: most jobs use them again, and a comparison costs less than the text of a key. */
  lastRuns: RunCounts | undefined;
  lastKey: KeyRuns | undefined;
  readonly dayOf: (at: number) => string;
  /** Counters without room since the last flush. */
  dropped: number;
}

export function createRecorder(deps: RecorderDeps): Recorder {
  const recording: Recording = {
    ...deps,
    runs: new Map(),
    keys: new Map(),
    lastRuns: undefined,
    lastKey: undefined,
    dayOf: createDayFormatter(),
    dropped: 0,
  };
  return bind(recording, { accepted, ended, used, flush });
}

function accepted(recording: Recording, jobs: readonly AcceptedJob[]): void {
  for (const job of jobs) {
    const counts = countsOf(recording, job, job.created_at);
    if (counts !== undefined) counts.accepted += 1;
    const uses = keyRunsOf(recording, job, job.api_key_id, recording.dayOf(job.created_at));
    if (uses !== undefined) addUse(uses, 1, job.created_at);
  }
}

function ended(
  recording: Recording,
  job: CountedJob,
  status: 'completed' | 'failed' | 'cancelled',
  durationMs: number,
): void {
  const counts = countsOf(recording, job, recording.clock.now());
  if (counts === undefined) return;
  counts[status] += 1;
  if (status === 'cancelled') return;
  const tookMs = Math.max(0, durationMs);
  counts.duration_ms += tookMs;
  counts.longest_ms = Math.max(counts.longest_ms, tookMs);
}

function used(
  recording: Recording,
  job: CountedJob,
  { prompt, completion }: CountedUsage,
  cost: number | null,
): void {
  if (prompt === 0 && completion === 0) return;
  const counts = countsOf(recording, job, recording.clock.now());
  if (counts === undefined) return;
  counts.prompt_tokens += prompt ?? 0;
  counts.completion_tokens += completion ?? 0;
  counts.cost += cost ?? 0;
  if (prompt === null || completion === null) counts.unreported_calls += 1;
  else if (cost === null) counts.unpriced_calls += 1;
}

async function flush(recording: Recording): Promise<void> {
  const { runs, keys, log } = recording;
  if (recording.dropped > 0) {
    log.warn(
      { dropped: recording.dropped },
      'there was more to count than is kept: the statistics have too little',
    );
    recording.dropped = 0;
  }
  // Counters that are added meanwhile wait for the next flush.
  const times = Math.ceil(Math.max(runs.size, keys.size) / writtenMax);
  for (let i = 0; i < times; i++) await writeBatch(recording);
}

async function writeBatch(recording: Recording): Promise<void> {
  const runs = take(recording.runs, writtenMax);
  const keys = take(recording.keys, writtenMax);
  recording.lastRuns = undefined;
  recording.lastKey = undefined;
  let isUncertain = false;
  try {
    await recording.database.write(async (tx) => {
      tx.ifUncertain(() => {
        isUncertain = true;
      });
      await addRunCounts(tx, inAllWidths(runs));
      await addKeyRuns(tx, keys);
    });
  } catch (error) {
    // They may be committed: a second of statistics is rather lost than counted twice.
    if (!isUncertain) restore(recording, runs, keys);
    throw error;
  }
}

/** Adds counters that could not be written to those in memory. */
function restore(recording: Recording, runs: readonly RunCounts[], keys: readonly KeyRuns[]): void {
  for (const row of runs) {
    const counts = countsOf(recording, row, row.start);
    if (counts !== undefined) addUp(counts, row);
  }
  for (const row of keys) {
    const uses = keyRunsOf(recording, row, row.api_key_id, row.day);
    if (uses !== undefined) addUse(uses, row.runs, row.last_used_at);
  }
}

/** The counter of a job for the minute of `at`; undefined when there is no room for another one. */
function countsOf(recording: Recording, job: CountedJob, at: number): RunCounts | undefined {
  const { runs, lastRuns: last } = recording;
  const { seconds } = windows.hour;
  const start = startOf(at, seconds);
  if (last?.start === start && isOfKind(last, job)) return last;
  const key = `${start} ${nameOf(job)}`;
  let row = runs.get(key);
  if (row === undefined) {
    if (!hasRoom(recording, runs)) return undefined;
    row = { ...kindOf(job), seconds, start, ...none };
    runs.set(key, row);
  }
  recording.lastRuns = row;
  return row;
}

/** The counter of a key on a day; undefined when there is no room for another one. */
function keyRunsOf(
  recording: Recording,
  job: CountedJob,
  api_key_id: string,
  day: string,
): KeyRuns | undefined {
  const { keys, lastKey: last } = recording;
  if (last?.day === day && last.api_key_id === api_key_id && isOfKind(last, job)) return last;
  const key = `${day} ${api_key_id} ${nameOf(job)}`;
  let row = keys.get(key);
  if (row === undefined) {
    if (!hasRoom(recording, keys)) return undefined;
    row = { ...kindOf(job), api_key_id, day, runs: 0, last_used_at: 0 };
    keys.set(key, row);
  }
  recording.lastKey = row;
  return row;
}

function hasRoom(recording: Recording, target: ReadonlyMap<string, unknown>): boolean {
  if (target.size < countersMax) return true;
  recording.dropped += 1;
  return false;
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
