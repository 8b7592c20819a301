/**
 * One erasure of a user: memories, files, conversations with their messages, and all text of jobs, whose rows stay. Each
 * transaction is small, and none finds erased rows again, so the next request continues an erasure that was interrupted.
 * Never touches a job that has not ended.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import { forgetJobs, lockConversations } from '../../core/conversations/record.ts';
import type { Files } from '../../core/files/files.ts';
import { removeSteps } from '../../core/journal/steps.ts';
import type { Memories } from '../../core/memories/memories.ts';
import { renameUsageOfUser } from '../../core/usage/budgets.ts';
import { PlatformError } from '../../kernel/errors.ts';
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
  lockKeysOf,
  type OfUser,
  redactJobs,
} from './user-data.store.ts';

/** Messages of one transaction, whose jobs are erased in it; conversations read at a time. */
const messagesMax = 100;
const readMax = 50;
/** The time between two tries to empty the database's log. */
const logPollMs = 250;

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
  files: number;
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

/** A conversation to erase. */
interface Erasable {
  readonly id: string;
  /** Jobs of it that are to be erased, too, where they have left no message. */
  readonly jobs?: readonly string[];
  /** The conversations that wait for the end of this one. */
  readonly above?: readonly string[];
}

/** An erasure that is under way, until its request is late. */
export class Erasure {
  readonly database: Database;
  readonly memories: Memories;
  readonly files: Files;
  readonly user: OfUser;
  readonly erased: Erased;
  readonly #context: Context;
  readonly #isLate: () => boolean;

  constructor(
    context: Context,
    { memories, files }: { readonly memories: Memories; readonly files: Files },
    user: OfUser,
    erased: Erased,
    isLate: () => boolean,
  ) {
    this.database = context.database;
    this.memories = memories;
    this.files = files;
    this.user = user;
    this.erased = erased;
    this.#context = context;
    this.#isLate = isLate;
  }

  /** Whether nothing is left. */
  async eraseAll(): Promise<boolean> {
    const { database, memories, files, user, erased } = this;
    const sum = () => erased.memories + erased.files + erased.conversations + erased.jobs;
    // Again after each that found something, because more may have come meanwhile.
    for (let before = -1; sum() > before; ) {
      before = sum();
      erased.memories += await memories.eraseUser(user.organizationId, user.userId, this.#isLate);
      erased.files += await files.eraseUser(user.organizationId, user.userId, this.#isLate);
      await this.#eraseConversations();
      if (this.#isLate() || erased.waits_for !== null) return false;
    }
    if (!(await eraseEvents(database, user, this.#isLate))) return false;
    await database.write((tx) =>
      renameUsageOfUser(tx, user.organizationId, user.userId, erasedUser),
    );
    if (!(await memories.compactIndex(this.#isLate))) return false;
    // Last, because the storage may fail.
    if (!(await files.removeGarbage(user.organizationId, this.#isLate))) return false;
    await endErasure(database, user);
    // Other transactions may hold the log for long: a client that repeats its request at once would not free it sooner.
    while (!(await database.emptyLog())) {
      erased.waits_for_log = this.#isLate();
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
      for (let after: string | undefined = ''; after !== undefined && !this.#isLate(); ) {
        const found: Awaited<ReturnType<typeof own>> = await read(after);
        const ids = new Set(found.map(({ conversationId }) => conversationId));
        for (const id of ids) if (!this.#isLate()) await this.#eraseOrLeave(id);
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

  /** All of it, with the messages of jobs for others and the jobs that these have started: they may repeat texts of the user. */
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
      if (this.#isLate() || !(await this.#eraseWithMemories(id, jobs))) return;
      if (isLast || this.#isLate()) return;
    }
  }

  /**
   * What jobs have started, before themselves: a repetition finds it through them, and below a job that was erased
   * nothing is left. Stops where it is late.
   */
  async #eraseBelow(jobs: readonly string[], above: readonly string[]): Promise<void> {
    const { database } = this;
    while (jobs.length > 0 && !this.#isLate()) {
      const children = await childrenKept(database.read, jobs, readMax);
      if (children.length === 0) return;
      for (const [id, ofIt] of Map.groupBy(children, (child) => child.conversation_id)) {
        const ids = ofIt.map((child) => child.id);
        if (!above.includes(id)) await this.#eraseConversation({ id, jobs: ids, above });
        else {
          // Its conversation is erased further above, once all that was started is.
          await this.#eraseBelow(ids, above);
          if (!this.#isLate()) await this.#eraseWithMemories(id, ids);
        }
        if (this.#isLate()) return;
      }
    }
  }

  /** Jobs of a conversation with all that tells of them; false where it was too late, and the jobs are left. */
  async #eraseWithMemories(id: string, jobs: readonly string[]): Promise<boolean> {
    const { database, memories, files, user, erased } = this;
    const { organizationId } = user;
    // Before the jobs, by which a repetition finds them.
    erased.memories += await memories.eraseOfJobs({ organizationId, jobIds: jobs }, this.#isLate);
    erased.files += await files.eraseOfJobs(organizationId, jobs, this.#isLate);
    if (!(await eraseDeliveries(database, [id, ...jobs], this.#isLate))) return false;
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
    const { user } = this;
    const { clock, writer } = this.#context;
    const [conversation] = await lockConversations(tx, [conversationId]);
    if (ids.length > 0) await lockKeysOf(tx, ids);
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
      conversation !== undefined && (await lockConversations(tx, [conversationId])).length === 0
    );
  }
}
