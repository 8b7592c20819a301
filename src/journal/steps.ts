/** The steps of jobs, as clients read them, and their deletion together with jobs. */
import type { Database } from '../database/database.ts';
import type { PageAsked } from '../database/page-bytes.ts';
import { timestamp, timestampOrNull } from '../kernel/clock.ts';
import { deleteSteps, type ListedStep, listSteps } from './step-queries.ts';
import type { StepError } from './step-rows.ts';

/** A page of a job's steps, in order. */
export async function stepsOfJob(database: Database, jobId: string, page: PageAsked) {
  const { steps, total } = await listSteps(database.read, jobId, page);
  return { steps: steps.map(stepBody), total };
}

/** Deletes the steps of jobs. */
export const removeSteps = deleteSteps;

function stepBody(row: ListedStep) {
  const { n, parent, generation, error, started_at, finished_at, ...listed } = row;
  return {
    step: n,
    parent_step_id: parent,
    generation_id: row.kind === 'skill' ? null : generation,
    ...listed,
    error: error === null ? null : (JSON.parse(error) as StepError),
    started_at: timestamp(started_at),
    finished_at: timestampOrNull(finished_at),
    // The clock may have been set back during the step.
    duration_ms: finished_at === null ? null : Math.max(0, finished_at - started_at),
  };
}
