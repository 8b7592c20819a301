/**
 * The memory of one attempt. Its changes are kept in this process, visible only to the attempt. The transaction that
 * completes the job records them; any other end drops them. Requests are answered one after another, in order, and each
 * in its own turn of the event loop, because an answer from SQLite blocks it. It has more than 300 lines because making,
 * repeating and undoing a change have to be read together.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../../adapters/database/database.ts';
import { bind } from '../../kernel/bind.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isId } from '../../kernel/ids.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { checkBytes, defaultTag, type MemoryFields, queryCharsMax } from './fields.ts';
import { createFrequentTerms, type FrequentTerms } from './frequent-terms.ts';
import { fused } from './fusion.ts';
import type { Meaning } from './meaning.ts';
import { findMemory, listMemories, type VisibleMemoryRow } from './memories.store.ts';
import { type RunMemoryView, runMemoryView } from './memories.ts';
import {
  type MemoryMode,
  type MemoryRights,
  type MemoryVerb,
  memoryFault,
  rightsOfCode,
  rightsOfModel,
} from './memory-verbs.ts';
import { type Likeness, likenessOf } from './near-duplicates.ts';
import { type OfUser, type Owning, ownersOf, ownersSeen } from './owners.ts';
import { queryOf } from './query.ts';
import { type MemoryChanges, type NewMemory, newMemory, type Source } from './record.ts';
import { countAmong, matches, type Ranked, rank, weightsOf } from './relevance.ts';
import { createRunBounds, type RunBounds } from './run-bounds.ts';
import {
  type Recollection,
  readForget,
  readRecall,
  readRemember,
  refusing,
  type Whose,
} from './run-questions.ts';
import { countOf, inOrder, matchesOf, mayHaveExpired } from './search.ts';
import { createTurns } from './turns.ts';
import { readWords } from './words.ts';

/** Search results that a new memory is compared with to find a duplicate. */
const comparedMax = 20;

/** Bytes of an answer as JSON text, the limit of messages to executors. */
const answerBytesMax = 1_000_000;

/** One change of the memory by a part of a run, as JSON. */
export type MemoryChange =
  | {
      readonly remembered: RunMemoryView & {
        readonly step: number | null;
        /** Whether it replaced an earlier memory and took its id. */
        readonly updated?: boolean;
      };
    }
  | { readonly forgotten: string };

/** Creates the memory of an attempt; called at the attempt's first request. */
export type StartRunMemory = ReturnType<typeof createRunMemories>;
export type RunMemory = ReturnType<StartRunMemory>;

/** A memory that is not recorded yet. */
type Remembered = NewMemory;

/** The run that the memory belongs to. */
export interface MemoryOfRun extends Owning {
  /** The user of the run, whose memories it sees beside the agent's own; null without a user. */
  readonly userId: string | null;
  readonly jobId: string;
  readonly conversationId: string;
  /** When the job was accepted: a newer agent of the same id is another one. */
  readonly acceptedAt: number;
}

/** The memory of one attempt. */
interface AttemptMemory extends MemoryOfRun {
  readonly database: Database;
  readonly clock: Clock;
  readonly meaning: () => Meaning | null;
  readonly frequent: FrequentTerms;
  readonly bounds: RunBounds;
  readonly remembered: Map<string, Remembered>;
  /** By id: the memories of this run that it has replaced, oldest first. */
  readonly replaced: Map<string, Remembered[]>;
  /** By id: the memories of this run that it has forgotten again. */
  readonly dropped: Map<string, Remembered>;
  readonly forgotten: Set<string>;
  /** Resolves in a turn of the event loop that no other attempt gets. */
  turn(): Promise<void>;
  /** What the agent may do with its memory, read once. */
  mode: () => Promise<MemoryMode>;
  /** Resolves when all earlier requests are answered. */
  answered: Promise<unknown>;
}

interface RunMemoriesDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Semantic search; null when memories have no vectors. */
  readonly meaning?: () => Meaning | null;
  readonly frequent?: FrequentTerms;
}

