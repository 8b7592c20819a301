/** The conversations that requests of one transaction continue, locked until it ends. */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { ConversationStatus } from '../../../adapters/database/tables.ts';
import { continueAfter } from '../../../kernel/ids.ts';
import {
  type ConversationRow,
  giveConversation,
  lockConversations,
} from '../../conversations/record.ts';
import { lockFamilies } from '../families.store.ts';
import {
  findUserOfConversation,
  type JobCountChanges,
  type NewJob,
  requestCancellation,
} from '../jobs.store.ts';
import type { Settler } from '../settle.ts';
import { cancelledError } from '../states.ts';
import { type ConversationMode, waitingBytesMax, waitingMax } from './conversation-gates.ts';
import {
  behindOthersOf,
  gatesOfConversation,
  listRunning,
  listWaiting,
  namesOfModes,
} from './conversation-jobs.store.ts';

interface Waiting {
  readonly id: string;
  readonly user_id: string;
  readonly for_user: number;
  readonly bytes: number;
  readonly held_by: string | null;
}

const interrupts = ({ held_by }: { readonly held_by?: string | null }) =>
  held_by?.startsWith(namesOfModes.interrupt) === true;

export class HeldConversation {
  readonly row: ConversationRow;
  /** The user whose it is: the first for whom a run of it was, or will be. */
  #user: string | undefined;
  #status: ConversationStatus;
  /** Whether jobs may wait behind the one that has not ended. */
  #takesMore = false;
  #waiting = 0;
  #bytes = 0;
  /** The job that runs, and those that are to interrupt it. */
  readonly #current: string[] = [];
  readonly #stopped: string[] = [];

  constructor(row: ConversationRow, user: string | undefined) {
    this.row = row;
    this.#user = user;
    this.#status = row.status;
  }

  get user(): string | undefined {
    return this.#user;
  }

  get status(): ConversationStatus {
    return this.#status;
  }

  get takesMore(): boolean {
    return this.#takesMore;
  }

  /** The jobs that requests of the transaction interrupt. */
  get stopped(): readonly string[] {
    return this.#stopped;
  }

  /** The jobs that wait in it, behind one after which others may come. */
  setWaiting(running: string, jobs: readonly Waiting[]): void {
    this.#takesMore = true;
    this.#current.push(running);
    for (const job of jobs) this.#add(job, Number(job.bytes));
    // Their order is that of their ids, and another process may have accepted the last one.
    for (const id of [running, ...jobs.map((job) => job.id)]) continueAfter(id);
  }

  /** Whether the job is for another user than the conversation. One for which none was named becomes that user's. */
  isForOther(job: NewJob): boolean {
    if (this.#user === undefined || this.#user === job.user_id) return false;
    if (job.for_user === 1) return true;
    job.user_id = this.#user;
    job.for_user = 1;
    return false;
  }

  hasRoomFor({ input }: NewJob, mode: ConversationMode): boolean {
    // One that interrupts takes the place of those that were to do so before.
    if (mode === 'interrupt') return true;
    return this.#waiting < waitingMax && this.#bytes + Buffer.byteLength(input) <= waitingBytesMax;
  }

  /** The job is the next one of a conversation in which none was left. */
  begin(job: NewJob, takesMore: boolean): void {
    this.#status = 'active';
    this.#takesMore = takesMore;
    this.#current.push(job.id);
    this.#user ??= job.for_user === 1 ? job.user_id : undefined;
  }

  /** The job waits behind the others, or before them where it interrupts the one that runs. */
  waitIn(job: NewJob, mode: Exclude<ConversationMode, 'reject'>): void {
    job.gated = 0;
    job.held_by = behindOthersOf(this.row.id, mode);
    job.concurrency_key ??= null;
    if (mode === 'interrupt') this.#stopped.push(...this.#current.splice(0));
    this.#add({ ...job, held_by: job.held_by }, Buffer.byteLength(job.input));
  }

  #add(job: Omit<Waiting, 'bytes'>, bytes: number): void {
    const { user_id, for_user } = job;
    if (interrupts(job)) this.#current.push(job.id);
    else {
      this.#waiting += 1;
      this.#bytes += bytes;
    }
    this.#user ??= for_user === 1 ? user_id : undefined;
  }
}

