/** Jobs as clients see them. */
import type { Static } from 'typebox';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { priorities } from '../../kernel/priority.ts';
import type { AgentOverrides } from '../agents/agents.schemas.ts';
import { profileName } from '../agents/instruction-values.ts';
import type { TokenSums } from '../conversations/conversations.ts';
import type { AcceptedJob } from './accept.ts';
import { waitingFor } from './gates/gates.ts';
import type { ListedJobRow, TimedJob } from './job-lists.store.ts';
import type { JobRow, ShownJob } from './jobs.store.ts';
import { queueOf } from './queues.ts';
import type { JobError } from './states.ts';

/** A job as `202` responses contain it. */
export function jobSummary(row: Omit<AcceptedJob, 'organization_id'>, status: JobRow['status']) {
  return {
    job_id: row.id,
    status,
    conversation_id: row.conversation_id,
    agent_id: row.agent_id,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    created_at: timestamp(row.created_at),
  };
}

/** A job as lists contain it. */
export function listedJob(row: ListedJobRow) {
  return { ...jobSummary(row, row.status), parent_job_id: row.parent_job_id };
}

/** How a job went, or has gone so far. */
export function timing({ started_at, finished_at, ...row }: Omit<TimedJob, keyof ListedJobRow>) {
  return {
    trigger_type: row.trigger_type,
    user_id: row.user_id,
    attempt: row.attempt,
    max_attempts: row.max_attempts,
    run_at: timestamp(row.run_at),
    expires_at: timestampOrNull(row.expires_at),
    started_at: timestampOrNull(started_at),
    finished_at: timestampOrNull(finished_at),
    duration_ms:
      started_at === null || finished_at === null ? null : Math.max(0, finished_at - started_at),
    error: row.error === null ? null : (JSON.parse(row.error) as JobError),
    is_trial: Boolean(row.is_trial),
  };
}

/** The values of a job without the profile of its user, which needs a scope of its own. */
function shownValues(json: string | null): Record<string, string> | null {
  if (json === null) return null;
  const { [profileName]: profile, ...values } = JSON.parse(json) as Record<string, string>;
  return profile !== undefined && Object.keys(values).length === 0 ? null : values;
}

export function jobView(row: ShownJob, tokens: TokenSums) {
  return {
    ...listedJob(row),
    input: JSON.parse(row.input) as unknown,
    output: row.output === null ? null : (JSON.parse(row.output) as unknown),
    ...timing({ ...row, is_trial: row.agent_overrides !== null }),
    queue: queueOf(row.trigger_type),
    priority: priorities[row.priority] ?? 'normal',
    retry_of: row.retry_of,
    is_resumed: row.resumes !== null,
    batch_id: row.batch_id,
    waiting_for: row.held_by === null ? null : waitingFor(row.held_by),
    job_key: row.job_key,
    replaced_by: row.replaced_by,
    delivered_to: row.delivered_to,
    agent_overrides:
      row.agent_overrides === null
        ? null
        : (JSON.parse(row.agent_overrides) as Static<typeof AgentOverrides>),
    agent_version: row.agent_version,
    instruction_values: shownValues(row.instruction_values),
    progress:
      row.progress === null
        ? null
        : (JSON.parse(row.progress) as { fraction: number; note: string | null }),
    erased_at: timestampOrNull(row.erased_at),
    ...tokens,
  };
}
