/** Conversations as clients read them: pages, messages, and their token counts. */
import type { Database, Handle } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { MessageRole } from '../../adapters/database/tables.ts';
import { timestamp } from '../../kernel/clock.ts';
import { notFound } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { usdOrNull } from '../../kernel/money.ts';
import type { Context } from '../context/context.ts';
import { type Files, fileReference } from '../files/files.ts';
import {
  type ConversationFilters,
  listConversations,
  listOpenings,
} from './conversation-lists.store.ts';
import {
  type ConversationRow,
  type CountedTokens,
  findConversation,
  listMessages,
  listMessageTokens,
  type NewConversationRow,
  sumTokensByJob,
} from './conversations.store.ts';
import { listData, listDialogue } from './dialogue.store.ts';
import { summaryMark, unfinishedMark } from './dialogue-marks.ts';
import { filesOfMessage } from './files-of-message.ts';
import {
  sumTokensBelow,
  sumTokensBelowConversation,
  sumTokensBelowJob,
} from './nested-tokens.store.ts';

/** Characters of the first message in a list that shows how conversations begin. */
export const openingLength = 200;
/** Messages in one answer that tells the tokens of each. */
const breakdownMax = 20_000;

/**
 * Tokens in the specification's words. Each is the sum of what providers reported, and the total the
 * sum of the two; null where models were called and nothing of it was reported, which is not zero.
 */
export interface TokenStats
  extends Record<'prompt_tokens' | 'completion_tokens' | 'total_tokens', number | null> {
  /** Parts of the tokens, as far as they were reported. */
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly reasoning_tokens: number;
  /** Whether some tokens were not reported, so that the sums are too small. */
  readonly tokens_are_partial: boolean;
  /** What the reported tokens cost; null where nothing of it is known. */
  readonly cost_usd: number | null;
  /** Whether the cost of some tokens is not known, because they were not reported or have no price. */
  readonly cost_is_partial: boolean;
}

/** Tokens of a job or a conversation, of the jobs that it has started, and of both together. */
export interface TokenSums {
  readonly token_stats: TokenStats;
  readonly nested_token_stats: TokenStats;
  readonly total_token_stats: TokenStats;
}

export type { CountedTokens };

/** The tokens of all jobs below each of these, by the id of the one above; those without any are left out. */
export async function tokensBelow(
  db: Handle,
  jobIds: readonly string[],
): Promise<ReadonlyMap<string, CountedTokens>> {
  return jobIds.length === 0 ? new Map() : sumTokensBelow(db, jobIds);
}

/** The sums over messages of a job or a conversation, beside those of the jobs below it. */
function tokenSums(own: readonly CountedTokens[], nested: readonly CountedTokens[]): TokenSums {
  return {
    token_stats: tokenStats(own),
    nested_token_stats: tokenStats(nested),
    total_token_stats: tokenStats([...own, ...nested]),
  };
}

/** The sums of a job that has called no model, and has started no job. */
export const noTokenSums: TokenSums = tokenSums([], []);

/** Adds up. */
export function tokenStats(rows: readonly CountedTokens[]): TokenStats {
  const sum = { prompt: 0, completion: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, cost: 0 };
  let unreported = 0;
  let unpriced = 0;
  for (const row of rows) {
    sum.prompt += row.prompt_tokens;
    sum.completion += row.completion_tokens;
    sum.cacheRead += row.cache_read_tokens;
    sum.cacheWrite += row.cache_write_tokens;
    sum.reasoning += row.reasoning_tokens;
    sum.cost += row.cost ?? 0;
    unpriced += row.unpriced;
    unreported |= row.unreported;
  }
  const isPartial = unpriced > 0 || unreported !== 0;
  return {
    prompt_tokens: known(sum.prompt, unreported & 1),
    completion_tokens: known(sum.completion, unreported & 2),
    total_tokens: known(sum.prompt + sum.completion, unreported),
    cache_read_tokens: sum.cacheRead,
    cache_write_tokens: sum.cacheWrite,
    reasoning_tokens: sum.reasoning,
    tokens_are_partial: unreported !== 0,
    cost_usd: usdOrNull(known(sum.cost, Number(isPartial))),
    cost_is_partial: isPartial,
  };
}

/** A count of which some part was not reported is not known while nothing of it was. */
function known(count: number, unreported: number): number | null {
  return count === 0 && unreported !== 0 ? null : count;
}

/** Conversations as clients and runs read them. */
export class Conversations {
  readonly #database: Database;
  readonly #files: Files;

  constructor({ database }: Context, files: Files) {
    this.#database = database;
    this.#files = files;
  }

