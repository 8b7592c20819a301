/** Jobs as clients read, await, cancel and repeat them (docs/decisions/jobs.md). */

import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { RequestHits } from '../../adapters/http/request-hits.ts';
import type { Caller } from '../../kernel/caller.ts';
import { timestamp } from '../../kernel/clock.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import type { Agents } from '../agents/agents.ts';
import type { Context } from '../context/context.ts';
import { type Conversations, noTokenSums } from '../conversations/conversations.ts';
import { promptOfStep } from '../journal/prompts/read-prompts.ts';
import { waitInWords } from '../journal/provider-waits.ts';
import type { StepsPage } from '../journal/step-queries.ts';
import { stepsOfJob } from '../journal/steps.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { AcceptedJob, Acceptor } from './accept.ts';
import { changeJob, type JobChange, requireChangeable } from './change-job.ts';
import type { Executed } from './execute.ts';
import type { JobEvent, JobFeed, Position } from './feed.ts';
import { isTimedPause } from './gates/gates.ts';
import { keyOfCaller } from './idempotency.ts';
import { type JobFilters, listJobs, listTimedJobs } from './job-lists.store.ts';
import { jobView, listedJob, timing } from './job-views.ts';
import { findJob, type JobRow, requestCancellation, type ShownJob } from './jobs.store.ts';
import { cancelMany, type ManyCommand, retryMany } from './many-jobs/many-jobs.ts';
import { retryJob } from './retry.ts';
import type { RunningJobs } from './runs/running-jobs.ts';
import type { Settler } from './settle.ts';
import { isFinal } from './states.ts';
import { beginning, jobStream, recordedEvents } from './stream.ts';

/** What reading, cancelling and repeating jobs needs of the other slices. */
export interface JobsParts {
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  readonly conversations: Conversations;
  readonly acceptor: Acceptor;
  readonly settler: Settler;
  readonly running: RunningJobs;
  readonly feed: JobFeed;
}

export class Jobs {
  readonly context: Context;
  readonly parts: JobsParts;

  constructor(context: Context, parts: JobsParts) {
    this.context = context;
    this.parts = parts;
  }

  async list(organizationId: string, filters: JobFilters, page: PageAsked) {
    const { read } = this.context.database;
    const { jobs, total } = await listJobs(read, organizationId, filters, page);
    return { jobs: jobs.map(listedJob), total };
  }

  /** Like `list`, with how each of them went. */
  async listTimed(organizationId: string, filters: JobFilters, page: PageAsked) {
    const { read } = this.context.database;
    const { jobs, total } = await listTimedJobs(read, organizationId, filters, page);
    return { jobs: jobs.map((row) => ({ ...listedJob(row), ...timing(row) })), total };
  }

  /** The organization's job, or `404 not_found`. */
  async find(organizationId: string, id: string): Promise<JobRow> {
    const { read } = this.context.database;
    const row = isId(id) ? await findJob(read, organizationId, id) : undefined;
    if (row === undefined) throw notFound('Job');
    return row;
  }

  async get(organizationId: string, id: string) {
    return viewOf(this, await this.find(organizationId, id));
  }

  /** What a job has done so far, in order. */
  steps(jobId: string, page: StepsPage) {
    return stepsOfJob(this.context.database, jobId, page);
  }

  /** What a call of a model was sent, or `404 not_found`. */
  prompt(jobId: string, step: number, as: 'whole' | 'difference') {
    return promptOfStep(this.context.database, jobId, step, as);
  }

  /** The events of a job after a position: those so far, or all until it ends or the signal aborts. */
  events(
    organizationId: string,
    jobId: string,
    { after, isFollowed }: { after: Position | null; isFollowed: boolean },
    signal: AbortSignal,
  ): AsyncIterable<JobEvent> {
    const { database } = this.context;
    const position = after ?? beginning;
    if (!isFollowed) return recordedEvents(database, organizationId, jobId, position);
    const source = { database, feed: this.parts.feed };
    return jobStream(source, organizationId, jobId, position, signal);
  }

  /** The job once it has ended, or null after `ms` milliseconds, or when `signal` aborts. */
  awaitEnd(organizationId: string, id: string, ms: number, signal: AbortSignal) {
    return untilEnd(
      this,
      { organization_id: organizationId, id },
      { ms, signal, isRunning: false },
    );
  }

  /** Like `awaitEnd`, for a job that the caller has just accepted: most of these are run here, and not read. */
  awaitAccepted(job: Pick<AcceptedJob, 'organization_id' | 'id'>, ms: number, signal: AbortSignal) {
    return untilEnd(this, job, { ms, signal, isRunning: this.parts.running.isRunning(job.id) });
  }

