/** Builds the request to accept a run of a scheduled job, for the tick and for clients. */
import type { WorkRequest } from '../../core/jobs/accept.ts';
import type { IdempotencyKey } from '../../core/jobs/idempotency.ts';
import type { Skill } from '../../core/skills/registry.ts';
import type { Caller } from '../../kernel/caller.ts';
import { firstPriority, type Priority } from '../../kernel/priority.ts';
import type { ScheduledJobRow } from './schedules.store.ts';

/** Attempts of a scheduled run, regardless of its skill: one and three retries (specification: Limits). */
const attemptsMax = 4;

/** A run in the name of the caller's key; with the priority of the agent where the scheduled job has none. */
export function runRequest(
  job: Pick<ScheduledJobRow, 'organization_id' | 'agent_id' | 'input' | 'priority'>,
  caller: Caller,
  skill: Skill,
  ofAgent: Priority | null,
  idempotency?: IdempotencyKey,
): WorkRequest {
  return {
    organizationId: job.organization_id,
    apiKeyId: caller.keyId,
    agentId: job.agent_id,
    userId: caller.clientName,
    triggerType: 'scheduled',
    skill,
    maxAttempts: attemptsMax,
    priority: firstPriority(job.priority, ofAgent),
    input: job.input,
    retryOf: null,
    idempotency,
  };
}
