/**
 * The memory of one attempt. Its changes are kept in this process, visible only to the attempt. The transaction that
 * completes the job records them; any other end drops them. Requests are answered one after another, in order, and each
 * in its own turn of the event loop, because an answer from SQLite blocks it. It has more than 300 lines because making,
 * repeating and undoing a change have to be read together.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isUnavailable } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import type { Logger } from '../../kernel/log.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { ProfileSetting } from '../agents/agent-rows.ts';
import type { Agents } from '../agents/agents.ts';
import { profileBytesDefault } from '../agents/setting-bounds.ts';
import type { Context } from '../context/context.ts';
import type { Owning } from '../embeddings/request.ts';
import { checkBytes, defaultTag, type MemoryFields, queryCharsMax } from './fields.ts';
import type { FrequentTerms } from './frequent-terms.ts';
import { fused } from './fusion.ts';
import type { Meaning } from './meaning.ts';
import { findMemory, listMemories, type VisibleMemoryRow } from './memories.store.ts';
import { type Memories, type RunMemoryView, runMemoryView } from './memories.ts';
import { MemoryBounds } from './memory-bounds.ts';
import {
  type MemoryMode,
  type MemoryRights,
  type MemoryVerb,
  memoryFault,
  readingVerbs,
  rightsOfCode,
  rightsOfModel,
} from './memory-verbs.ts';
import { type Likeness, likenessOf } from './near-duplicates.ts';
import { type OfUser, ownersOf, ownersSeen } from './owners.ts';
import type { PartChanges } from './part-changes.ts';
import type { ProfileChange, ProfileOfRun } from './profile-merge.ts';
import { findProfile } from './profiles.ts';
import { queryOf } from './query.ts';
import { type MemoryChanges, type NewMemory, newMemory, type Source } from './record.ts';
import { countAmong, matches, type Ranked, rank, weightsOf } from './relevance.ts';
import {
  type FormedOf,
  type Recollection,
  readForget,
  readProfile,
  readRecall,
  readRemember,
  refusing,
  type Whose,
  withoutRights,
} from './run-questions.ts';
import { countOf, inOrder, matchesOf, mayHaveExpired } from './search.ts';
import { Turns } from './turns.ts';
import { readWords } from './words.ts';

/** Search results that a new memory is compared with to find a duplicate. */
const comparedMax = 20;

/** Bytes of an answer as JSON text, the limit of messages to executors. */
const answerBytesMax = 1_000_000;

interface MemoryRules {
  readonly mode: MemoryMode;
  readonly profile: ProfileSetting | null;
}

/** One change of the memory by a part of a run, as JSON. */
export type MemoryChange =
  | {
      readonly remembered: RunMemoryView & {
        readonly step: number | null;
        /** What it was formed of. */
        readonly of?: FormedOf | undefined;
        /** Whether it replaced an earlier memory and took its id. */
        readonly updated?: boolean;
      };
    }
  | { readonly forgotten: string }
  | { readonly profile: ProfileChange };

/** The run that the memory belongs to. */
export interface MemoryOfRun extends Owning {
  /** The user of the run, whose memories it sees beside the agent's own; null without a user. */
  readonly userId: string | null;
  readonly jobId: string;
  readonly conversationId: string;
  /** When the job was accepted: a newer agent of the same id is another one. */
  readonly acceptedAt: number;
  /** Whether the job is a trial: it reads the agent's memory and does not change it. */
  readonly isTrial: boolean;
}

/** The memories of the runs of a process. */
export class RunMemories {
  readonly context: Context;
  readonly memories: Memories;
  readonly agents: Agents;
  /** Shared by all runs, so that their turns do not add up to a long block. */
  readonly turns = new Turns();

  constructor(context: Context, memories: Memories, agents: Agents) {
    this.context = context;
    this.memories = memories;
    this.agents = agents;
  }

  /** Begins the memory of an attempt; called at the attempt's first request. */
  begin(run: MemoryOfRun): RunMemory {
    return new RunMemory(this, run);
  }
}

/** The memory of one attempt. */
export class RunMemory {
  readonly run: MemoryOfRun;
  readonly database: Database;
  readonly clock: Clock;
  readonly meaning: () => Meaning | null;
  readonly frequent: FrequentTerms;
  readonly bounds = new MemoryBounds();
  readonly remembered = new Map<string, NewMemory>();
  /** By id: the memories of this run that it has replaced, oldest first. */
  readonly replaced = new Map<string, NewMemory[]>();
  /** By id: the memories of this run that it has forgotten again. */
  readonly dropped = new Map<string, NewMemory>();
  readonly forgotten = new Set<string>();
  readonly #log: Logger;
  readonly #turns: Turns;
  /** What the agent may do with its memory, and its bytes of a profile, read once. */
  #rules: () => Promise<MemoryRules>;
  /** The profile of the user as the run saw it first; null until it was read. */
  #seenProfile: string | null = null;
  /** The profiles that the run has made, oldest first. */
  readonly #profiles: ProfileChange[] = [];
  /** Resolves when all earlier requests are answered. */
  #answered: Promise<unknown> = Promise.resolve();