  /** Cancels: a queued job at once, an active one as soon as its run has stopped. */
  async cancel(organizationId: string, id: string) {
    for (;;) {
      const job = await this.find(organizationId, id);
      if (job.status === 'cancelled') return viewOf(this, job);
      if (isFinal(job.status)) {
        throw new PlatformError('job_not_cancellable', `The job has already ended: ${job.status}`);
      }
      // Its status may have changed since it was read; then it is read again.
      if (await cancelStored(this, id)) break;
    }
    this.parts.running.cancel(id);
    return this.get(organizationId, id);
  }

  /** Throws `404` or `403` for a caller that may not change the job. */
  async requireChangeable(caller: Caller, id: string): Promise<void> {
    requireChangeable(this.parts.skills, caller, await this.find(caller.organizationId, id));
  }

  /** Moves the beginning of a queued job. */
  async change(organizationId: string, id: string, change: JobChange) {
    const { places } = this.parts.settler.parts;
    await changeJob(this.context, places, await this.find(organizationId, id), change);
    return this.get(organizationId, id);
  }

  /** Cancels all jobs that filters name. */
  cancelMany(organizationId: string, command: ManyCommand) {
    return cancelMany({ ...this.parts, context: this.context }, organizationId, command);
  }

  /** Runs all failed or cancelled jobs that filters name again. */
  retryMany(caller: Caller, command: ManyCommand, hits: RequestHits) {
    return retryMany({ ...this.parts, context: this.context }, caller, command, hits);
  }

  /**
   * Runs a failed or cancelled job's input again, as a new job; `isResumed` goes on from the record. A repeat with `key`
   * gets the job of the first.
   */
  async retry(
    caller: Caller,
    id: string,
    isResumed = false,
    user?: string,
    key?: string,
  ): Promise<Executed> {
    const job = await this.find(caller.organizationId, id);
    const idempotency = keyOfCaller(caller, key, ['retry', job.id, isResumed, user]);
    return retryJob(this.context, this.parts, caller, job, { isResumed, user, idempotency });
  }
}

async function viewOf({ context, parts }: Jobs, row: JobRow) {
  const view = jobView(row, await parts.conversations.tokensOfJob(row.conversation_id, row.id));
  if (row.status === 'waiting' && row.held_by === null) {
    return { ...view, waiting_for: await waitInWords(context.database.read, row.id) };
  }
  if (row.held_by === null || !isTimedPause(row.held_by)) return view;
  const { places } = parts.settler.parts;
  const end = (await places.uses.pauseEnds(context.database.read, [row.held_by])).get(row.held_by);
  if (end === undefined) return view;
  return { ...view, waiting_for: `${view.waiting_for} until ${timestamp(end)}` };
}

/** `isRunning` says that a run here is going to publish the end, so that the job need not be read before. */
async function untilEnd(
  jobs: Jobs,
  { organization_id, id }: Pick<AcceptedJob, 'organization_id' | 'id'>,
  { ms, signal, isRunning }: { ms: number; signal: AbortSignal; isRunning: boolean },
) {
  let ending = Promise.withResolvers<ShownJob | undefined>();
  let isOver = signal.aborted || ms <= 0;
  // Listening first, so that an end between the read and the wait is not missed.
  const subscription = jobs.parts.feed.subscribe(id, (event, ended) => {
    const isEnd = event?.type === 'status' && isFinal(event.data['status'] as JobRow['status']);
    if (event === null || isEnd) ending.resolve(ended);
  });
  const end = () => {
    isOver = true;
    ending.resolve(undefined);
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end, { once: true });
  try {
    await subscription.ready;
    for (let mayHaveEnded = isOver || !isRunning; ; mayHaveEnded = true) {
      const isLast = isOver;
      const row = mayHaveEnded ? await jobs.find(organization_id, id) : undefined;
      if (row !== undefined && isFinal(row.status)) return await viewOf(jobs, row);
      if (mayHaveEnded && isLast) return null;
      const ended = await ending.promise;
      if (ended !== undefined) return jobView(ended, noTokenSums);
      ending = Promise.withResolvers();
      if (isOver) ending.resolve(undefined);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    subscription.stop();
  }
}

/** Ends a queued or waiting job, or marks an active one; false when it is neither any more. */
function cancelStored({ context, parts }: Jobs, id: string): Promise<boolean> {
  const { database, clock } = context;
  const { settler } = parts;
  return database.write(async (tx) => {
    if ((await settler.cancelUnclaimed(tx, [id])) > 0) return true;
    if ((await requestCancellation(tx, { id, now: clock.now() })) === undefined) return false;
    await settler.cancelBelow(tx, [id]);
    return true;
  });
}