  /** The organization's conversation, or `404 not_found`. */
  async find(organizationId: string, id: string) {
    const row = isId(id)
      ? await findConversation(this.#database.read, { organizationId, id })
      : undefined;
    if (row === undefined) throw notFound('Conversation');
    return row;
  }

  async list(organizationId: string, filters: ConversationFilters, page: PageAsked) {
    const { conversations, total } = await listConversations(
      this.#database.read,
      organizationId,
      filters,
      page,
    );
    return { conversations: conversations.map(conversationView), total };
  }

  /** Like `list`, with the beginning of each. */
  async listOpened(organizationId: string, filters: ConversationFilters, page: PageAsked) {
    const { conversations, total } = await this.list(organizationId, filters, page);
    const ids = conversations.map(({ id }) => id);
    const openings = await listOpenings(this.#database.read, ids, openingLength);
    const opened = conversations.map((one) => ({ ...one, opening: openings.get(one.id) ?? null }));
    return { conversations: opened, total };
  }

  async get(organizationId: string, id: string) {
    const row = await this.find(organizationId, id);
    const [own, nested] = await Promise.all([
      sumTokensByJob(this.#database.read, { conversationId: id }),
      sumTokensBelowConversation(this.#database.read, id),
    ]);
    return { ...conversationView(row), ...tokenSums(own, nested) };
  }

  async messages(
    { organization_id, id }: Pick<ConversationRow, 'organization_id' | 'id'>,
    role: MessageRole | undefined,
    page: PageAsked,
  ) {
    const { messages, ...found } = await listMessages(this.#database.read, id, role, page);
    const named = new Map(messages.map((message) => [message, filesOfMessage(message)]));
    const rows = await this.#files.usable(organization_id, undefined, [...named.values()].flat());
    const listed = messages.map((message) => {
      const { dialogue, data: _, ...shown } = message;
      const files = (named.get(message) ?? []).flatMap((id) => rows.get(id) ?? []);
      return {
        ...shown,
        kind: kindOf(dialogue),
        ...(files.length > 0 && { files: files.map(fileReference) }),
        created_at: timestamp(message.created_at),
      };
    });
    return { ...found, messages: listed };
  }

  /** The tokens of all messages together, and of each message from `offset` on. */
  async tokenUsage(conversationId: string, offset = 0) {
    const totals = tokenStats(await sumTokensByJob(this.#database.read, { conversationId }));
    const rows = await listMessageTokens(this.#database.read, conversationId, {
      limit: breakdownMax + 1,
      offset,
    });
    const breakdown = rows
      .slice(0, breakdownMax)
      .map(({ id, role, prompt_tokens, completion_tokens, unreported, cost, ...parts }) => ({
        message_id: id,
        role,
        prompt_tokens: known(prompt_tokens, unreported & 1),
        completion_tokens: known(completion_tokens, unreported & 2),
        ...parts,
        cost_usd: usdOrNull(cost),
      }));
    return {
      usage: { conversation_id: conversationId, ...totals, breakdown },
      /** The offset at which to go on, null where the breakdown is complete. */
      next: rows.length > breakdownMax ? offset + breakdownMax : null,
    };
  }

  /** The newest messages of a conversation in the form that models take, without those of some jobs. */
  dialogue(
    conversationId: string,
    exceptJobIds: readonly string[],
    bounds: { limit: number; bytesMax: number },
  ) {
    return listDialogue(this.#database.read, conversationId, exceptJobIds, bounds);
  }

  /** Messages in the form that models take, by id; those of users have none. */
  async dataOf(
    conversationId: string,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, string>> {
    const rows = await listData(this.#database.read, { conversationId, ids });
    return new Map(rows.flatMap(({ id, data }) => (data === null ? [] : [[id, data]])));
  }

  /** Tokens that one job of a conversation used, and those of the jobs below it. */
  async tokensOfJob(conversationId: string, jobId: string): Promise<TokenSums> {
    const [rows, nested] = await Promise.all([
      sumTokensByJob(this.#database.read, { conversationId }),
      sumTokensBelowJob(this.#database.read, jobId),
    ]);
    const own = rows.filter((row) => row.job_id === jobId);
    return tokenSums(own, nested);
  }
}

/** Column by column, because PostgreSQL has more of them than are shown. */
export function conversationView(
  row: Omit<NewConversationRow, 'forked_from'> & Pick<ConversationRow, 'forked_from'>,
) {
  const { id, agent_id, user_id, status, trigger_type, forked_from, created_at, updated_at } = row;
  const moments = { created_at: timestamp(created_at), updated_at: timestamp(updated_at) };
  const fork = forked_from !== null && { forked_from };
  return { id, agent_id, user_id, status, trigger_type, ...fork, ...moments };
}

/** What `messages.dialogue` says of a message. */
function kindOf(dialogue: number): 'message' | 'summary' | 'unfinished' {
  if (dialogue === unfinishedMark) return 'unfinished';
  return dialogue >= summaryMark ? 'summary' : 'message';
}