interface Continuing {
  readonly conversationId?: string | undefined;
  readonly conversationMode?: ConversationMode | undefined;
}

export type HeldConversations = ReadonlyMap<string, HeldConversation>;

/** The conversations that requests continue, by id. */
export async function heldConversations(
  tx: Transaction,
  settler: Settler,
  requests: readonly Continuing[],
): Promise<HeldConversations> {
  const held = new Map<string, HeldConversation>();
  const ids = requests.flatMap(({ conversationId }) => conversationId ?? []);
  if (ids.length === 0) return held;
  await holdInterrupted(tx, settler, requests);
  for (const row of await lockConversations(tx, ids)) {
    const first = await findUserOfConversation(tx, { conversationId: row.id });
    held.set(row.id, new HeldConversation(row, first?.user_id));
  }
  const waiting = requests.flatMap(({ conversationId = '', conversationMode = 'reject' }) =>
    conversationMode !== 'reject' && held.get(conversationId)?.status === 'active'
      ? [conversationId]
      : [],
  );
  if (waiting.length > 0) await readWaiting(tx, settler, held, [...new Set(waiting)]);
  return held;
}

/** Records whose the conversations are that were for no user before. */
export async function giveToUsers(tx: Transaction, held: HeldConversations): Promise<void> {
  for (const { row, user } of held.values()) {
    if (user !== undefined && user !== row.user_id) await giveConversation(tx, row.id, user);
  }
}

/** Locks the jobs that requests may interrupt, and what these hold, before their conversations: as settle does. */
async function holdInterrupted(
  tx: Transaction,
  { parts }: Settler,
  requests: readonly Continuing[],
): Promise<void> {
  const ids = requests.flatMap(({ conversationId, conversationMode }) =>
    conversationMode === 'interrupt' && conversationId !== undefined ? [conversationId] : [],
  );
  if (ids.length === 0) return;
  const running = await listRunning(tx, { ids });
  const waiting = await listWaiting(tx, { gates: ids.flatMap(gatesOfConversation) });
  const jobs = [...running, ...waiting].map(({ id }) => id);
  if (jobs.length === 0) return;
  await lockFamilies(tx, jobs);
  await parts.places.lockGatesOf(tx, [], running);
}

/**
 * Stops the jobs that accepted requests interrupt. Those that no process holds end now, and let the others go. Their ends record
 * `changes` of the counts with their own, because a transaction changes the counts once: true where they did.
 */
export async function stopInterrupted(
  tx: Transaction,
  settler: Settler,
  held: HeldConversations,
  changes: JobCountChanges,
): Promise<boolean> {
  const ids = [...held.values()].flatMap(({ stopped }) => stopped);
  if (ids.length === 0) return false;
  const cancelled = await settler.cancelUnclaimed(tx, ids, cancelledError, changes);
  for (const id of ids) await requestCancellation(tx, { id, now: settler.context.clock.now() });
  await settler.cancelBelow(tx, ids);
  tx.afterCommit(() => {
    for (const id of ids) settler.parts.running.cancel(id);
  });
  return cancelled > 0;
}

async function readWaiting(
  tx: Transaction,
  { parts }: Settler,
  held: HeldConversations,
  ids: readonly string[],
): Promise<void> {
  const jobs = await listWaiting(tx, { gates: ids.flatMap(gatesOfConversation) });
  const byConversation = Map.groupBy(jobs, (job) => job.conversation_id);
  for (const running of await listRunning(tx, { ids })) {
    const { conversation_id } = running;
    if (!parts.inConversation.mayBeFollowed(running)) continue;
    held.get(conversation_id)?.setWaiting(running.id, byConversation.get(conversation_id) ?? []);
  }
}