  constructor({ context, memories, agents, turns }: RunMemories, run: MemoryOfRun) {
    this.run = run;
    this.database = context.database;
    this.clock = context.clock;
    this.meaning = memories.meaning;
    this.frequent = memories.frequent;
    this.#log = context.log;
    this.#turns = turns;
    this.#rules = () => agents.memoryOf(run.organizationId, run.agentId, run.acceptedAt);
  }

  /**
   * Answers a request; rejects with a message for the author of the skill. The asker records the changes, so that a
   * repeated run can restore them without asking again. Invalid requests are refused at once, without waiting for the
   * database.
   */
  async ask(verb: MemoryVerb, given: unknown, requester: Requester = ofRecord): Promise<unknown> {
    const payload = withoutRights(given);
    // Code may ask with the rights of a model, which are never more than its own.
    const asker = payload === given ? requester : { ...requester, isModel: true };
    if (this.run.isTrial && !readingVerbs.includes(verb))
      throw permanentError('a trial may only read the memory of its agent');
    try {
      return await this.#answer(verb, payload, asker);
    } catch (error) {
      // The skill learns only that the memory cannot be used; an operator needs the cause.
      if (isUnavailable(error)) {
        const { cause: err = error } = error as Error;
        const subject = { err, job_id: this.run.jobId, verb };
        this.#log.warn(subject, 'the memory of an agent could not be used');
      }
      throw error;
    }
  }

