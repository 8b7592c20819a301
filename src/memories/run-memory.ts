/**
 * The memory of one attempt. Its changes are kept here, visible to the attempt at once and to no
 * other, until the transaction that completes the job records it; when the attempt ends
 * otherwise, it is dropped. Questions are answered one after another, in the order in which they
 * were asked, and each in a turn of the event loop of its own: on SQLite an answer blocks it. It has more than 300 lines
 * because each change can be made, made again and taken back, which has to be read together.
 */
import type { Database } from '../database/database.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { isId } from '../kernel/ids.ts';
import { permanentError } from '../kernel/permanent-error.ts';
import { canonicalJson } from '../kernel/text.ts';
import { checkBytes, defaultTag, type MemoryFields, queryCharsMax } from './fields.ts';
import { createFrequentTerms, type FrequentTerms } from './frequent-terms.ts';
import { fused } from './fusion.ts';
import type { Meaning } from './meaning.ts';
import { findMemory, listMemories, type VisibleMemoryRow } from './memories.store.ts';
import { type RunMemoryView, runMemoryView } from './memories.ts';
import { type MemoryMode, type MemoryVerb, memoryFault } from './memory-verbs.ts';
import { likenessOf } from './near-duplicates.ts';
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

/** Memories that a new one is compared with: the best that a search for its words finds. */
const comparedMax = 20;

/** Bytes of an answer as JSON text; an executor takes no larger one. */
const answerBytesMax = 1_000_000;

/** One thing that a part of a run did to the memory, as JSON. */
export type MemoryChange =
  | {
      readonly remembered: RunMemoryView & {
        readonly step: number | null;
        /** Whether it replaced an earlier one, whose id it has. */
        readonly updated?: boolean;
      };
    }
  | { readonly forgotten: string };

/** The memory of an attempt of this agent; to be made when the attempt first asks for it. */
export type StartRunMemory = ReturnType<typeof createRunMemories>;
export type RunMemory = ReturnType<StartRunMemory>;

/** A memory that is not recorded yet. */
type Remembered = NewMemory;

/** The run whose memory it is. */
export interface MemoryOfRun extends Owning {
  /** The user for whom it runs, whose memories it sees beside the agent's own; null without one. */
  readonly userId: string | null;
  readonly jobId: string;
  readonly conversationId: string;
}

/** The memory of one attempt. */
interface AttemptMemory extends MemoryOfRun {
  readonly database: Database;
  readonly clock: Clock;
  readonly meaning: () => Meaning | null;
  readonly frequent: FrequentTerms;
  readonly bounds: RunBounds;
  readonly remembered: Map<string, Remembered>;
  /** What the run remembered and then replaced, by id, the last one last. */
  readonly replaced: Map<string, Remembered[]>;
  /** What the run remembered and forgot again. */
  readonly dropped: Map<string, Remembered>;
  readonly forgotten: Set<string>;
  /** Resolves in a turn of the event loop that no other attempt gets. */
  turn(): Promise<void>;
  /** What the agent may do with its memory, read once. */
  mode: () => Promise<MemoryMode>;
  /** Resolves when all earlier questions are answered. */
  answered: Promise<unknown>;
}

interface RunMemoriesDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Null where memories have no vectors. */
  readonly meaning?: () => Meaning | null;
  readonly frequent?: FrequentTerms;
}

export function createRunMemories(
  { database, clock, meaning = () => null, frequent = createFrequentTerms(clock) }: RunMemoriesDeps,
  /** What runs of an agent may do with its memory. */
  modeOf: (organizationId: string, agentId: string) => Promise<MemoryMode>,
) {
  // For all runs: what each of them does in a turn adds up.
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
      mode: () => modeOf(run.organizationId, run.agentId),
      answered: Promise.resolve(),
    };
    return bind(attempt, { ask, restore, undo, changes });
  };
}

/** Runs `act` when all that was asked before is answered. */
function inTurn<T>(attempt: AttemptMemory, act: () => T | Promise<T>): Promise<T> {
  const result = attempt.answered.then(() => attempt.turn()).then(act);
  attempt.answered = result.catch(() => undefined);
  return result;
}

/** The part of a run that asks: it receives what its question changed. */
export interface Asker {
  readonly step: number | null;
  note(change: MemoryChange): void;
}

