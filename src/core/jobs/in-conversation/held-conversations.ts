/** The conversations that requests of one transaction continue, locked until it ends. */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { ConversationStatus } from '../../../adapters/database/tables.ts';
import { continueAfter } from '../../../kernel/ids.ts';
import { type ConversationRow, lockConversations } from '../../conversations/record.ts';
import { findUserOfConversation, type NewJob } from '../jobs.store.ts';
import type { Settler } from '../settle.ts';
import { type ConversationMode, waitingBytesMax, waitingMax } from './conversation-gates.ts';
import { behindOthersOf, listRunning, listWaiting } from './conversation-jobs.store.ts';

interface Waiting {
  readonly id: string;
  readonly user_id: string;
  readonly for_user: number;
  readonly bytes: number;
}

export class HeldConversation {
  readonly row: ConversationRow;
  /** The user whose it is: the first for whom a run of it was, or will be. */
  #user: string | undefined;
  #status: ConversationStatus;
  /** Whether jobs may wait behind the one that has not ended. */
  #takesMore = false;
  #waiting = 0;
  #bytes = 0;

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

  /** The jobs that wait in it, behind one after which others may come. */
  setWaiting(jobs: readonly Waiting[]): void {
    this.#takesMore = true;
    for (const job of jobs) this.#add(job, Number(job.bytes));
    // Their order is that of their ids, and another process may have accepted the last one.
    const last = jobs.at(-1);
    if (last !== undefined) continueAfter(last.id);
  }

  /** Whether the job is for another user than the conversation. One for which none was named becomes that user's. */
  isForOther(job: NewJob): boolean {
    if (this.#user === undefined || this.#user === job.user_id) return false;
    if (job.for_user === 1) return true;
    job.user_id = this.#user;
    job.for_user = 1;
    return false;
  }

  hasRoomFor({ input }: NewJob): boolean {
    return this.#waiting < waitingMax && this.#bytes + Buffer.byteLength(input) <= waitingBytesMax;
  }

  /** The job is the next one of a conversation in which none was left. */
  begin(job: NewJob, takesMore: boolean): void {
    this.#status = 'active';
    this.#takesMore = takesMore;
    this.#user ??= job.for_user === 1 ? job.user_id : undefined;
  }

  /** The job waits behind the others. */
  waitIn(job: NewJob): void {
    job.gated = 0;
    job.held_by = behindOthersOf(this.row.id);
    job.concurrency_key ??= null;
    this.#add(job, Buffer.byteLength(job.input));
  }

  #add({ user_id, for_user }: Pick<Waiting, 'user_id' | 'for_user'>, bytes: number): void {
    this.#waiting += 1;
    this.#bytes += bytes;
    this.#user ??= for_user === 1 ? user_id : undefined;
  }
}

export type HeldConversations = ReadonlyMap<string, HeldConversation>;

/** The conversations that requests continue, by id. */
export async function heldConversations(
  tx: Transaction,
  settler: Settler,
  requests: readonly {
    readonly conversationId?: string | undefined;
    readonly conversationMode?: ConversationMode | undefined;
  }[],
): Promise<HeldConversations> {
  const held = new Map<string, HeldConversation>();
  const ids = requests.flatMap(({ conversationId }) => conversationId ?? []);
  if (ids.length === 0) return held;
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

async function readWaiting(
  tx: Transaction,
  { parts }: Settler,
  held: HeldConversations,
  ids: readonly string[],
): Promise<void> {
  const jobs = await listWaiting(tx, { gates: ids.map(behindOthersOf) });
  const byConversation = Map.groupBy(jobs, (job) => job.conversation_id);
  for (const running of await listRunning(tx, { ids })) {
    const { conversation_id } = running;
    if (!parts.inConversation.mayBeFollowed(running)) continue;
    held.get(conversation_id)?.setWaiting(byConversation.get(conversation_id) ?? []);
  }
}
