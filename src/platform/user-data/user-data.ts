/** The data of users: their erasure, with the jobs that are cancelled before it, and what an export reads. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import type { Files } from '../../core/files/files.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
import type { Memories } from '../../core/memories/memories.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { type Erased, Erasure } from './erasure.ts';
import { type OfUser, openJobs } from './user-data.store.ts';

/** Links to jobs in a refusal. */
const linkedMax = 5;
/** Jobs that are cancelled before the open jobs are read again, and the time between two reads. */
const cancelledMax = 200;
const cancelPollMs = 50;
/** After so long the request is answered, and a repetition goes on. Half of it at most is for cancelling. */
const budgetMs = 20_000;

function refusalOf({ ids, total }: OpenJobs, { userId }: OfUser): PlatformError {
  const links = ids.slice(0, linkedMax).map((id) => `/api/jobs/${id}`);
  const list = `/api/jobs?user_id=${encodeURIComponent(userId)}`;
  const more = total > links.length ? ', …' : '';
  return new PlatformError(
    'conflict',
    `Jobs of the user that have not ended: ${total} (${links.join(', ')}${more}; the user's jobs: ${list}). ` +
      'Send cancel_jobs=true to cancel them, or wait for their ends',
  );
}

type OpenJobs = Awaited<ReturnType<typeof openJobs>>;

/** The data that the platform keeps of users. */
export class UserData {
  readonly database: Database;
  readonly memories: Memories;
  readonly files: Files;
  readonly jobs: Jobs;
  readonly #context: Context;

  constructor(
    context: Context,
    slices: { readonly memories: Memories; readonly files: Files; readonly jobs: Jobs },
  ) {
    this.database = context.database;
    this.#context = context;
    this.memories = slices.memories;
    this.files = slices.files;
    this.jobs = slices.jobs;
  }

  /**
   * Erases the data of a user. Throws `409 conflict` where jobs of the user have not ended and are not to be cancelled,
   * and then nothing was erased. Where they are to be cancelled and do not end in time, nothing was erased either, and
   * `waits_for` names one of them, as it names a job that is accepted meanwhile.
   */
  async erase(user: OfUser, cancelsJobs = false): Promise<Erased> {
    const { database, clock, log } = this.#context;
    const until = clock.monotonic() + budgetMs;
    const open = cancelsJobs
      ? await this.#cancelOpenJobs(user, () => clock.monotonic() >= until - budgetMs / 2)
      : await openJobs(database.read, user, linkedMax);
    if (open.total > 0 && !cancelsJobs) throw refusalOf(open, user);
    const erased: Erased = {
      done: false,
      waits_for: open.ids[0] ?? null,
      waits_for_log: false,
      open_jobs: open.total,
      memories: 0,
      files: 0,
      conversations: 0,
      jobs: 0,
    };
    if (open.total === 0) {
      const isLate = () => clock.monotonic() >= until;
      const erasure = new Erasure(this.#context, this, user, erased, isLate);
      erased.done = await erasure.eraseAll();
      if (!erased.done) erased.open_jobs = (await openJobs(database.read, user, 1)).total;
    }
    const { organizationId: organization_id, userId: user_id } = user;
    log.info({ organization_id, user_id, ...erased }, 'data of a user was erased');
    return erased;
  }

  /** Cancels the jobs of the user that have not ended, until none is left or it is late; those that are left. */
  async #cancelOpenJobs(user: OfUser, isLate: () => boolean): Promise<OpenJobs> {
    const { database, jobs } = this;
    const cancelled = new Set<string>();
    for (;;) {
      const open = await openJobs(database.read, user, cancelledMax);
      if (open.total === 0 || isLate()) return open;
      for (const id of open.ids) {
        if (cancelled.has(id) || isLate()) continue;
        cancelled.add(id);
        await cancelOne(jobs, user, id);
      }
      // Active runs have a grace period before they are stopped by force.
      await pause(cancelPollMs);
    }
  }
}

async function cancelOne(jobs: Jobs, { organizationId }: OfUser, id: string): Promise<void> {
  try {
    await jobs.cancel(organizationId, id);
  } catch (error) {
    const isTooLate = error instanceof PlatformError && error.code === 'job_not_cancellable';
    if (!isTooLate) throw error;
  }
}