  /** Runs `act` when all earlier requests are answered. */
  #inTurn<T>(act: () => T | Promise<T>): Promise<T> {
    const result = this.#answered.then(() => this.#turns.take()).then(act);
    this.#answered = result.catch(() => undefined);
    return result;
  }

  async #answer(verb: MemoryVerb, payload: unknown, asker: Requester = ofRecord): Promise<unknown> {
    switch (verb) {
      case 'remember': {
        const { whose, source: of, ...fields } = readRemember(payload, this.clock.now());
        const userId = userOf(this.run, whose);
        this.bounds.countRemembered(refusing(() => checkBytes(fields)));
        return this.#inTurn(async () => {
          const rights = await this.#requireAllowed(verb, asker);
          if (rights === 'user' && userId === null) throw permanentError(onlyForUser);
          const before = await this.#similarTo(fields, userId);
          const making = { userId, step: asker.step, of, ...(before && { before }) };
          const memory = this.#remember(fields, making);
          const isUpdate = before !== undefined && { updated: true };
          asker.changes?.add({ remembered: { ...memory, step: asker.step, of, ...isUpdate } });
          return before === undefined
            ? memory
            : { ...memory, ...isUpdate, old_content: before.content };
        });
      }
      case 'recall': {
        const { whose, ...asked } = readRecall(payload);
        const wanted = whose === undefined ? asked : { ...asked, userId: userOf(this.run, whose) };
        return this.#inTurn(async () => {
          await this.#requireAllowed(verb, asker);
          return await this.#recall(wanted);
        });
      }
      case 'forget': {
        const id = readForget(payload);
        const isGone = await this.#inTurn(async () => {
          const rights = await this.#requireAllowed(verb, asker);
          return isId(id) && (await this.#forget(id, rights));
        });
        if (isGone) asker.changes?.add({ forgotten: id });
        return isGone;
      }
      case 'profile':
        return this.#inTurn(async () => {
          await this.#requireAllowed(verb, asker);
          return await this.#profile();
        });
      case 'update_profile':
        return this.#inTurn(() => this.#updateProfile(payload, asker));
    }
  }

  /**
   * The rights of the asker; throws if they exclude the verb. The mode is read once, so it is the same for the whole
   * attempt.
   */
  async #requireAllowed(verb: MemoryVerb, { isModel }: Requester): Promise<MemoryRights> {
    const rules = await this.#rules();
    this.#rules = async () => rules;
    const { mode } = rules;
    const rights =
      isModel === true ? rightsOfModel(mode, this.run.userId !== null) : rightsOfCode(mode);
    const fault = memoryFault(rights, verb);
    if (fault !== null) throw permanentError(fault);
    return rights;
  }

  /** What the prompt of an earlier claim had: the profile that the run's changes are compared with. */
  sawProfile(content: string): void {
    this.#seenProfile ??= content;
  }

  /** The profile of the run's user before the run's own changes; empty where there is none. */
  firstProfile(): Promise<string> {
    return this.#inTurn(async () => {
      await this.#profile();
      return this.#seenProfile ?? '';
    });
  }

  /** The profile of the run's user, with the run's own change; empty where there is none. */
  async #profile(): Promise<string> {
    const { userId } = this.run;
    if (userId === null) return '';
    this.#seenProfile ??= (await findProfile(this.database.read, this.run, userId))?.content ?? '';
    return this.#profiles.at(-1)?.content ?? this.#seenProfile;
  }

  async #updateProfile(payload: unknown, asker: Requester) {
    await this.#requireAllowed('update_profile', asker);
    const { profile } = await this.#rules();
    if (this.run.userId === null) throw permanentError('this run is for no user, so no profile');
    if (asker.isModel === true && profile === null)
      throw permanentError('the model of this agent keeps no profiles');
    const max_bytes = profile?.max_bytes ?? profileBytesDefault;
    const content = readProfile(payload, max_bytes);
    this.bounds.countForgotten(0);
    await this.#profile();
    const change = { content, seen: this.#seenProfile ?? '' };
    this.#profiles.push(change);
    asker.changes?.add({ profile: change });
    return { bytes: Buffer.byteLength(content), max_bytes };
  }

  #remember(
    fields: MemoryFields & { content: string },
    { userId, step, of, before, id = before?.id, now = this.clock.now() }: Remembering,
  ) {
    const { bounds, remembered } = this;
    const { jobId, conversationId, userId: ofUser } = this.run;
    const source: Source = {
      job_id: jobId,
      conversation_id: of?.conversation_id ?? conversationId,
      message_id: of?.message_id ?? null,
      of_user: ofUser,
      step,
    };
    const memory = newMemory(fields, { now, userId, source, ...(id !== undefined && { id }) });
    bounds.countWords(memory.word_count);
    const made = before === undefined ? memory : { ...memory, ...momentsAfter(before, now) };
    if (before !== undefined) this.#replace(before);
    remembered.set(made.id, made);
    return runMemoryView(made);
  }

  /** Replaces an earlier memory: it is deleted when the new one is recorded under the same id. */
  #replace({ id, ...before }: Replaced) {
    const { bounds, remembered, replaced, forgotten } = this;
    const own = remembered.get(id);
    if (own !== undefined) replaced.set(id, [...(replaced.get(id) ?? []), own]);
    else {
      bounds.countForgotten(before.word_count);
      forgotten.add(id);
    }
  }

  /** The memory that a new one replaces: first one that says the same, else one with another number for the same subject. */
  async #similarTo(
    { content, tag = defaultTag, metadata = {} }: MemoryFields & { content: string },
    userId: string | null,
  ): Promise<Replaced | undefined> {
    // Remove quotation marks: in a query they would ask for a phrase.
    const query = [...content.replaceAll(/["\u201c\u201d\u201e]/g, ' ')]
      .slice(0, queryCharsMax)
      .join('');
    const wanted = { tag, userId, limit: comparedMax };
    const json = canonicalJson(metadata);
    const candidates = (await this.#found(wanted, query))
      .filter((one) => canonicalJson(JSON.parse(one.metadata)) === json)
      // Replace the agent's own memories only if runs for the same user wrote them: erasing that user deletes them.
      .filter(
        (one) => userId !== null || (one.written_for === this.run.userId && !isEditedFor(one)),
      );
    const others: { one: VisibleMemoryRow; likeness: Likeness }[] = [];
    for (const one of candidates) {
      others.push({ one, likeness: likenessOf(one.content, content) });
      await nextTurn();
    }
    const like =
      others.find(({ likeness }) => likeness === 'same') ??
      others.find(({ likeness }) => likeness === 'changed');
    if (like === undefined) return undefined;
    const { one } = like;
    const own = this.remembered.get(one.id);
    return { ...one, word_count: own?.word_count ?? readWords(one.content).length };
  }

  async #forget(id: string, rights: MemoryRights = 'read_write'): Promise<boolean> {
    const { database, bounds, clock, remembered, dropped, forgotten } = this;
    const own = remembered.get(id);
    if (own !== undefined) {
      requireOfUser(own, rights);
      bounds.countForgotten(0);
      dropped.set(id, own);
      return remembered.delete(id);
    }
    const owners = await this.#seenBy();
    const known = owners.length > 0 && (await findMemory(database.read, owners, id, clock.now()));
    if (!known || forgotten.has(id)) return false;
    requireOfUser(known, rights);
    bounds.countForgotten(known.word_count);
    forgotten.add(id);
    return true;
  }

  /** The owners that the run sees: the agent and the run's user; with `userId` only that one. */
  #seenBy(userId?: OfUser) {
    const { read } = this.database;
    return userId === undefined
      ? ownersSeen(read, this.run, this.run.userId)
      : ownersOf(read, this.run, userId);
  }

  async #recall(wanted: RecallRequest) {
    const { query } = wanted;
    const rows =
      query === undefined ? this.#newest(wanted) : this.#found(wanted, query, this.meaning());
    return fitting(await rows);
  }

  /** The attempt's own new memories with the tag. */
  #own({ tag, userId }: RecallRequest): NewMemory[] {
    const { remembered } = this;
    return [...remembered.values()]
      .filter((one) => tag === undefined || one.tag === tag)
      .filter((one) => userId === undefined || one.user_id === userId);
  }

  async #newest(wanted: RecallRequest): Promise<VisibleMemoryRow[]> {
    const { tag, limit, userId } = wanted;
    const { read } = this.database;
    const owners = await this.#seenBy(userId);
    const seen = { owners, now: this.clock.now() };
    const now = mayHaveExpired(seen) ? seen.now : null;
    const filter = { tag, without: [...this.forgotten], now };
    const stored = await listMemories(read, owners, filter, { limit, offset: 0 });
    return [...this.#own(wanted), ...stored].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
  }

  async #found(
    wanted: RecallRequest,
    text: string,
    /** Semantic search, if it is wanted; the run's own unrecorded memories have no vectors. */
    meaning: Meaning | null = null,
  ): Promise<VisibleMemoryRow[]> {
    const { tag, limit, userId } = wanted;
    const { forgotten, remembered, clock } = this;
    const { read } = this.database;
    const query = queryOf(text);
    const owners = await this.#seenBy(userId);
    const seen = { owners, tag, now: clock.now() };
    const [near, stored] = await Promise.all([
      meaning?.nearest(this.run, seen, text) ?? [],
      owners.length === 0
        ? { matches: [], others: [], counts: [] }
        : matchesOf(read, { ...seen, query, frequent: this.frequent }, forgotten),
    ]);
    const counts = countAmong([...remembered.values()], query).map(({ strong, weak }, i) => ({
      strong: strong + (stored.counts[i]?.strong ?? 0),
      weak: weak + (stored.counts[i]?.weak ?? 0),
    }));
    const weights = weightsOf(counts, countOf({ owners }) + remembered.size);
    const unrecorded = this.#own(wanted).filter((one) => matches(one, query));
    const all: (Ranked & { seq?: number })[] = [...unrecorded, ...stored.matches];
    const best = rank(all, query, weights);
    const ordered = [...best.map(({ id, seq }) => remembered.get(id) ?? seq), ...stored.others];
    const known = near.filter(({ id }) => !forgotten.has(id)).map(({ seq }) => seq);
    const order = fused(ordered, known).slice(0, limit);
    const seqs = order.filter((one) => typeof one === 'number');
    const ids = owners.map(({ id }) => id);
    const bySeq = new Map((await inOrder(read, ids, seqs)).map((row) => [row.seq, row]));
    return order.flatMap((one) => (typeof one === 'number' ? bySeq.get(one) : one) ?? []);
  }

  /** Repeats the recorded changes of an earlier attempt, under the same ids. */
  async restore(changes: readonly MemoryChange[]): Promise<void> {
    for (const change of changes) {
      if ('profile' in change) {
        this.sawProfile(change.profile.seen);
        this.#profiles.push(change.profile);
      } else if ('forgotten' in change) {
        await this.#inTurn(() => this.#forget(change.forgotten));
      } else {
        const { id, content, tag, metadata, created_at, expires_at, ...more } = change.remembered;
        const fields = {
          ...{ content, tag, metadata },
          expires_at: expires_at ? Date.parse(expires_at) : null,
        };
        this.bounds.countRemembered(checkBytes(fields));
        const now = Date.parse(created_at);
        const making = { userId: more.user_id, step: more.step, of: more.of, id, now };
        await this.#inTurn(() => {
          if (more.updated === true) return this.#rememberAgain(fields, making, more.updated_at);
          return this.#remember(fields, making);
        });
      }
    }
  }

  /** Repeats a replacement of an earlier attempt. */
  #rememberAgain(
    fields: MemoryFields & { content: string },
    making: Remembering & { readonly id: string; readonly now: number },
    updatedAt: string,
  ) {
    const { id, now: created_at } = making;
    const own = this.remembered.get(id);
    const updated_at = Date.parse(updatedAt);
    const moments = { created_at, updated_at: updated_at - 1 };
    const before = { id, content: '', word_count: own?.word_count ?? 0, ...moments };
    return this.#remember(fields, { ...making, before, now: updated_at });
  }

  /** Undoes the changes of a part of the run that starts again. They still count against the limits. */
  undo(changes: readonly MemoryChange[]): Promise<void> {
    const { remembered, replaced, dropped, forgotten } = this;
    return this.#inTurn(() => {
      for (const change of changes.toReversed()) {
        if ('profile' in change) {
          this.#profiles.pop();
        } else if ('remembered' in change) {
          const { id, updated } = change.remembered;
          const before = updated === true ? replaced.get(id)?.pop() : undefined;
          if (before !== undefined) remembered.set(id, before);
          else {
            remembered.delete(id);
            forgotten.delete(id);
          }
        } else {
          const own = dropped.get(change.forgotten);
          if (own === undefined) forgotten.delete(change.forgotten);
          else {
            dropped.delete(own.id);
            remembered.set(own.id, own);
          }
        }
      }
    });
  }

  #profileOfRun(): ProfileOfRun | undefined {
    const { jobId, conversationId } = this.run;
    const last = this.#profiles.at(-1);
    return last && { ...last, jobId, conversationId };
  }

  /** The changes to record; resolves once every request has been answered. */
  async changes(): Promise<MemoryChanges> {
    await this.#answered;
    return {
      remembered: [...this.remembered.values()],
      forgotten: [...this.forgotten],
      profile: this.#profileOfRun(),
      share: this.bounds.share(),
    };
  }
}

