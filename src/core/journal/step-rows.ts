/** The rows of steps: as they begin, and as they end. */
import type { Insertable } from 'kysely';
import type { JobStepsTable, StepKind, StepStatus } from '../../adapters/database/tables.ts';

/** The steps of a request to a model, which no code of a run requests by itself: their messages have what they resulted in. */
export const thoughtKinds: ReadonlySet<StepKind> = new Set(['model', 'tool', 'guard', 'generate']);

/** A job whose run calls models or takes steps, as one claim holds it. */
export interface JournalJob {
  readonly id: string;
  readonly epoch: number;
  readonly attempt: number;
  readonly organization_id: string;
  readonly agent_id: string;
  readonly user_id: string;
  /** 1: the run is for this user, whose memories it has. 0: `user_id` names the caller alone. */
  readonly for_user: number;
  readonly api_key_id: string;
  readonly conversation_id: string;
  readonly trigger_type: string;
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
  readonly created_at: number;
  /** The jobs that it goes on from; null for none. */
  readonly resumes: string | null;
  /** JSON: fields of the agent that it has instead of the saved ones. */
  readonly agent_overrides: string | null;
  /** JSON: the values that its instructions are filled with, as recorded before this claim. */
  readonly instruction_values: string | null;
}

/** Why a step has no result. */
export interface StepError {
  readonly code: string;
  readonly message: string;
}

/** The row of a step that begins. */
export function activeStep(
  { id: job_id, epoch }: JournalJob,
  step: Omit<Insertable<JobStepsTable>, 'job_id' | 'epoch' | 'status'>,
) {
  return { job_id, epoch, status: 'active' as const, ...step };
}

/** The columns that the end of a step changes. */
export function endedStep(
  job: JournalJob,
  n: number,
  { status, error }: { status: Exclude<StepStatus, 'active' | 'waiting'>; error: StepError | null },
  messageId: string | null,
  now: number,
) {
  return {
    job_id: job.id,
    n,
    status,
    error: error === null ? null : JSON.stringify(error),
    message_id: messageId,
    memory: null,
    result: null,
    prompt_tokens: null,
    completion_tokens: null,
    cache_read_tokens: null,
    cache_write_tokens: null,
    reasoning_tokens: null,
    cost: null,
    estimated: 0,
    estimated_cost: 0,
    finished_at: now,
  };
}