/**
 * Answers a question; rejects with a sentence for the author of the skill. The asker notes what the
 * question changed, so that a repetition of the run that does not ask again can restore it. A question is
 * validated at once, so that a refused one does not wait for the database.
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
        await requireAllowed(attempt, verb);
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
        await requireAllowed(attempt, verb);
        return await recall(attempt, wanted);
      });
    }
    case 'forget': {
      const id = readForget(payload);
      const isGone = await inTurn(attempt, async () => {
        await requireAllowed(attempt, verb);
        return isId(id) && (await forget(attempt, id));
      });
      if (isGone) asker.note({ forgotten: id });
      return isGone;
    }
  }
}

/** Throws where the agent may not use a verb. The mode is read once, so that all of an attempt follows the same. */
async function requireAllowed(attempt: AttemptMemory, verb: MemoryVerb): Promise<void> {
  const mode = await attempt.mode();
  attempt.mode = async () => mode;
  const fault = memoryFault(mode, verb);
  if (fault !== null) throw permanentError(fault);
}

/** Whose memory is asked for; by default the user's of the run, and the agent's own where it has none. */
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

/** Of a memory that replaces an earlier one. */
function momentsAfter({ created_at, updated_at }: Replaced, now: number) {
  return { created_at, updated_at: Math.max(now, updated_at + 1) };
}

/** The earlier memory is deleted where the new one is recorded, under the same id. */
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

/** What a new memory replaces: one that says the same, or else another number of the same thing; if there is one. */
async function similarTo(
  attempt: AttemptMemory,
  { content, tag = defaultTag, metadata = {} }: MemoryFields & { content: string },
  userId: string | null,
): Promise<Replaced | undefined> {
  // What stands in quotes is no phrase here.
  const query = [...content.replaceAll(/["\u201c\u201d\u201e]/g, ' ')]
    .slice(0, queryCharsMax)
    .join('');
  const wanted = { tag, userId, limit: comparedMax };
  const json = canonicalJson(metadata);
  const others = (await found(attempt, wanted, query))
    .filter((one) => canonicalJson(JSON.parse(one.metadata)) === json)
    // Erasing a user takes what its runs wrote for the agent: each user's, and a client's, stand for themselves.
    .filter((one) => userId !== null || (one.written_for === attempt.userId && !isEditedFor(one)))
    .map((one) => ({ one, likeness: likenessOf(one.content, content) }));
  const like =
    others.find(({ likeness }) => likeness === 'same') ??
    others.find(({ likeness }) => likeness === 'changed');
  if (like === undefined) return undefined;
  const { one } = like;
  const own = attempt.remembered.get(one.id);
  return { ...one, word_count: own?.word_count ?? readWords(one.content).length };
}

/** Whether a run for a user remembered it first, and a client has rewritten it. */
const isEditedFor = ({ written_for, edited }: VisibleMemoryRow) =>
  written_for !== null && edited === 1;

/** A memory that another one replaces. */
type Replaced = Pick<Remembered, 'id' | 'content' | 'created_at' | 'updated_at' | 'word_count'>;

/** Whose it is and which part of the run remembers it; again under its id, where it is restored. */
interface Remembering {
  readonly userId: string | null;
  readonly step: number | null;
  readonly before?: Replaced;
  readonly id?: string;
  readonly now?: number;
}

async function forget(attempt: AttemptMemory, id: string): Promise<boolean> {
  const { database, bounds, clock, remembered, dropped, forgotten } = attempt;
  const own = remembered.get(id);
  if (own !== undefined) {
    bounds.countForgotten(0);
    dropped.set(id, own);
    return remembered.delete(id);
  }
  const owners = await seenBy(attempt);
  const known = owners.length > 0 && (await findMemory(database.read, owners, id, clock.now()));
  if (!known || forgotten.has(id)) return false;
  bounds.countForgotten(known.word_count);
  forgotten.add(id);
  return true;
}

/** The owners of what the run sees: of the agent's own and of its user's; of one of the two where it is given. */
function seenBy(attempt: AttemptMemory, userId?: OfUser) {
  const { read } = attempt.database;
  return userId === undefined
    ? ownersSeen(read, attempt, attempt.userId)
    : ownersOf(read, attempt, userId);
}

/** What a run asks for; `userId` is of whom alone, where it says that. */
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
  /** Also what is near in its meaning; what a run has not handed in yet has no vector. */
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

/** Does again what an earlier attempt did, under the same ids. */
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
      // A version before there were memories of users has recorded none of the two.
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

/** Replaces again what an earlier attempt has replaced. */
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

/** What a repeated attempt does again is on record. */
const ofRecord: Asker = { step: null, note() {} };

/** Takes back what a part of the run did that begins again; it counts against the bounds still. */
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

/** As a run sees them: as many, from the first on, as fit into an answer. */
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