/** The part of a run that requests something of the memory; it notes what that changed. */
export interface Requester {
  readonly step: number | null;
  /** Whether a model asks, by a call of its tool, and not the code of a skill. */
  readonly isModel?: boolean;
  readonly changes: PartChanges | null;
}

/** The user whose memory is meant; by default the run's user. Null for the agent's own memory. */
function userOf({ userId }: MemoryOfRun, whose: Whose | undefined): string | null {
  if (whose !== 'user') return whose === 'agent' ? null : userId;
  if (userId === null) throw permanentError('this run is for no user, so whose must be agent');
  return userId;
}

/** The timestamps of a memory that replaces an earlier one. */
function momentsAfter({ created_at, updated_at }: Replaced, now: number) {
  return { created_at, updated_at: Math.max(now, updated_at + 1) };
}

/** Whether a run for a user wrote the memory and a client has edited it since. */
const isEditedFor = ({ written_for, edited }: VisibleMemoryRow) =>
  written_for !== null && edited === 1;

/** A memory that another one replaces. */
type Replaced = Pick<NewMemory, 'id' | 'content' | 'created_at' | 'updated_at' | 'word_count'>;

/** The owner of a new memory and the step that remembers it; with `id` when a repeated run restores it. */
interface Remembering {
  readonly userId: string | null;
  readonly step: number | null;
  readonly of?: FormedOf | undefined;
  readonly before?: Replaced;
  readonly id?: string;
  readonly now?: number;
}

/** Throws where the rights end at the memories of the run's user. A run sees no memory of another user. */
function requireOfUser({ user_id }: Pick<VisibleMemoryRow, 'user_id'>, rights: MemoryRights): void {
  if (rights === 'user' && user_id === null) throw permanentError(onlyOfUser);
}

/** The arguments of recall; `userId` restricts it to one owner if the run says so. */
type RecallRequest = Omit<Recollection, 'whose'> & { readonly userId?: OfUser };

const onlyForUser =
  "this agent's model may remember for the user of this run alone: leave whose out";
const onlyOfUser =
  "this agent's model may forget memories of the user of this run alone, and this one is the agent's own";

/** The asker of repeated changes, which are already recorded. */
const ofRecord: Requester = { step: null, changes: null };

/** The first memories that fit into an answer, as a run sees them. */
function fitting(rows: readonly VisibleMemoryRow[]): RunMemoryView[] {
  const memories: RunMemoryView[] = [];
  let bytes = 2;
  for (const row of rows) {
    const memory = runMemoryView(row);
    bytes += Buffer.byteLength(JSON.stringify(memory)) + 1;
    if (bytes > answerBytesMax) break;
    memories.push(memory);
  }
  return memories;
}
