/**
 * The row of a job that a run has just completed, for clients that wait for it: where the run has changed nothing but
 * the job's end, the row is known and need not be read.
 */
import { endOf } from '../../kernel/set-back.ts';
import type { ClaimedJob, ShownJob } from './jobs.store.ts';
import type { Settled } from './settle-effects.ts';

/** When a claimed job ended; not before it began, even if the clock was set back. */
export function finishedAt(
  { started_at, resumed_at }: Pick<ClaimedJob, 'started_at' | 'resumed_at'>,
  now: number,
  tookMs?: number,
): number {
  return endOf(resumed_at ?? started_at, now, tookMs);
}

/** The job's row after the commit of its end at `now`; undefined where it has to be read. */
export function completedJob(
  { unchanged, transition, tookMs }: Pick<Settled, 'unchanged' | 'transition' | 'tookMs'>,
  now: number,
): ShownJob | undefined {
  if (unchanged === undefined || transition.status !== 'completed') return undefined;
  return {
    ...unchanged,
    status: transition.status,
    output: transition.output,
    error: null,
    finished_at: finishedAt(unchanged, now, tookMs),
    progress: null,
    agent_version: null,
    erased_at: null,
    replaced_by: null,
    delivered_to: null,
  };
}
