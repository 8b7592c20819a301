/** Retry: accepts a failed or cancelled job's input again, as a new job, which may go on from the record of the old one. */

import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { AgentFields } from '../agents/agent-rows.ts';
import { userNameIn } from '../agents/instruction-values.ts';
import type { Context } from '../context/context.ts';
import { jobsOnRecord, resumedFrom } from '../journal/taken-over.ts';
import { lookupOf } from '../skills/registry.ts';
import {
  agentPaused,
  type Executed,
  executedOf,
  refuseInvalid,
  replayOf,
  requireConversationScope,
  requireFileScope,
} from './execute.ts';
import type { IdempotencyKey } from './idempotency.ts';
import type { JobRow } from './jobs.store.ts';
import type { JobsParts } from './jobs.ts';
import { resumesMax } from './resumed-jobs.ts';

export async function retryJob(
  { config, database, clock }: Context,
  { skills, agents, conversations, acceptor }: JobsParts,
  caller: Caller,
  job: JobRow,
  options: {
    /** Makes repeats of the request one job. */
    readonly idempotency?: IdempotencyKey | undefined;
    /** Whether it goes on from the record, in the same conversation. */
    readonly isResumed?: boolean;
    /** The user whom the request names: a job that was for none is for this one. */
    readonly user?: string | undefined;
  } = {},
): Promise<Executed> {
  const { user, idempotency } = options;
  const skill = skills.active(...lookupOf(caller.organizationId, job));
  const agent = await agents.stateOf(caller.organizationId, job.agent_id);
  requireScopes(caller.scopes, skill.requiredScopes);
  const input: unknown = JSON.parse(job.input);
  requireFileScope(config, caller, skill, input);
  // That of an erased job is gone.
  const conversation =
    job.erased_at === null
      ? await conversations.find(caller.organizationId, job.conversation_id)
      : null;
  const isContinued =
    conversation !== null &&
    (options.isResumed === true || conversation.created_at < job.created_at);
  if (isContinued) {
    requireConversationScope(config, caller);
    // An agent does not continue a conversation that a deleted agent of the same id began.
    await agents.findSince(caller.organizationId, job.agent_id, conversation.created_at);
  }
  if (job.agent_overrides !== null) {
    const fields = JSON.parse(job.agent_overrides) as AgentFields;
    await agents.requireOverridable(caller, job.agent_id, fields);
  }
  const earlier = idempotency && (await replayOf(database.read, clock.now(), idempotency));
  if (earlier !== undefined) return executedOf(earlier);
  refuseJob(job, user);
  if (conversation === null) {
    throw new PlatformError('job_not_retryable', 'The input of the job was erased');
  }
  const resumes = options.isResumed ? resumedFrom(job) : undefined;
  if (resumes !== undefined) refuseManyResumes(job);
  // The version may have been changed in place since.
  refuseInvalid(skill, input);
  if (agent.status === 'paused') throw agentPaused(job.agent_id);
  const acceptance = await acceptor.accept({
    organizationId: caller.organizationId,
    apiKeyId: caller.keyId,
    agentId: job.agent_id,
    userId: user ?? job.user_id,
    userName: userNameIn(job),
    instructionValues: options.isResumed ? job.instruction_values : null,
    isForUser: user !== undefined || job.for_user === 1,
    triggerType: 'api',
    skill,
    maxAttempts: skill.maxAttempts,
    priority: job.priority,
    concurrencyKey: job.concurrency_key ?? undefined,
    input: job.input,
    agentOverrides: job.agent_overrides,
    retryOf: job.id,
    ...(resumes === undefined ? {} : { resumes }),
    idempotency,
    // A continued conversation is continued again; a job that began its own begins a new one.
    ...(isContinued ? { conversationId: conversation.id } : {}),
  });
  return executedOf(acceptance, conversation.id);
}

/** Throws for a job of another user (`409`), and one that has neither failed nor was cancelled (`422`). */
function refuseJob(job: JobRow, user: string | undefined): void {
  if (user !== undefined && job.for_user === 1 && user !== job.user_id) {
    const message = "The job is another user's, and is not run again for this one";
    throw new PlatformError('conflict', message);
  }
  if (job.status !== 'failed' && job.status !== 'cancelled') {
    throw new PlatformError('job_not_retryable', `The job is ${job.status}`);
  }
}

function refuseManyResumes(job: JobRow): void {
  if (jobsOnRecord(job).length <= resumesMax) return;
  const message = `The job goes on from ${resumesMax} others: run it again from the beginning`;
  throw new PlatformError('job_not_retryable', message);
}
