/**
 * A call of a tool is a job: accepted by the same verb as `POST /api/{category}/{version}/{skill-name}`, so with the
 * same checks, limits and records. This module accepts it and follows it to its end. Never decides what a
 * client may do; `Execution` does.
 */

import type { Context } from '../../core/context/context.ts';
import type { Files } from '../../core/files/files.ts';
import type { AcceptedJob } from '../../core/jobs/accept.ts';
import type { Execution } from '../../core/jobs/execute.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
import type { Caller } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { ClientNotices, Progress } from './client-notices.ts';
import { ResultFiles } from './result-files.ts';
import type { EndedJob } from './results.ts';
import type { SkillTool } from './tools.ts';

/** Effectively no timeout: the client decides how long it waits. */
const waitMs = 2 ** 31 - 1;

/** The most questions that one answer asks. */
const questionsMax = 20;

/** The options of a call beside the tool and its input. */
export interface CallOptions {
  readonly agentId?: string | undefined;
  readonly conversationId?: string | undefined;
  readonly userId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** A pending approval of a job. */
export type Question = Awaited<ReturnType<Approvals['list']>>['data'][number];

/** The result of following a job; null if the signal aborted first. */
export type Followed =
  | { readonly kind: 'ended'; readonly job: EndedJob }
  | { readonly kind: 'asks'; readonly questions: readonly Question[] }
  | null;

/** What a client gets of a running job. */
interface Following {
  readonly signal: AbortSignal;
  readonly notices: ClientNotices;
  /** Selects the approvals for which following ends while the job waits; undefined for none. */
  readonly asks?: ((question: Question) => boolean) | undefined;
}

/** The slices in which calls of tools run. */
export interface CallSlices {
  readonly execution: Execution;
  readonly jobs: Jobs;
  readonly approvals: Approvals;
  readonly files: Files;
}

/** The jobs of calls of tools. */
export class ToolCalls {
  readonly jobs: Jobs;
  readonly approvals: Approvals;
  readonly files: ResultFiles;
  readonly #execution: Execution;

  constructor({ config }: Context, { execution, jobs, approvals, files }: CallSlices) {
    this.#execution = execution;
    this.jobs = jobs;
    this.approvals = approvals;
    this.files = new ResultFiles(files, config);
  }

  /** Accepts the job of a call. */
  async begin(
    caller: Caller,
    { skill }: SkillTool,
    input: unknown,
    { agentId, conversationId, userId, idempotencyKey }: CallOptions,
  ): Promise<AcceptedJob> {
    const path = { category: skill.category, version: skill.version, skillName: skill.name };
    const fields = () => ({ agentId, conversationId });
    const target = await this.#execution.findTarget(caller, path, fields);
    const { job } = await this.#execution.execute(caller, target, input, {
      userId: userId ?? caller.clientName,
      isForUser: userId !== undefined,
      triggerType: 'api',
      idempotency:
        idempotencyKey === undefined ? undefined : { owner: caller.keyId, key: idempotencyKey },
    });
    return job;
  }

  /** Waits for the end of a job, or for its next question. */
  async follow(organizationId: string, jobId: string, following: Following): Promise<Followed> {
    const { signal, notices, asks } = following;
    if (!notices.hasAny && asks === undefined) {
      return ended(await this.jobs.awaitEnd(organizationId, jobId, waitMs, signal));
    }
    const range = { after: null, isFollowed: true };
    const events = this.jobs.events(organizationId, jobId, range, signal);
    for await (const { type, data } of events) {
      if (type === 'progress') notices.sendProgress(data as Progress);
      if (type === 'log') notices.sendLog(data);
      const isAsking = (type === 'status' && data.status === 'waiting') || type === 'approval';
      if (!isAsking || asks === undefined) continue;
      const questions = (await this.pendingQuestions(organizationId, jobId)).filter(asks);
      if (questions.length > 0) return { kind: 'asks', questions };
    }
    // The stream also ends when too much of it was missed.
    const ms = signal.aborted ? 0 : waitMs;
    return ended(await this.jobs.awaitEnd(organizationId, jobId, ms, signal));
  }

  /** The approvals that a job waits for. */
  async pendingQuestions(organizationId: string, jobId: string): Promise<readonly Question[]> {
    const page = { limit: questionsMax, offset: 0 };
    const filters = { job_id: jobId, status: 'pending' as const };
    const { data } = await this.approvals.list(organizationId, filters, page);
    return data;
  }

  /** Cancels the job of a disconnected client, unless the job has ended. */
  async abandon(organizationId: string, jobId: string): Promise<void> {
    try {
      await this.jobs.cancel(organizationId, jobId);
    } catch (error) {
      if (!(error instanceof PlatformError && error.code === 'job_not_cancellable')) throw error;
    }
  }
}

function ended(job: EndedJob | null): Followed {
  return job === null ? null : { kind: 'ended', job };
}
