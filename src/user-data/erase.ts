/**
 * Erasure of a user: memories, conversations with their messages, and all text of jobs, whose rows stay. Each
 * transaction is small, and what is done is found no more, so an erasure that was interrupted goes on where it is
 * asked for again. Never touches a job that has not ended.
 */
import { removeApprovals } from '../approvals/approvals.ts';
import { conversationsHeld, forgetJobs } from '../conversations/record.ts';
import type { Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import { removeSteps } from '../journal/steps.ts';
import type { Clock } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import type { Memories } from '../memories/memories.ts';
import { removeEvents } from '../run-events/retention.ts';
import { usageOfUser } from '../usage/budgets.ts';
import {
  childrenKept,
  conversationsOf,
  deliveriesAbout,
  erasedAmong,
  erasedData,
  erasedUser,
  eventsAfter,
  hasEnded,
  jobsIn,
  jobsNaming,
  lockedStates,
  type OfUser,
  redactDelivery,
  redactEvent,
  redactJobs,
  unendedJob,
} from './user-data.store.ts';

/** Messages of one transaction, whose jobs are erased in it; conversations, deliveries and events read at a time. */
const messagesMax = 200;
const readMax = 50;
const deliveriesMax = 100;
const eventsMax = 500;
/** After so long the request is answered, and a repetition goes on. */
const budgetMs = 20_000;

export interface UserDataDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly writer: Writer;
  readonly log: Pick<Logger, 'info'>;
  readonly memories: Pick<Memories, 'eraseUser' | 'eraseOfJobs' | 'compactIndex' | 'ofUser'>;
}

/** How much a request erased; `done` is false where a repetition has to go on. */
export interface Erased {
  done: boolean;
  memories: number;
  conversations: number;
  jobs: number;
}

/** Throws `409 conflict` while a job of the user has not ended. */
export async function eraseUser(deps: UserDataDeps, user: OfUser): Promise<Erased> {
  const { database, clock, memories, log } = deps;
  const until = clock.monotonic() + budgetMs;
  const isLate = () => clock.monotonic() >= until;
  const running = await unendedJob(database.read, user);
  if (running !== undefined) throw notEnded(running);
  const erased: Erased = { done: false, memories: 0, conversations: 0, jobs: 0 };
  erased.memories += await memories.eraseUser(user.organizationId, user.userId, isLate);
  for (let ids = await nextConversations(deps, user); ids.length > 0 && !isLate(); ) {
    for (const id of ids) await eraseConversation({ ...deps, user, erased, isLate }, { id });
    ids = isLate() ? [] : await nextConversations(deps, user);
  }
  if (!isLate()) {
    await eraseEvents(deps, user);
    await database.write((tx) =>
      usageOfUser.rename(tx, user.organizationId, user.userId, erasedUser),
    );
    await memories.compactIndex();
    erased.done = true;
  }
  const { organizationId: organization_id, userId: user_id } = user;
  log.info({ organization_id, user_id, ...erased }, 'data of a user was erased');
  return erased;
}

function notEnded(jobId: string): PlatformError {
  return new PlatformError(
    'conflict',
    `The job ${jobId} of the user has not ended: cancel it or wait for its end`,
  );
}

/** Conversations that were begun for the user, or else that a job for the user has continued. */
async function nextConversations({ database: { read } }: UserDataDeps, user: OfUser) {
  const own = await conversationsOf(read, user, '', readMax);
  if (own.length > 0) return own.map(({ id }) => id);
  const jobs = await jobsNaming(read, user, '', readMax);
  return [...new Set(jobs.map(({ conversation_id }) => conversation_id))];
}

/** An erasure that is under way. */
interface Erasing extends UserDataDeps {
  readonly user: OfUser;
  readonly erased: Erased;
  readonly isLate: () => boolean;
}

/** A conversation to erase. */
interface Erasable {
  readonly id: string;
  /** Jobs of it that are to be erased, too, where they have left no message. */
  readonly jobs?: readonly string[];
  /** The conversations that wait for the end of this one. */
  readonly above?: readonly string[];
}

