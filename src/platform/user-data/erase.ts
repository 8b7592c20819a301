/**
 * Erasure of a user: memories, conversations with their messages, and all text of jobs, whose rows stay. Each
 * transaction is small, and what is done is found no more, so an erasure that was interrupted goes on where it is
 * asked for again. Never touches a job that has not ended.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import { conversationsHeld, forgetJobs } from '../../core/conversations/record.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
import { removeSteps } from '../../core/journal/steps.ts';
import type { Memories } from '../../core/memories/memories.ts';
import { usageOfUser } from '../../core/usage/budgets.ts';
import type { Clock } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { removeApprovals } from '../approvals/approvals.ts';
import { eraseEventsOfJobs } from '../run-events/erase.ts';
import { endErasure, eraseDeliveries, eraseEvents } from './erase-events.ts';
import { endProgress } from './erased-events.store.ts';
import {
  childrenKept,
  conversationsOf,
  erasedAmong,
  erasedUser,
  hasEnded,
  jobsIn,
  jobsNaming,
  lockedStates,
  type OfUser,
  openJobs,
  redactJobs,
} from './user-data.store.ts';

/** Messages of one transaction, whose jobs are erased in it; conversations read at a time. */
const messagesMax = 100;
const readMax = 50;
/** Links to jobs in a refusal. */
const linkedMax = 5;
/** Jobs that are cancelled before the open jobs are read again, and the time between two reads. */
const cancelledMax = 200;
const cancelPollMs = 50;
/** The time between two tries to empty the database's log. */
const logPollMs = 250;
/** After so long the request is answered, and a repetition goes on. Half of it at most is for cancelling. */
const budgetMs = 20_000;

/** What a request erased; `done` is false where a repetition has to go on. */
export interface Erased {
  done: boolean;
  /** The job that a repetition has to wait for. */
  waits_for: string | null;
  /** Whether all is erased but in the database's log, which other transactions hold. */
  waits_for_log: boolean;
  /** Jobs of the user that have not ended. */
  open_jobs: number;
  memories: number;
  conversations: number;
  jobs: number;
}

/** A job whose data cannot be erased yet. */
class JobNotEnded extends PlatformError {
  readonly jobId: string;

  constructor(jobId: string) {
    super('conflict', `The job ${jobId} of the user has not ended: cancel it or wait for its end`);
    this.jobId = jobId;
  }
}

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

type DataContext = Pick<Context, 'database' | 'clock' | 'writer' | 'log'>;

/** The data that the platform keeps of users. */
export class UserData {
  readonly database: Database;
  readonly clock: Clock;
  readonly writer: string;
  readonly log: Logger;
  readonly memories: Memories;
  readonly jobs: Jobs;

  constructor(
    { database, clock, writer, log }: DataContext,
    { memories, jobs }: { readonly memories: Memories; readonly jobs: Jobs },
  ) {
    this.database = database;
    this.clock = clock;
    this.writer = writer;
    this.log = log;
    this.memories = memories;
    this.jobs = jobs;
  }

  /**
   * Erases the data of a user. Throws `409 conflict` where jobs of the user have not ended and are not to be cancelled,
   * and then nothing was erased. Where they are to be cancelled and do not end in time, nothing was erased either, and
   * `waits_for` names one of them, as it names a job that is accepted meanwhile.
   */
  async erase(user: OfUser, cancelsJobs = false): Promise<Erased> {
    const { database, clock, log } = this;
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
      conversations: 0,
      jobs: 0,
    };
    if (open.total === 0) {
      erased.done = await new Erasure(this, user, erased, until).eraseAll();
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

/** A conversation to erase. */
interface Erasable {
  readonly id: string;
  /** Jobs of it that are to be erased, too, where they have left no message. */
  readonly jobs?: readonly string[];
  /** The conversations that wait for the end of this one. */
  readonly above?: readonly string[];
}

/** An erasure that is under way, until its request is late. */
class Erasure {
  readonly database: Database;
  readonly clock: Clock;
  readonly writer: string;
  readonly memories: Memories;
  readonly user: OfUser;
  readonly erased: Erased;
  readonly #until: number;

  constructor(
    { database, clock, writer, memories }: UserData,
    user: OfUser,
    erased: Erased,
    until: number,
  ) {
    this.database = database;
    this.clock = clock;
    this.writer = writer;
    this.memories = memories;
    this.user = user;
    this.erased = erased;
    this.#until = until;
  }

  isLate(): boolean {
    return this.clock.monotonic() >= this.#until;
  }

  /** Whether nothing is left. */
  async eraseAll(): Promise<boolean> {
    const { database, memories, user, erased } = this;
    const sum = () => erased.memories + erased.conversations + erased.jobs;
    // Again after each that found something, because more may have come meanwhile.
    for (let before = -1; sum() > before; ) {
      before = sum();
      erased.memories += await memories.eraseUser(user.organizationId, user.userId, () =>
        this.isLate(),
      );
      await this.#eraseConversations();
      if (this.isLate() || erased.waits_for !== null) return false;
    }
    if (!(await eraseEvents(database, user, () => this.isLate()))) return false;
    await database.write((tx) =>
      usageOfUser.rename(tx, user.organizationId, user.userId, erasedUser),
    );
    if (!(await memories.compactIndex(() => this.isLate()))) return false;
    await endErasure(database, user);
    // Other transactions may hold the log for long: a client that repeats its request at once would not free it sooner.
    while (!(await database.emptyLog())) {
      erased.waits_for_log = this.isLate();
      if (erased.waits_for_log) return false;
      await pause(logPollMs);
    }
    return true;
  }

  /** Conversations that were begun for the user, and then those that a job for the user has continued. */
  async #eraseConversations(): Promise<void> {
    const { database, user } = this;
    const own = async (after: string) => {
      const found = await conversationsOf(database.read, user, after, readMax);
      return found.map(({ id }) => ({ id, conversationId: id }));
    };
    const continued = async (after: string) => {
      const found = await jobsNaming(database.read, user, after, readMax);
      return found.map(({ id, conversation_id }) => ({ id, conversationId: conversation_id }));
    };
    for (const read of [own, continued]) {
      for (let after: string | undefined = ''; after !== undefined && !this.isLate(); ) {
        const found: Awaited<ReturnType<typeof own>> = await read(after);
        const ids = new Set(found.map(({ conversationId }) => conversationId));
        for (const id of ids) if (!this.isLate()) await this.#eraseOrLeave(id);
        after = found.at(-1)?.id;
      }
    }
  }

  /** A conversation in which a job has not ended is left for a repetition. */
  async #eraseOrLeave(id: string): Promise<void> {
    try {
      await this.#eraseConversation({ id });
    } catch (error) {
      if (!(error instanceof JobNotEnded)) throw error;
      this.erased.waits_for ??= error.jobId;
    }
  }

