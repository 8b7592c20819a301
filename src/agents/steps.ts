/** The steps of jobs, as clients read them, and their deletion together with jobs. */
import type { Database, Transaction } from '../database/database.ts';
import { timestamp, timestampOrNull } from '../kernel/clock.ts';
import { deleteSteps, type ListedStep, listSteps } from './steps.store.ts';

/** A page of a job's steps, in order. */
export async function stepsOfJob(
  database: Database,
  jobId: string,
  page: { limit: number; offset: number },
) {
  const { steps, total } = await listSteps(database.read, jobId, page);
  return { steps: steps.map(stepBody), total };
}

/** Deletes the steps of jobs. */
export function removeSteps(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  return deleteSteps(tx, jobIds);
}

function stepBody(row: ListedStep) {
  const { n, kind, name, turn, status, message_id, prompt_tokens, completion_tokens } = row;
  const { started_at, finished_at } = row;
  return {
    step: n,
    parent_step_id: row.parent,
    generation_id: kind === 'skill' ? null : row.generation,
    kind,
    name,
    turn,
    status,
    error: row.error === null ? null : (JSON.parse(row.error) as { code: string; message: string }),
    message_id,
    prompt_tokens,
    completion_tokens,
    started_at: timestamp(started_at),
    finished_at: timestampOrNull(finished_at),
    // The clock may have been set back during the step.
    duration_ms: finished_at === null ? null : Math.max(0, finished_at - started_at),
  };
}