/** All of it, also what jobs for others have said in it and what these have started: it may repeat what the user said. */
async function eraseConversation(erasing: Erasing, conversation: Erasable): Promise<void> {
  const { database, user, erased, isLate } = erasing;
  const { id, jobs: given = [], above = [] } = conversation;
  for (;;) {
    const inMessages = await jobsIn(database.read, id, messagesMax);
    const isLast = inMessages.length === 0;
    const named = isLast ? await jobsNaming(database.read, user, '', readMax) : [];
    const ofIt = named.filter((job) => job.conversation_id === id).map((job) => job.id);
    const gone = isLast ? await erasedAmong(database.read, given) : new Set<string>();
    const left = new Set([...ofIt, ...given.filter((job) => !gone.has(job))]);
    const jobs = isLast ? [...left] : inMessages;
    await eraseBelow(erasing, jobs, [...above, id]);
    if (isLate()) return;
    await eraseWithMemories(erasing, id, jobs);
    if (isLast) erased.conversations += 1;
    if (isLast || isLate()) return;
  }
}

/**
 * What jobs have started, before themselves: a repetition finds it through them, and below a job that was erased
 * nothing is left. Stops where it is late.
 */
async function eraseBelow(
  erasing: Erasing,
  jobs: readonly string[],
  above: readonly string[],
): Promise<void> {
  const { database, isLate } = erasing;
  while (jobs.length > 0 && !isLate()) {
    const children = await childrenKept(database.read, jobs, readMax);
    if (children.length === 0) return;
    for (const [id, ofIt] of Map.groupBy(children, (child) => child.conversation_id)) {
      const ids = ofIt.map((child) => child.id);
      if (!above.includes(id)) await eraseConversation(erasing, { id, jobs: ids, above });
      else {
        // Its conversation is erased further above, once all that was started is.
        await eraseBelow(erasing, ids, above);
        if (!isLate()) await eraseWithMemories(erasing, id, ids);
      }
      if (isLate()) return;
    }
  }
}

async function eraseWithMemories(erasing: Erasing, id: string, jobs: readonly string[]) {
  const { database, memories, user, erased } = erasing;
  // Before the jobs: a transaction locks agents first.
  erased.memories += await memories.eraseOfJobs(user.organizationId, jobs);
  await database.write((tx) => eraseJobs(erasing, tx, id, jobs));
  erased.jobs += jobs.length;
}

async function eraseJobs(
  { clock, writer }: UserDataDeps,
  tx: Transaction,
  conversationId: string,
  ids: readonly string[],
): Promise<void> {
  const [conversation] = await conversationsHeld(tx, [conversationId]);
  const rows = ids.length === 0 ? [] : await lockedStates(tx, ids);
  const running = rows.find((row) => !hasEnded(row));
  if (running !== undefined) throw notEnded(running.id);
  if (conversation?.status === 'active') throw notEnded(ids.at(-1) ?? '');
  if (ids.length > 0) {
    await redactJobs(tx, ids, clock.now());
    await removeSteps(tx, ids);
    await removeApprovals(tx, ids);
    await removeEvents(tx, ids);
  }
  await eraseDeliveries(tx, [conversationId, ...ids]);
  // Of jobs that are gone, too: their messages are here.
  const gone = ids.map((id) => ({ id, conversation_id: conversationId }));
  await forgetJobs(tx, [...gone, { id: '', conversation_id: conversationId }], writer);
}

async function eraseDeliveries(tx: Transaction, subjects: readonly string[]): Promise<void> {
  for (;;) {
    const rows = await deliveriesAbout(tx, subjects, deliveriesMax);
    for (const { id, body } of rows) {
      const { data: _, ...head } = JSON.parse(body) as Record<string, unknown>;
      await redactDelivery(tx, id, `${JSON.stringify(head).slice(0, -1)},"data":${erasedData}}`);
    }
    if (rows.length < deliveriesMax) return;
  }
}

/** Of the events that webhooks read, those about erased jobs, and about conversations of the user. */
async function eraseEvents({ database }: UserDataDeps, user: OfUser): Promise<void> {
  for (let after = -1; ; ) {
    const rows = await eventsAfter(database.read, user.organizationId, after, eventsMax);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = Number(last.seq);
    const told = rows.map(({ seq, data }) => ({ seq, ...(JSON.parse(data) as EventData) }));
    const jobs = told.flatMap(({ job_id }) => job_id ?? []);
    const erased = await erasedAmong(database.read, [...new Set(jobs)]);
    const seqs = told
      .filter(({ job_id, user_id }) => user_id === user.userId || erased.has(job_id ?? ''))
      .map(({ seq }) => Number(seq));
    if (seqs.length === 0) continue;
    await database.write(async (tx) => {
      for (const seq of seqs) await redactEvent(tx, seq);
    });
  }
}

interface EventData {
  readonly job_id?: string | null;
  readonly user_id?: string;
}