export function createRunMemories(
  { database, clock, meaning = () => null, frequent = createFrequentTerms(clock) }: RunMemoriesDeps,
  /** What runs of an agent may do with its memory. */
  modeOf: (organizationId: string, agentId: string, acceptedAt: number) => Promise<MemoryMode>,
) {
  // Shared by all runs, so that their turns do not add up to a long block.
  const turn = createTurns();
  return (run: MemoryOfRun) => {
    const attempt: AttemptMemory = {
      ...run,
      database,
      clock,
      turn,
      meaning,
      frequent,
      bounds: createRunBounds(),
      remembered: new Map(),
      replaced: new Map(),
      dropped: new Map(),
      forgotten: new Set(),
      mode: () => modeOf(run.organizationId, run.agentId, run.acceptedAt),
      answered: Promise.resolve(),
    };
    return bind(attempt, { ask, restore, undo, changes });
  };
}

/** Runs `act` when all earlier requests are answered. */
function inTurn<T>(attempt: AttemptMemory, act: () => T | Promise<T>): Promise<T> {
  const result = attempt.answered.then(() => attempt.turn()).then(act);
  attempt.answered = result.catch(() => undefined);
  return result;
}

/** The part of a run that asks; it records the changes of its request. */
export interface Asker {
  readonly step: number | null;
  /** Whether a model asks, by a call of its tool, and not the code of a skill. */
  readonly isModel?: boolean;
  note(change: MemoryChange): void;
}

/**
 * Answers a request; rejects with a message for the author of the skill. The asker records the changes, so that a
 * repeated run can restore them without asking again. Invalid requests are refused at once, without waiting for the
 * database.
 */
async function ask(
  attempt: AttemptMemory,
  verb: MemoryVerb,
  payload: unknown,
  asker: Asker = ofRecord,
): Promise<unknown> {
  switch (verb) {
    case 'remember': {
      const { whose, ...fields } = readRemember(payload, attempt.clock.now());
      const userId = userOf(attempt, whose);
      attempt.bounds.countRemembered(refusing(() => checkBytes(fields)));
      return inTurn(attempt, async () => {
        const rights = await requireAllowed(attempt, verb, asker);
        if (rights === 'user' && userId === null) throw permanentError(onlyForUser);
        const before = await similarTo(attempt, fields, userId);
        const making = { userId, step: asker.step, ...(before && { before }) };
        const memory = remember(attempt, fields, making);
        const isUpdate = before !== undefined && { updated: true };
        asker.note({ remembered: { ...memory, step: asker.step, ...isUpdate } });
        return before === undefined
          ? memory
          : { ...memory, ...isUpdate, old_content: before.content };
      });
    }
    case 'recall': {
      const { whose, ...asked } = readRecall(payload);
      const wanted = whose === undefined ? asked : { ...asked, userId: userOf(attempt, whose) };
      return inTurn(attempt, async () => {
        await requireAllowed(attempt, verb, asker);
        return await recall(attempt, wanted);
      });
    }
    case 'forget': {
      const id = readForget(payload);
      const isGone = await inTurn(attempt, async () => {
        const rights = await requireAllowed(attempt, verb, asker);
        return isId(id) && (await forget(attempt, id, rights));
      });
      if (isGone) asker.note({ forgotten: id });
      return isGone;
    }
  }
}

const onlyForUser =
  "this agent's model may remember for the user of this run alone: leave whose out";
const onlyOfUser =
  "this agent's model may forget memories of the user of this run alone, and this one is the agent's own";

/**
 * The rights of the asker; throws if they exclude the verb. The mode is read once, so it is the same for the whole
 * attempt.
 */
async function requireAllowed(
  attempt: AttemptMemory,
  verb: MemoryVerb,
  { isModel }: Asker,
): Promise<MemoryRights> {
  const mode = await attempt.mode();
  attempt.mode = async () => mode;
  const rights =
    isModel === true ? rightsOfModel(mode, attempt.userId !== null) : rightsOfCode(mode);
  const fault = memoryFault(rights, verb);
  if (fault !== null) throw permanentError(fault);
  return rights;
}

/** The user whose memory is meant; by default the run's user. Null for the agent's own memory. */
function userOf({ userId }: MemoryOfRun, whose: Whose | undefined): string | null {
  if (whose !== 'user') return whose === 'agent' ? null : userId;
  if (userId === null) throw permanentError('this run is for no user, so whose must be agent');
  return userId;
}

function remember(
  attempt: AttemptMemory,
  fields: MemoryFields & { content: string },
  { userId, step, before, id = before?.id, now = attempt.clock.now() }: Remembering,
) {
  const { bounds, remembered, jobId, conversationId } = attempt;
  const ofRun = { job_id: jobId, conversation_id: conversationId, of_user: attempt.userId };
  const source: Source = { ...ofRun, step };
  const memory = newMemory(fields, { now, userId, source, ...(id !== undefined && { id }) });
  bounds.countWords(memory.word_count);
  const made = before === undefined ? memory : { ...memory, ...momentsAfter(before, now) };
  if (before !== undefined) replace(attempt, before);
  remembered.set(made.id, made);
  return runMemoryView(made);
}

