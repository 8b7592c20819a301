/**
 * Counts what becomes of jobs while it happens, in memory, and writes what has gathered now and then:
 * whoever accepts or settles a job waits for nothing here. A process that is killed takes what it has
 * gathered since the last write with it; statistics are for looking at, the jobs are the truth.
 */
import type { Database } from '../database/database.ts';
import { timestamp } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import {
  addKeyRuns,
  addRunCounts,
  allSkills,
  type KeyRuns,
  type RunCounts,
} from './statistics.store.ts';
import { windows } from './windows.ts';

/** Kinds that are gathered at most between two writes, while the database is away too. */
const kindsMax = 10_000;
/** Kinds that one transaction writes. */
const writtenMax = 500;

/** Whose run of what. */
export interface CountedJob {
  readonly organization_id: string;
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
}

export interface Recorder {
  /** To be told of jobs once it is certain that they are accepted; each of these after its commit. */
  accepted(jobs: readonly (CountedJob & { api_key_id: string; created_at: number })[]): void;
  /** `durationMs` is that of the last attempt; not counted for one that was cancelled. */
  ended(job: CountedJob, status: 'completed' | 'failed' | 'cancelled', durationMs: number): void;
  /** Tokens of a call of a model, null where its provider did not report them. */
  used(job: CountedJob, usage: { prompt: number | null; completion: number | null }): void;
  /** Writes what has gathered. What cannot be written waits for the next time. One at a time. */
  flush(): Promise<void>;
}

type Counters = Omit<RunCounts, 'seconds' | 'start' | keyof CountedJob>;

export function createRecorder(parts: {
  database: Pick<Database, 'write'>;
  clock: { now(): number };
  log: Pick<Logger, 'warn'>;
}): Recorder {
  const { database, clock, log } = parts;
  const runs = new Map<string, RunCounts>();
  const keys = new Map<string, KeyRuns>();
  let dropped = 0;

  function count(job: CountedJob, at: number, counters: Partial<Counters>): void {
    const { seconds } = windows.hour;
    addRun({ ...kindOf(job), seconds, start: startOf(at, seconds), ...none, ...counters });
  }

  function addRun(row: RunCounts): void {
    const key = keyOf(row);
    const known = runs.get(key);
    if (known !== undefined) addUp(known, row);
    else if (hasRoom(runs)) runs.set(key, row);
  }

  function addKey(row: KeyRuns): void {
    const key = `${row.day} ${row.api_key_id} ${nameOf(row)}`;
    const known = keys.get(key);
    if (known === undefined) {
      if (hasRoom(keys)) keys.set(key, row);
      return;
    }
    known.runs += row.runs;
    known.last_used_at = Math.max(known.last_used_at, row.last_used_at);
  }

  function hasRoom(target: Map<string, unknown>): boolean {
    if (target.size < kindsMax) return true;
    dropped += 1;
    return false;
  }

  async function writeSome(): Promise<void> {
    const counted = take(runs, writtenMax);
    const used = take(keys, writtenMax);
    try {
      await database.write(async (tx) => {
        await addRunCounts(tx, inAllWidths(counted));
        await addKeyRuns(tx, used);
      });
    } catch (error) {
      for (const row of counted) addRun(row);
      for (const row of used) addKey(row);
      throw error;
    }
  }

  return {
    accepted(jobs) {
      for (const job of jobs) {
        count(job, job.created_at, { accepted: 1 });
        const day = timestamp(job.created_at).slice(0, 10);
        const { api_key_id, created_at: last_used_at } = job;
        addKey({ ...kindOf(job), api_key_id, day, runs: 1, last_used_at });
      }
    },

    ended(job, status, durationMs) {
      const tookMs = status === 'cancelled' ? 0 : Math.max(0, durationMs);
      count(job, clock.now(), { [status]: 1, duration_ms: tookMs, longest_ms: tookMs });
    },

    used(job, { prompt, completion }) {
      if (!prompt && !completion) return;
      const tokens = { prompt_tokens: prompt ?? 0, completion_tokens: completion ?? 0 };
      count(job, clock.now(), tokens);
    },

    async flush() {
      if (dropped > 0) {
        log.warn(
          { dropped },
          'there was more to count than is kept: the statistics have too little',
        );
        dropped = 0;
      }
      // What comes meanwhile is for the next time.
      const times = Math.ceil(Math.max(runs.size, keys.size) / writtenMax);
      for (let i = 0; i < times; i++) await writeSome();
    },
  };
}

const none: Counters = {
  accepted: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  duration_ms: 0,
  longest_ms: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
};

function addUp(target: RunCounts, { longest_ms, ...added }: RunCounts): void {
  for (const name of sums) target[name] += added[name];
  target.longest_ms = Math.max(target.longest_ms, longest_ms);
}

const sums = (Object.keys(none) as (keyof Counters)[]).filter((name) => name !== 'longest_ms');

const startOf = (at: number, seconds: number) => at - (at % (seconds * 1_000));

/** Counts of minutes as all rows that they are part of: each width of a bucket, and all skills together. */
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

/** Nothing in a name has a space. */
const nameOf = (kind: CountedJob) =>
  `${kind.organization_id} ${kind.skill_category} ${kind.skill_name} ${kind.skill_version}`;

const kindOf = (job: CountedJob): CountedJob => ({
  organization_id: job.organization_id,
  skill_category: job.skill_category,
  skill_name: job.skill_name,
  skill_version: job.skill_version,
});

/** Takes the first of them out. */
function take<Row>(from: Map<string, Row>, max: number): Row[] {
  const taken: Row[] = [];
  for (const [key, row] of from) {
    if (taken.length === max) break;
    taken.push(row);
    from.delete(key);
  }
  return taken;
}
