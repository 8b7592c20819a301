/** Builds the request to accept a run of a scheduled job, for the tick and for clients. */
import type { ScheduledJobsTable } from '../../adapters/database/tables.ts';
import type { WorkRequest } from '../../core/jobs/accept.ts';
import type { Skill } from '../../core/skills/registry.ts';
import type { Caller } from '../../kernel/caller.ts';

/** Attempts of a scheduled run, regardless of its skill: one and three retries (specification: Limits). */
const attemptsMax = 4;

/** A run in the name of the caller's key. */
export function runRequest(
  job: Pick<ScheduledJobsTable, 'organization_id' | 'agent_id' | 'input'>,
  caller: Caller,
  skill: Skill,
): WorkRequest {
  return {
    organizationId: job.organization_id,
    apiKeyId: caller.keyId,
    agentId: job.agent_id,
    userId: caller.clientName,
    triggerType: 'scheduled',
    skill,
    maxAttempts: attemptsMax,
    input: job.input,
    retryOf: null,
  };
}
