/**
 * The turns of jobs in one conversation. A job that was accepted behind another one waits until that has ended, however it
 * ended. The transaction of the end lets the next one go, in the order of acceptance, and records its message: so the messages of a
 * conversation are in the order of its jobs, and a job is not shown what comes after it. Conversations of skills that continue
 * none have no such jobs, and pay nothing.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { Context } from '../../context/context.ts';
import {
  addMessages,
  type ConversationRow,
  continueConversation,
  lockConversations,
} from '../../conversations/record.ts';
import { lookupOf, type SkillColumns, type SkillRegistry } from '../../skills/registry.ts';
import { lockJobs } from '../jobs.store.ts';
import { messageText } from '../message-text.ts';
import { hintInTime } from '../turns/later.ts';
import {
  gatesOfConversation,
  letGo,
  listGatesBetween,
  listRunning,
  listWaiting,
  namesOfModes,
} from './conversation-jobs.store.ts';

/** Conversations of which one sweep reads. */
const sweptMax = 500;

type ConversationJob = SkillColumns & {
  readonly organization_id: string;
  readonly conversation_id: string;
};

export class NextInConversation {
  readonly #context: Context;
  readonly #skills: SkillRegistry;
  /** Behind which gate the next sweep goes on, by what the names of gates begin with. */
  readonly #after = new Map<string, string>();

  constructor(context: Context, skills: SkillRegistry) {
    this.#context = context;
    this.#skills = skills;
  }

  /** Whether jobs may wait behind this one: its skill continues conversations, or is not known here. */
  mayBeFollowed(job: SkillColumns & Pick<ConversationJob, 'organization_id'>): boolean {
    const skill = this.#skills.definition(...lookupOf(job.organization_id, job));
    return skill?.continuesConversations !== false;
  }

  /**
   * Lets the next jobs go in the conversations of jobs that have ended in this transaction; the ids of the conversations that
   * stay active.
   */
  async follow(
    tx: Transaction,
    ended: readonly ConversationJob[],
    now: number,
  ): Promise<ReadonlySet<string>> {
    const ids = this.#followed(ended);
    return ids.length === 0 ? new Set() : this.#letGo(tx, ids, now);
  }

  /** Locks the jobs that `follow` may let go, for a transaction that locks gates before it calls that. */
  async holdNext(tx: Transaction, ended: readonly ConversationJob[]): Promise<void> {
    const ids = this.#followed(ended);
    if (ids.length > 0) await this.#hold(tx, ids.flatMap(gatesOfConversation));
  }

  #followed(ended: readonly ConversationJob[]): string[] {
    const followed = ended.filter((job) => this.mayBeFollowed(job));
    return [...new Set(followed.map((job) => job.conversation_id))];
  }

  async #hold(tx: Transaction, gates: readonly string[]): Promise<void> {
    if (tx.dialect === 'sqlite') return;
    const waiting = await listWaiting(tx, { gates });
    await lockJobs(
      tx,
      waiting.map(({ id }) => id),
    );
  }

  async #letGo(tx: Transaction, ids: readonly string[], now: number): Promise<Set<string>> {
    // Where a job runs, its own end lets the next one go: nothing is locked for that of one that waited.
    const busy = (await listRunning(tx, { ids })).map((job) => job.conversation_id);
    const left = ids.filter((id) => !busy.includes(id));
    return left.length === 0 ? new Set(busy) : this.#letGoIn(tx, left, new Set(busy), now);
  }

  async #letGoIn(tx: Transaction, ids: readonly string[], active: Set<string>, now: number) {
    const gates = ids.flatMap(gatesOfConversation);
    // Jobs are locked before conversations.
    await this.#hold(tx, gates);
    const rows = await lockConversations(tx, ids);
    const conversations = new Map(rows.map((row) => [row.id, row]));
    for (const job of await listRunning(tx, { ids })) active.add(job.conversation_id);
    for (const { id, conversation_id, held_by } of await listWaiting(tx, { gates })) {
      const conversation = conversations.get(conversation_id);
      if (conversation === undefined || active.has(conversation_id)) continue;
      const held = { id, gate: held_by ?? '' };
      if (await this.#begin(tx, held, conversation, now)) active.add(conversation_id);
    }
    return active;
  }

  async #begin(
    tx: Transaction,
    held: { readonly id: string; readonly gate: string },
    conversation: ConversationRow,
    now: number,
  ): Promise<boolean> {
    const conversation_id = conversation.id;
    const job = await letGo(tx, held);
    if (job === undefined) return false;
    await continueConversation(tx, conversation, now, this.#context.writer);
    const content = messageText(job.input);
    await addMessages(tx, [{ conversation_id, job_id: job.id, role: 'user', content, at: now }]);
    const { queue } = this.#context;
    const runAt = Number(job.run_at);
    tx.afterCommit(() => hintInTime(queue, job, `${job.epoch}-turn-${now}`, runAt, now));
    return true;
  }

  /** Lets jobs go that wait for none: the job before them ended while its skill was loaded as one that continues no conversations. */
  async sweep(): Promise<void> {
    for (const name of Object.values(namesOfModes)) await this.#sweep(name);
  }

  async #sweep(name: string): Promise<void> {
    const { database, clock } = this.#context;
    // The ids behind the names are hexadecimal.
    const range = { after: this.#after.get(name) ?? name, to: `${name}g` };
    const found = await listGatesBetween(database.read, { ...range, limit: sweptMax });
    const gates = found.map(({ held_by }) => held_by as string);
    this.#after.set(name, gates.length < sweptMax ? name : (gates.at(-1) as string));
    const ids = gates.map((gate) => gate.slice(name.length));
    if (ids.length === 0) return;
    const running = await listRunning(database.read, { ids });
    const active = new Set(running.map((job) => job.conversation_id));
    const left = ids.filter((id) => !active.has(id));
    if (left.length > 0) await database.write((tx) => this.#letGo(tx, left, clock.now()));
  }
}
