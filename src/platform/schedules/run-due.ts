/**
 * Decides which slot of a due scheduled job runs and which outcome the others get
 * (docs/decisions/schedules.md). Pure; time is passed in.
 */
import type { SlotOutcome } from '../../adapters/database/tables.ts';
import { timestamp } from '../../kernel/clock.ts';
import { firstSlots, slotsUpTo } from './due-slots.ts';
import { nextSlot, type Timetable } from './timetable.ts';

/** A slot counts as on time up to this long after its minute has begun. */
const onTimeMs = 10_000;
/** A missed slot is caught up if it is less late than this. */
const catchUpMs = 60 * 60 * 1000;
/** After a downtime the newest slots get a row each; all older ones share one. */
const rowsMax = 60;
const minuteMs = 60_000;
/** The time until the next check of a scheduled job whose timetable is unknown. */
const unknownAgainMs = 24 * 60 * 60 * 1000;
const noScheduler = 'no scheduler was there in time';

/** Why a due slot may not run. */
export interface Refusal {
  readonly outcome: Extract<
    SlotOutcome,
    'key_revoked' | 'skill_inactive' | 'insufficient_scope' | 'input_invalid' | 'agent_paused'
  >;
  /** The API's error code for the same request. */
  readonly code: string;
  readonly message: string;
}

/** A scheduled job whose `next_run_at` has come. */
export interface DueSchedule {
  readonly timetable: Timetable;
  /** Its `next_run_at`. */
  readonly dueAt: number;
  /** Whether its last run is still under way. */
  readonly isRunning: boolean;
  /** Due slots that were already recorded before the clock was set back. */
  readonly taken: ReadonlySet<number>;
}

/** The record of a slot. */
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
  const nextRunAt = nextSlot(schedule.timetable, now);
  const records = missedSlots(schedule, noScheduler, now);
  const last = records.at(-1);
  // The newest slot may have been recorded before the clock was set back.
  if (last === undefined || nextSlot(schedule.timetable, last.slot) !== nextRunAt) {
    return { records, runs: null, isRefused: false, nextRunAt };
  }
  const newest = decideNewest(last.slot, schedule, refusal, now);
  return {
    records: [...records.slice(0, -1), newest],
    runs: newest.outcome === 'fired' || newest.outcome === 'caught_up' ? newest : null,
    isRefused: newest.outcome === refusal?.outcome,
    nextRunAt,
  };
}

/**
 * Refuses the due slot of a scheduled job whose further slots cannot be computed. The next check is a day later: a
 * start of the platform, which may know its zone again, computes its next slot.
 */
export function refuseUnknown(
  { dueAt, taken }: Omit<DueSchedule, 'timetable'>,
  { outcome, message }: Refusal,
  now: number,
): Decision {
  const records = taken.has(dueAt) ? [] : [{ slot: dueAt, outcome, slots: 1, message }];
  const nextRunAt = Math.ceil((now + unknownAgainMs) / minuteMs) * minuteMs;
  return { records, runs: null, isRefused: records.length > 0, nextRunAt };
}

/** All slots that have come by `now` as missed, oldest first; `why` ends a sentence. */
export function missedSlots(
  { timetable, dueAt, taken }: Pick<DueSchedule, 'timetable' | 'dueAt' | 'taken'>,
  why: string,
  now: number,
): SlotRecord[] {
  const { newest, older } = slotsUpTo(timetable, dueAt, now, rowsMax);
  const records = newest.filter((slot) => !taken.has(slot)).map((slot) => missed(slot, why));
  if (older === 0 || taken.has(dueAt)) return records;
  return [missedTogether(dueAt, older, newest[0] as number, why), ...records];
}

/** An upper bound of the records for the slots from `dueAt` to `now`. */
export function recordsDue(timetable: Timetable, dueAt: number, now: number): number {
  return firstSlots(timetable, dueAt, now + 1, rowsMax + 1).length;
}

function decideNewest(
  slot: number,
  { isRunning }: DueSchedule,
  refusal: Refusal | null,
  now: number,
): SlotRecord {
  const lateMs = now - slot;
  if (lateMs >= catchUpMs) return missed(slot, noScheduler);
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

function missed(slot: number, why: string): SlotRecord {
  return { slot, outcome: 'missed', slots: 1, message: `Missed: ${why}.` };
}

/** One record for all slots before `until`. */
function missedTogether(first: number, slots: number, until: number, why: string): SlotRecord {
  const between = `from ${timestamp(first)} to before ${timestamp(until)}`;
  const message = `Missed: ${why}, for ${slots} slots ${between}.`;
  return { slot: first, outcome: 'missed', slots, message };
}