/** The timestamps of a memory that replaces an earlier one. */
function momentsAfter({ created_at, updated_at }: Replaced, now: number) {
  return { created_at, updated_at: Math.max(now, updated_at + 1) };
}

/** Replaces an earlier memory: it is deleted when the new one is recorded under the same id. */
function replace(
  { bounds, remembered, replaced, forgotten }: AttemptMemory,
  { id, ...before }: Replaced,
) {
  const own = remembered.get(id);
  if (own !== undefined) replaced.set(id, [...(replaced.get(id) ?? []), own]);
  else {
    bounds.countForgotten(before.word_count);
    forgotten.add(id);
  }
}

/** The memory that a new one replaces: first one that says the same, else one with another number for the same subject. */
async function similarTo(
  attempt: AttemptMemory,
  { content, tag = defaultTag, metadata = {} }: MemoryFields & { content: string },
  userId: string | null,
): Promise<Replaced | undefined> {
  // Remove quotation marks: in a query they would ask for a phrase.
  const query = [...content.replaceAll(/["\u201c\u201d\u201e]/g, ' ')]
    .slice(0, queryCharsMax)
    .join('');
  const wanted = { tag, userId, limit: comparedMax };
  const json = canonicalJson(metadata);
  const candidates = (await found(attempt, wanted, query))
    .filter((one) => canonicalJson(JSON.parse(one.metadata)) === json)
    // Replace the agent's own memories only if runs for the same user wrote them: erasing that user deletes them.
    .filter((one) => userId !== null || (one.written_for === attempt.userId && !isEditedFor(one)));
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
  const own = attempt.remembered.get(one.id);
  return { ...one, word_count: own?.word_count ?? readWords(one.content).length };
}

/** Whether a run for a user wrote the memory and a client has edited it since. */
const isEditedFor = ({ written_for, edited }: VisibleMemoryRow) =>
  written_for !== null && edited === 1;

/** A memory that another one replaces. */
type Replaced = Pick<Remembered, 'id' | 'content' | 'created_at' | 'updated_at' | 'word_count'>;

/** The owner of a new memory and the step that remembers it; with `id` when a repeated run restores it. */
interface Remembering {
  readonly userId: string | null;
  readonly step: number | null;
  readonly before?: Replaced;
  readonly id?: string;
  readonly now?: number;
}

async function forget(
  attempt: AttemptMemory,
  id: string,
  rights: MemoryRights = 'read_write',
): Promise<boolean> {
  const { database, bounds, clock, remembered, dropped, forgotten } = attempt;
  const own = remembered.get(id);
  if (own !== undefined) {
    requireOfUser(own, rights);
    bounds.countForgotten(0);
    dropped.set(id, own);
    return remembered.delete(id);
  }
  const owners = await seenBy(attempt);
  const known = owners.length > 0 && (await findMemory(database.read, owners, id, clock.now()));
  if (!known || forgotten.has(id)) return false;
  requireOfUser(known, rights);
  bounds.countForgotten(known.word_count);
  forgotten.add(id);
  return true;
}

/** Throws where the rights end at the memories of the run's user. A run sees no memory of another user. */
function requireOfUser({ user_id }: Pick<VisibleMemoryRow, 'user_id'>, rights: MemoryRights): void {
  if (rights === 'user' && user_id === null) throw permanentError(onlyOfUser);
}

/** The owners that the run sees: the agent and the run's user; with `userId` only that one. */
function seenBy(attempt: AttemptMemory, userId?: OfUser) {
  const { read } = attempt.database;
  return userId === undefined
    ? ownersSeen(read, attempt, attempt.userId)
    : ownersOf(read, attempt, userId);
}

/** The arguments of recall; `userId` restricts it to one owner if the run says so. */
type Wanted = Omit<Recollection, 'whose'> & { readonly userId?: OfUser };

async function recall(attempt: AttemptMemory, wanted: Wanted) {
  const { query } = wanted;
  const rows =
    query === undefined
      ? newest(attempt, wanted)
      : found(attempt, wanted, query, attempt.meaning()?.nearest);
  return fitting(await rows);
}

/** The attempt's own new memories with the tag. */
function own({ remembered }: AttemptMemory, { tag, userId }: Wanted): Remembered[] {
  return [...remembered.values()]
    .filter((one) => tag === undefined || one.tag === tag)
    .filter((one) => userId === undefined || one.user_id === userId);
}

async function newest(attempt: AttemptMemory, wanted: Wanted): Promise<VisibleMemoryRow[]> {
  const { tag, limit, userId } = wanted;
  const { read } = attempt.database;
  const owners = await seenBy(attempt, userId);
  const seen = { owners, now: attempt.clock.now() };
  const now = mayHaveExpired(seen) ? seen.now : null;
  const filter = { tag, without: [...attempt.forgotten], now };
  const stored = await listMemories(read, owners, filter, { limit, offset: 0 });
  return [...own(attempt, wanted), ...stored]
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit);
}

async function found(
  attempt: AttemptMemory,
  wanted: Wanted,
  text: string,
  /** Adds semantic search; the run's own unrecorded memories have no vectors. */
  nearest: Meaning['nearest'] = async () => [],
): Promise<VisibleMemoryRow[]> {
  const { tag, limit, userId } = wanted;
  const { forgotten, remembered, clock } = attempt;
  const { read } = attempt.database;
  const query = queryOf(text);
  const owners = await seenBy(attempt, userId);
  const seen = { owners, tag, now: clock.now() };
  const [near, stored] = await Promise.all([
    nearest(attempt, seen, text),
    owners.length === 0
      ? { matches: [], others: [], counts: [] }
      : matchesOf(read, { ...seen, query, frequent: attempt.frequent }, forgotten),
  ]);
  const counts = countAmong([...remembered.values()], query).map(({ strong, weak }, i) => ({
    strong: strong + (stored.counts[i]?.strong ?? 0),
    weak: weak + (stored.counts[i]?.weak ?? 0),
  }));
  const weights = weightsOf(counts, countOf({ owners }) + remembered.size);
  const unrecorded = own(attempt, wanted).filter((one) => matches(one, query));
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
async function restore(attempt: AttemptMemory, changes: readonly MemoryChange[]): Promise<void> {
  for (const change of changes) {
    if ('forgotten' in change) {
      await inTurn(attempt, () => forget(attempt, change.forgotten));
    } else {
      const { id, content, tag, metadata, created_at, expires_at, ...more } = change.remembered;
      const fields = {
        ...{ content, tag, metadata },
        expires_at: expires_at ? Date.parse(expires_at) : null,
      };
      attempt.bounds.countRemembered(checkBytes(fields));
      const now = Date.parse(created_at);
      // Steps that were recorded before memories of users existed lack both fields.
      const userId = more.user_id ?? null;
      const step = more.step ?? null;
      const making = { userId, step, id, now };
      await inTurn(attempt, () => {
        if (more.updated === true) return rememberAgain(attempt, fields, making, more.updated_at);
        return remember(attempt, fields, making);
      });
    }
  }
}

/** Repeats a replacement of an earlier attempt. */
function rememberAgain(
  attempt: AttemptMemory,
  fields: MemoryFields & { content: string },
  making: Remembering & { readonly id: string; readonly now: number },
  updatedAt: string,
) {
  const { id, now: created_at } = making;
  const own = attempt.remembered.get(id);
  const updated_at = Date.parse(updatedAt);
  const moments = { created_at, updated_at: updated_at - 1 };
  const before = { id, content: '', word_count: own?.word_count ?? 0, ...moments };
  return remember(attempt, fields, { ...making, before, now: updated_at });
}

/** The asker of repeated changes, which are already recorded. */
const ofRecord: Asker = { step: null, note() {} };

/** Undoes the changes of a part of the run that starts again. They still count against the limits. */
function undo(attempt: AttemptMemory, changes: readonly MemoryChange[]): Promise<void> {
  const { remembered, replaced, dropped, forgotten } = attempt;
  return inTurn(attempt, () => {
    for (const change of changes.toReversed()) {
      if ('remembered' in change) {
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

/** The changes to record; resolves once every request has been answered. */
async function changes(attempt: AttemptMemory): Promise<MemoryChanges> {
  await attempt.answered;
  return {
    remembered: [...attempt.remembered.values()],
    forgotten: [...attempt.forgotten],
    share: attempt.bounds.share(),
  };
}

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
