/** Recent counts of an organization's runs, and the users of a skill version. */
import type { Database } from '../../adapters/database/database.ts';
import { deleteAll } from '../../adapters/database/in-batches.ts';
import type { Context } from '../../core/context/context.ts';
import { findOldestDueOf } from '../../core/jobs/turns/oldest-due.store.ts';
import { countUnendedOf } from '../../core/jobs/unended-jobs.store.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { type Clock, dayMs, timestamp } from '../../kernel/clock.ts';
import { usdOf } from '../../kernel/money.ts';
import { listScheduledJobsOfSkill } from '../schedules/schedules.store.ts';
import { listTriggersOfSkill } from '../triggers/triggers.store.ts';
import {
  countsBySkill,
  countsByStart,
  deleteKeyRuns,
  deleteRunCounts,
  keysOfSkill,
  type SkillName,
  type Span,
} from './statistics.store.ts';
import { type WindowName, windows } from './windows.ts';

/** Skills, scheduled jobs, triggers and keys in one response, at most of each. */
const listedMax = 200;
/** Days, today included, for which the users of a skill list its keys. */
const keyDays = 30;

export class Statistics {
  readonly #context: Context;
  readonly #skills: SkillRegistry;

  constructor(context: Context, skills: SkillRegistry) {
    this.#context = context;
    this.#skills = skills;
  }

  /** The last hour by minutes, or the last day by quarters of an hour, the current bucket included. */
  async ofWindow(organizationId: string, window: WindowName) {
    const { clock, database } = this.#context;
    const { read } = database;
    const now = clock.now();
    const span = spanOf(window, now);
    const [unended, oldestDue, counts, bySkill] = await Promise.all([
      countUnendedOf(read, organizationId),
      findOldestDueOf(read, organizationId, now),
      countsByStart(read, organizationId, span),
      countsBySkill(read, organizationId, span, listedMax),
    ]);
    return {
      window,
      from: timestamp(span.from),
      to: timestamp(span.to),
      bucket_seconds: span.seconds,
      now: {
        ...unended,
        oldest_waiting_seconds: oldestDue === undefined ? null : (now - oldestDue) / 1_000,
      },
      totals: totalsOf(counts),
      buckets: bucketsOf(span, counts),
      skills: bySkill.map(({ duration_ms, longest_ms, ...skill }) => {
        const average = averageOf({ ...skill, duration_ms });
        return {
          ...skill,
          average_duration_ms: average,
          longest_duration_ms: average === null ? null : longest_ms,
        };
      }),
    };
  }

  /** `404` for a version that was never registered for the organization. */
  findSkill(organizationId: string, { category, version, name }: SkillName): void {
    this.#skills.registered(organizationId, category, version, name);
  }

  /** The users of a skill version in an organization, also of an inactive one; `404` for an unknown version. */
  async usesOf(organizationId: string, skill: SkillName) {
    const { clock, database } = this.#context;
    const { read } = database;
    this.findSkill(organizationId, skill);
    const since = firstKeyDay(clock.now());
    const [scheduledJobs, triggers, keys] = await Promise.all([
      listScheduledJobsOfSkill(read, organizationId, skill, listedMax),
      listTriggersOfSkill(read, organizationId, skill, listedMax),
      keysOfSkill(read, organizationId, skill, since, listedMax),
    ]);
    return {
      scheduled_jobs: scheduledJobs.rows.map(({ timezone, ...row }) => ({
        ...row,
        ...(timezone === null ? null : { timezone }),
        enabled: row.enabled === 1,
      })),
      total_scheduled_jobs: scheduledJobs.total,
      agent_triggers: triggers.rows.map((row) => ({ ...row, active: row.active === 1 })),
      total_agent_triggers: triggers.total,
      api_keys: keys.rows.map((row) => ({
        ...row,
        runs: Number(row.runs),
        last_used_at: timestamp(Number(row.last_used_at)),
      })),
      total_api_keys: keys.total,
    };
  }
}

/** The first day for which runs by key are kept. */
function firstKeyDay(now: number): string {
  return timestamp(now - (keyDays - 1) * dayMs).slice(0, 10);
}

function spanOf(window: WindowName, now: number): Span {
  const { seconds, buckets } = windows[window];
  const width = seconds * 1_000;
  const to = now - (now % width) + width;
  return { seconds, from: to - buckets * width, to };
}

type CountsRow = Awaited<ReturnType<typeof countsByStart>>[number];

function totalsOf(counts: readonly CountsRow[]) {
  const total = (name: Exclude<keyof CountsRow, 'start'>) =>
    counts.reduce((sum, row) => sum + row[name], 0);
  const cost = total('cost');
  const unreported = total('unreported_calls');
  const isPartial = unreported > 0 || total('unpriced_calls') > 0;
  return {
    accepted: total('accepted'),
    completed: total('completed'),
    failed: total('failed'),
    cancelled: total('cancelled'),
    prompt_tokens: total('prompt_tokens'),
    completion_tokens: total('completion_tokens'),
    total_tokens: total('prompt_tokens') + total('completion_tokens'),
    tokens_are_partial: unreported > 0,
    cost_usd: cost === 0 && isPartial ? null : usdOf(cost),
    cost_is_partial: isPartial,
  };
}

/** All buckets of the span; zeros for those without rows. */
function bucketsOf({ seconds, from, to }: Span, counts: readonly CountsRow[]) {
  const byStart = new Map(counts.map((row) => [row.start, row]));
  const width = seconds * 1_000;
  return Array.from({ length: (to - from) / width }, (_, i) => {
    const row = byStart.get(from + i * width);
    return {
      start: timestamp(from + i * width),
      accepted: row?.accepted ?? 0,
      completed: row?.completed ?? 0,
      failed: row?.failed ?? 0,
      cancelled: row?.cancelled ?? 0,
      total_tokens: (row?.prompt_tokens ?? 0) + (row?.completion_tokens ?? 0),
      average_duration_ms: row === undefined ? null : averageOf(row),
    };
  });
}

/** The average duration of completed and failed runs, in whole milliseconds; null without any. */
function averageOf(row: Pick<CountsRow, 'completed' | 'failed' | 'duration_ms'>): number | null {
  const runs = row.completed + row.failed;
  return runs === 0 ? null : Math.round(row.duration_ms / runs);
}

/** Rows deleted in one transaction. */
const rowsMax = 1_000;
/** Kept beyond the window, so that a concurrent request misses no row. */
const spareMs = 60 * 60 * 1_000;

export async function deleteOldStatistics(parts: {
  database: Database;
  clock: Pick<Clock, 'now'>;
}): Promise<void> {
  const { database, clock } = parts;
  for (const { seconds, buckets } of Object.values(windows)) {
    const before = clock.now() - seconds * 1_000 * buckets - spareMs;
    await deleteAll(database, rowsMax, (tx) => deleteRunCounts(tx, seconds, before, rowsMax));
  }
  await deleteAll(database, rowsMax, (tx) => deleteKeyRuns(tx, firstKeyDay(clock.now()), rowsMax));
}
