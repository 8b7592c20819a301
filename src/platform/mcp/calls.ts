/**
 * A call of a tool is a job: accepted by the same verb as `POST /api/{category}/{version}/{skill-name}`, so with the
 * same checks, limits and records. This module accepts it and follows it to its end. Never decides what a
 * client may do; `Execution` does.
 */

import type { AcceptedJob } from '../../core/jobs/accept.ts';
import type { Execution } from '../../core/jobs/execute.ts';
import type { JobEvent } from '../../core/jobs/feed.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
import type { Caller } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { EndedJob } from './results.ts';
import type { SkillTool } from './tools.ts';

/** Effectively no timeout: the client decides how long it waits. */
const waitMs = 2 ** 31 - 1;

export interface CallsDeps {
  readonly execution: Execution;
  readonly jobs: Jobs;
  readonly approvals: Approvals;
  /** The events of a job, from its beginning. */
  openStream(organizationId: string, jobId: string, signal: AbortSignal): AsyncIterable<JobEvent>;
}

/** The options of a call beside the tool and its input. */
export interface CallOptions {
  readonly agentId?: string | undefined;
  readonly conversationId?: string | undefined;
  readonly userId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** Accepts the job of a call. */
export async function begin(
  { execution }: Pick<CallsDeps, 'execution'>,
  caller: Caller,
  { skill }: SkillTool,
  input: unknown,
  { agentId, conversationId, userId, idempotencyKey }: CallOptions,
): Promise<AcceptedJob> {
  const path = { category: skill.category, version: skill.version, skillName: skill.name };
  const target = await execution.findTarget(caller, path, () => ({ agentId, conversationId }));
  const { job } = await execution.execute(caller, target, input, {
    userId: userId ?? caller.clientName,
    isForUser: userId !== undefined,
    triggerType: 'api',
    idempotency:
      idempotencyKey === undefined ? undefined : { owner: caller.keyId, key: idempotencyKey },
  });
  return job;
}

/** A pending approval of a job. */
export type Question = Awaited<ReturnType<Approvals['list']>>['data'][number];

/** The result of following a job; null if the signal aborted first. */
export type Followed =
  | { readonly kind: 'ended'; readonly job: EndedJob }
  | { readonly kind: 'asks'; readonly questions: readonly Question[] }
  | null;

/** The events of a running job that the client wants. */
export interface Following {
  readonly signal: AbortSignal;
  /** Undefined if the client does not want progress. */
  readonly onProgress?: ((progress: { fraction: number; note: string | null }) => void) | undefined;
  /** Undefined if the client does not want the log. */
  readonly onLog?: ((line: Readonly<Record<string, unknown>>) => void) | undefined;
  /** Selects the approvals for which following ends while the job waits; undefined for none. */
  readonly asks?: ((question: Question) => boolean) | undefined;
}

/** Waits for the end of a job, or for its next question. */
export async function follow(
  deps: CallsDeps,
  organizationId: string,
  jobId: string,
  following: Following,
): Promise<Followed> {
  const { signal, onProgress, onLog, asks } = following;
  if (onProgress === undefined && onLog === undefined && asks === undefined) {
    return ended(await deps.jobs.awaitEnd(organizationId, jobId, waitMs, signal));
  }
  for await (const { type, data } of deps.openStream(organizationId, jobId, signal)) {
    if (type === 'progress') onProgress?.(data as { fraction: number; note: string | null });
    if (type === 'log') onLog?.(data);
    const isAsking = (type === 'status' && data['status'] === 'waiting') || type === 'approval';
    if (!isAsking || asks === undefined) continue;
    const questions = (await pendingQuestions(deps, organizationId, jobId)).filter(asks);
    if (questions.length > 0) return { kind: 'asks', questions };
  }
  // The stream also ends when too much of it was missed.
  return ended(
    await deps.jobs.awaitEnd(organizationId, jobId, signal.aborted ? 0 : waitMs, signal),
  );
}

function ended(job: EndedJob | null): Followed {
  return job === null ? null : { kind: 'ended', job };
}

/** The most questions that one answer asks. */
const questionsMax = 20;

/** The approvals that a job waits for. */
export async function pendingQuestions(
  { approvals }: Pick<CallsDeps, 'approvals'>,
  organizationId: string,
  jobId: string,
): Promise<readonly Question[]> {
  const page = { limit: questionsMax, offset: 0 };
  const filters = { job_id: jobId, status: 'pending' as const };
  const { data } = await approvals.list(organizationId, filters, page);
  return data;
}

/** Cancels the job of a disconnected client, unless the job has ended. */
export async function abandon(
  { jobs }: Pick<CallsDeps, 'jobs'>,
  organizationId: string,
  jobId: string,
): Promise<void> {
  try {
    await jobs.cancel(organizationId, jobId);
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === 'job_not_cancellable')) throw error;
  }
}
