/**
 * Forks: a conversation that begins with the first messages of another one, so that a message can be written anew or an answer made
 * again, and the first one stays as it was. A fork has copies of the messages, which belong to the jobs that said them: they have
 * cost nothing, and are deleted with those jobs. Its user is that of the other one.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { Caller } from '../../../kernel/caller.ts';
import { invalid, notFound, PlatformError } from '../../../kernel/errors.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Agents } from '../../agents/agents.ts';
import type { Context } from '../../context/context.ts';
import { type Conversations, conversationView } from '../../conversations/conversations.ts';
import { beginFork, type ConversationRow, lockConversations } from '../../conversations/record.ts';
import type { NewEvent } from '../../events/events.ts';
import { appendEvents } from '../../events/outbox.ts';
import { findUserOfConversation } from '../jobs.store.ts';
import { afterAll, copyMessages, countForks, findMessage, newestOf } from './forks.store.ts';

/** The newest messages that a fork copies; older ones are left out. */
export const forkBounds = { limit: 2_000, bytesMax: 8 * 1024 * 1024 };
/** Forks of one conversation, those of its forks included. */
export const forksMax = 100;

export interface ForkRequest {
  /** The first message that the fork does not have; undefined for all messages. */
  readonly before: string | undefined;
  /** The user whom the request names. */
  readonly user: string | undefined;
}

export class Forks {
  readonly #context: Context;
  readonly #parts: { readonly agents: Agents; readonly conversations: Conversations };

  constructor(context: Context, parts: { agents: Agents; conversations: Conversations }) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Throws `404` for a conversation that is not the organization's, or that a deleted agent of the same id began. */
  async requireForkable(
    { organizationId }: Pick<Caller, 'organizationId'>,
    id: string,
  ): Promise<void> {
    const { agents, conversations } = this.#parts;
    const { agent_id, created_at } = await conversations.find(organizationId, id);
    await agents.findSince(organizationId, agent_id, created_at);
  }

  /** Begins a conversation with the messages of another one that come before a message. */
  async fork(caller: Pick<Caller, 'organizationId'>, id: string, request: ForkRequest) {
    await this.requireForkable(caller, id);
    return this.#context.database.write((tx) => this.#forkWithin(tx, id, request));
  }

  async #forkWithin(tx: Transaction, id: string, { before = afterAll, user }: ForkRequest) {
    const { clock, writer } = this.#context;
    // Its messages are not deleted before the transaction ends.
    const [source] = await lockConversations(tx, [id]);
    if (source === undefined) throw notFound('Conversation');
    const owner = await findUserOfConversation(tx, { conversationId: id });
    if (user !== undefined && owner !== undefined && owner.user_id !== user) throw otherUser(id);
    const part = { conversation_id: id, before };
    const isKnown =
      before === afterAll || (await findMessage(tx, { conversation_id: id, id: before }));
    if (!isKnown) throw notFound('Message');
    const { first, count, isCut } = await newestOf(tx, part, forkBounds);
    if (first === undefined) {
      throw invalid(
        'before',
        'is the first message: begin a new conversation without x-conversation-id',
      );
    }
    const forked_from = source.forked_from ?? source.id;
    const forks = Number((await countForks(tx, { forked_from }))?.count ?? 0);
    if (forks >= forksMax) throw tooMany(id);
    const now = clock.now();
    const row = newFork(source, forked_from, now);
    await beginFork(tx, row, writer);
    await copyMessages(tx, { ...part, first, to: row.id });
    await appendEvents(tx, [createdOf(row)], now);
    return { ...conversationView(row), messages: count, is_cut: isCut };
  }
}

function newFork(
  { organization_id, agent_id, user_id, trigger_type }: ConversationRow,
  forked_from: string,
  now: number,
) {
  const status = 'completed' as const;
  const of = { organization_id, agent_id, user_id, trigger_type };
  return { id: newId(), ...of, status, forked_from, created_at: now, updated_at: now };
}

function createdOf(row: ReturnType<typeof newFork>): NewEvent {
  const { id: conversation_id, organization_id, agent_id, trigger_type, user_id } = row;
  const data = { conversation_id, trigger_type, user_id };
  return { type: 'conversation.created', organizationId: organization_id, agentId: agent_id, data };
}

const otherUser = (id: string) =>
  new PlatformError(
    'conflict',
    `The conversation ${id} is another user's, and is not forked for this one: check whose it is before the request`,
  );

const tooMany = (id: string) =>
  new PlatformError(
    'conflict',
    `As many conversations begin with messages of the conversation ${id} as may: ${forksMax}`,
  );