  /** All of it, also what jobs for others have said in it and what these have started: it may repeat what the user said. */
  async #eraseConversation(conversation: Erasable): Promise<void> {
    const { database, user } = this;
    const { id, jobs: given = [], above = [] } = conversation;
    for (;;) {
      const inMessages = await jobsIn(database.read, id, messagesMax);
      const isLast = inMessages.length === 0;
      const named = isLast ? await jobsNaming(database.read, user, '', readMax) : [];
      const ofIt = named.filter((job) => job.conversation_id === id).map((job) => job.id);
      const gone = isLast ? await erasedAmong(database.read, given) : new Set<string>();
      const left = new Set([...ofIt, ...given.filter((job) => !gone.has(job))]);
      const jobs = isLast ? [...left] : inMessages;
      await this.#eraseBelow(jobs, [...above, id]);
      if (this.isLate() || !(await this.#eraseWithMemories(id, jobs))) return;
      if (isLast || this.isLate()) return;
    }
  }

  /**
   * What jobs have started, before themselves: a repetition finds it through them, and below a job that was erased
   * nothing is left. Stops where it is late.
   */
  async #eraseBelow(jobs: readonly string[], above: readonly string[]): Promise<void> {
    const { database } = this;
    while (jobs.length > 0 && !this.isLate()) {
      const children = await childrenKept(database.read, jobs, readMax);
      if (children.length === 0) return;
      for (const [id, ofIt] of Map.groupBy(children, (child) => child.conversation_id)) {
        const ids = ofIt.map((child) => child.id);
        if (!above.includes(id)) await this.#eraseConversation({ id, jobs: ids, above });
        else {
          // Its conversation is erased further above, once all that was started is.
          await this.#eraseBelow(ids, above);
          if (!this.isLate()) await this.#eraseWithMemories(id, ids);
        }
        if (this.isLate()) return;
      }
    }
  }

  /** Jobs of a conversation with all that tells of them; false where it was too late, and the jobs are left. */
  async #eraseWithMemories(id: string, jobs: readonly string[]): Promise<boolean> {
    const { database, memories, user, erased } = this;
    const { organizationId } = user;
    // Before the jobs, by which a repetition finds them.
    erased.memories += await memories.eraseOfJobs({ organizationId, jobIds: jobs }, () =>
      this.isLate(),
    );
    if (!(await eraseDeliveries(database, [id, ...jobs], () => this.isLate()))) return false;
    const isGone = await database.write((tx) => this.#eraseJobs(tx, id, jobs));
    erased.jobs += jobs.length;
    if (isGone) erased.conversations += 1;
    return true;
  }

  /** Whether the conversation is gone with them. */
  async #eraseJobs(
    tx: Transaction,
    conversationId: string,
    ids: readonly string[],
  ): Promise<boolean> {
    const { clock, writer, user } = this;
    const [conversation] = await conversationsHeld(tx, [conversationId]);
    const rows = ids.length === 0 ? [] : await lockedStates(tx, ids);
    const running = rows.find((row) => !hasEnded(row));
    if (running !== undefined) throw new JobNotEnded(running.id);
    if (conversation?.status === 'active') throw new JobNotEnded(ids.at(-1) ?? '');
    if (ids.length > 0) {
      await redactJobs(tx, ids, clock.now());
      // The steps name the events.
      await eraseEventsOfJobs(tx, ids);
      await removeSteps(tx, ids);
      await removeApprovals(tx, ids);
    }
    // Events about these jobs may stand before those that an earlier request has read.
    await endProgress(tx, user);
    // Of jobs that are gone, too: their messages are here.
    const gone = ids.map((id) => ({ id, conversation_id: conversationId }));
    await forgetJobs(tx, [...gone, { id: '', conversation_id: conversationId }], writer);
    return (
      conversation !== undefined && (await conversationsHeld(tx, [conversationId])).length === 0
    );
  }
}
