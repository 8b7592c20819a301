/**
 * What is to be done for a scheduled job that is due: which of its slots runs, and what is recorded
 * of the others (decisions 9). Pure; time is passed in.
 */
import type { SlotOutcome } from '../database/tables.ts';
import { timestamp } from '../kernel/clock.ts';
import { type Cron, nextMatch } from './cron.ts';
import { slotsUpTo } from './slots.ts';

/** A slot fires on time up to so long after its minute has begun. */
const onTimeMs = 10_000;
/** A slot that was missed is caught up with while it is less late than this. */
const catchUpMs = 60 * 60 * 1000;
/** Missed slots that get a row of their own; all older ones share one. */
const missedRowsMax = 1_000;

/** Why a slot that would have run may not. */
export interface Refusal {
  readonly outcome: Extract<
    SlotOutcome,
    'key_revoked' | 'skill_inactive' | 'insufficient_scope' | 'input_invalid' | 'agent_paused'
  >;
  /** As the API would refuse the same request. */
  readonly code: string;
  readonly message: string;
}

/** A scheduled job whose `next_run_at` has come. */
export interface DueSchedule {
  readonly cron: Cron;
  /** Its `next_run_at`. */
  readonly dueAt: number;
  /** Whether its last run is still under way. */
  readonly isRunning: boolean;
  /** Due slots that have been dealt with, before the clock was set back. */
  readonly taken: ReadonlySet<number>;
}

/** What is to be recorded of a slot. */
export interface SlotRecord {
  readonly slot: number;
  readonly outcome: SlotOutcome;
  readonly slots: number;
  readonly message: string | null;
}

export interface Decision {
  /** Oldest first. */
  readonly records: readonly SlotRecord[];
  /** The newest slot when it is to run, else null. */
  readonly runs: SlotRecord | null;
  /** Whether the newest slot was refused. */
  readonly isRefused: boolean;
  readonly nextRunAt: number;
}

/** Decides about all slots that have come by `now`; `refusal` is null when a run would be allowed. */
export function decide(schedule: DueSchedule, refusal: Refusal | null, now: number): Decision {
  const { cron, dueAt, taken } = schedule;
  const nextRunAt = nextMatch(cron, now);
  const { newest, older } = slotsUpTo(cron, dueAt, now, missedRowsMax);
  const latest = newest.at(-1);
  const records: SlotRecord[] = [];
  if (older > 0 && !taken.has(dueAt)) {
    records.push(missedTogether(dueAt, older, newest[0] as number));
  }
  let last: SlotRecord | null = null;
  for (const slot of newest) {
    if (taken.has(slot)) continue;
    const record = slot === latest ? judgeLatest(slot, schedule, refusal, now) : missed(slot);
    if (slot === latest) last = record;
    records.push(record);
  }
  return {
    records,
    runs: last?.outcome === 'fired' || last?.outcome === 'caught_up' ? last : null,
    isRefused: last !== null && last.outcome === refusal?.outcome,
    nextRunAt,
  };
}

function judgeLatest(
  slot: number,
  { isRunning }: DueSchedule,
  refusal: Refusal | null,
  now: number,
): SlotRecord {
  const lateMs = now - slot;
  if (lateMs >= catchUpMs) return missed(slot);
  if (refusal !== null) {
    return { slot, outcome: refusal.outcome, slots: 1, message: refusal.message };
  }
  if (isRunning) {
    const message = 'Skipped: the last run was still under way.';
    return { slot, outcome: 'overlapped', slots: 1, message };
  }
  if (lateMs <= onTimeMs) return { slot, outcome: 'fired', slots: 1, message: null };
  const message = `Run ${Math.floor(lateMs / 1000)} s after its minute, which had been missed.`;
  return { slot, outcome: 'caught_up', slots: 1, message };
}

function missed(slot: number): SlotRecord {
  const message = 'Missed: no scheduler was there in time.';
  return { slot, outcome: 'missed', slots: 1, message };
}

/** One record for all slots before `until`. */
function missedTogether(first: number, slots: number, until: number): SlotRecord {
  const message = `Missed: ${slots} slots from ${timestamp(first)} to before ${timestamp(until)}.`;
  return { slot: first, outcome: 'missed', slots, message };
}
