/** What became of a slot, for people. */
import type { ScheduledRun } from '../api/schedules.ts';
import type { Tone } from '../ui/Status.tsx';

type Outcome = ScheduledRun['outcome'];

/** The meaning of a mark: how a run ended, or why the slot did not run. */
export type Fate = Exclude<Outcome, 'fired' | 'caught_up' | 'run_now'> | RunFate;
type RunFate = 'completed' | 'failed' | 'cancelled' | 'waiting' | 'gone';

export const outcomeWords: Record<Outcome, string> = {
  fired: 'On time',
  caught_up: 'Caught up',
  missed: 'Missed',
  overlapped: 'Overlapped',
  agent_paused: 'Agent paused',
  key_revoked: 'Key revoked',
  skill_inactive: 'Skill inactive',
  insufficient_scope: 'Scope missing',
  input_invalid: 'Input refused',
  run_now: 'Run by hand',
};

export const outcomeTone: Record<Outcome, Tone> = {
  fired: 'good',
  caught_up: 'good',
  run_now: 'accent',
  missed: 'warn',
  overlapped: 'warn',
  agent_paused: 'warn',
  key_revoked: 'bad',
  skill_inactive: 'bad',
  insufficient_scope: 'bad',
  input_invalid: 'bad',
};

export const fateWords: Record<Fate, string> = {
  completed: 'Ran and completed',
  failed: 'Ran and failed',
  cancelled: 'Cancelled',
  waiting: 'Queued, running or waiting',
  gone: 'Ran, its job is gone with age',
  missed: 'Missed',
  overlapped: 'Skipped: the last run was still active',
  agent_paused: 'Skipped: the agent was paused',
  key_revoked: 'Refused: its key is revoked or has expired',
  skill_inactive: 'Refused: the skill is not active',
  insufficient_scope: 'Refused: its key lacks a scope',
  input_invalid: 'Refused: the skill does not take the input',
};

export const fateTone: Record<Fate, Tone> = {
  completed: 'good',
  failed: 'bad',
  cancelled: 'neutral',
  waiting: 'busy',
  gone: 'neutral',
  missed: 'warn',
  overlapped: 'warn',
  agent_paused: 'warn',
  key_revoked: 'bad',
  skill_inactive: 'bad',
  insufficient_scope: 'bad',
  input_invalid: 'bad',
};

const ran: readonly Outcome[] = ['fired', 'caught_up', 'run_now'];

export function fateOf({ outcome, status }: ScheduledRun): Fate {
  if (!ran.includes(outcome)) return outcome as Fate;
  if (status === null) return 'gone';
  return status === 'queued' || status === 'active' ? 'waiting' : status;
}

/** A mark in words: time, outcome, and whether it was late. */
export function runWords(run: ScheduledRun): string {
  const time = run.scheduled_for.slice(11, 16);
  const many = run.slots > 1 ? ` (${run.slots} slots)` : '';
  const how =
    run.outcome === 'caught_up' ? ', late' : run.outcome === 'run_now' ? ', asked for by hand' : '';
  return `${time} UTC: ${fateWords[fateOf(run)]}${how}${many}`;
}
