/**
 * The memory of one attempt. Its changes are kept here, visible to the attempt at once and to no
 * other, until the transaction that completes the job records it; when the attempt ends
 * otherwise, it is dropped. Questions are answered one after another, in the order in which they
 * were asked, and each in a turn of the event loop of its own: on SQLite an answer blocks it.
 */
import type { Database } from '../database/database.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { isId } from '../kernel/ids.ts';
import { checkBytes } from './fields.ts';
import { listMemories, sizeOfMemory, type VisibleMemoryRow } from './memories.store.ts';
import { runMemoryView } from './memories.ts';
import type { MemoryVerb } from './memory-verbs.ts';
import { findOwner } from './owners.store.ts';
import { queryOf } from './query.ts';
import { type MemoryChanges, type NewMemory, newMemory, type Owning } from './record.ts';
import { countAmong, matches, type Ranked, rank, weightsOf } from './relevance.ts';
import { createRunBounds, type RunBounds } from './run-bounds.ts';
import {
  type Recollection,
  readForget,
  readRecall,
  readRemember,
  refusing,
} from './run-questions.ts';
import { inOrder, matchesOf } from './search.ts';
import { createTurns } from './turns.ts';

/** Bytes of an answer as JSON text; an executor takes no larger one. */
const answerBytesMax = 1_000_000;

/** One thing that a part of a run did to the memory, as JSON. */
export type MemoryChange =
  | { readonly remembered: ReturnType<typeof runMemoryView> }
  | { readonly forgotten: string };

/** The memory of an attempt of this agent; to be made when the attempt first asks for it. */
export type StartRunMemory = ReturnType<typeof createRunMemories>;
export type RunMemory = ReturnType<StartRunMemory>;

/** A memory that is not recorded yet. */
type Remembered = NewMemory & VisibleMemoryRow;

/** The memory of one attempt. */
interface AttemptMemory extends Owning {
  readonly database: Database;
  readonly clock: Clock;
  readonly bounds: RunBounds;
  readonly remembered: Map<string, Remembered>;
  /** What the run remembered and forgot again. */
  readonly dropped: Map<string, Remembered>;
  readonly forgotten: Set<string>;
  /** Resolves in a turn of the event loop that no other attempt gets. */
  turn(): Promise<void>;
  /** Resolves when all earlier questions are answered. */
  answered: Promise<unknown>;
}

export function createRunMemories(database: Database, clock: Clock) {
  // For all runs: what each of them does in a turn adds up.
  const turn = createTurns();
  return (owning: Owning) => {
    const attempt: AttemptMemory = {
      ...owning,
      database,
      clock,
      turn,
      bounds: createRunBounds(),
      remembered: new Map(),
      dropped: new Map(),
      forgotten: new Set(),
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

/**
 * Answers a question; rejects with a sentence for the author of the skill. `onChange` receives what the
 * question changed, so that a repetition of the run that does not ask again can restore it. A question is
 * validated at once, so that a refused one does not wait for the database.
 */
async function ask(
  attempt: AttemptMemory,
  verb: MemoryVerb,
  payload: unknown,
  onChange: (change: MemoryChange) => void = () => {},
): Promise<unknown> {
  switch (verb) {
    case 'remember': {
      const fields = readRemember(payload);
      attempt.bounds.countRemembered(refusing(() => checkBytes(fields)));
      return inTurn(attempt, () => {
        const memory = remember(attempt, fields);
        onChange({ remembered: memory });
        return memory;
      });
    }
    case 'recall': {
      const wanted = readRecall(payload);
      return inTurn(attempt, () => recall(attempt, wanted));
    }
    case 'forget': {
      const id = readForget(payload);
      const isGone = isId(id) && (await inTurn(attempt, () => forget(attempt, id)));
      if (isGone) onChange({ forgotten: id });
      return isGone;
    }
  }
}

function remember(
  { clock, bounds, remembered }: AttemptMemory,
  fields: ReturnType<typeof readRemember>,
  now = clock.now(),
  id?: string,
) {
  const memory = newMemory(fields, now, id);
  bounds.countWords(memory.word_count);
  const row = { ...memory, updated_at: memory.created_at };
  remembered.set(memory.id, row);
  return runMemoryView(row);
}

async function forget(attempt: AttemptMemory, id: string): Promise<boolean> {
  const { database, bounds, remembered, dropped, forgotten } = attempt;
  const own = remembered.get(id);
  if (own !== undefined) {
    bounds.countForgotten(0);
    dropped.set(id, own);
    return remembered.delete(id);
  }
  const owner = await ownerOf(attempt);
  const size = owner && (await sizeOfMemory(database.read, { owner, id }));
  if (!size || forgotten.has(id)) return false;
  bounds.countForgotten(size.word_count);
  forgotten.add(id);
  return true;
}

/** The number of the owner; undefined for an agent that never had a memory. */
async function ownerOf(attempt: AttemptMemory): Promise<number | undefined> {
  return (await findOwner(attempt.database.read, attempt))?.id;
}

async function recall(attempt: AttemptMemory, wanted: Recollection) {
  const { query } = wanted;
  const rows = query === undefined ? newest(attempt, wanted) : found(attempt, wanted, query);
  return fitting(await rows);
}

/** The attempt's own new memories with the tag. */
function own({ remembered }: AttemptMemory, tag: string | undefined): Remembered[] {
  return [...remembered.values()].filter((one) => tag === undefined || one.tag === tag);
}

async function newest(
  attempt: AttemptMemory,
  { tag, limit }: Recollection,
): Promise<VisibleMemoryRow[]> {
  const { read } = attempt.database;
  const owner = await ownerOf(attempt);
  const filter = { tag, without: [...attempt.forgotten] };
  const stored =
    owner === undefined ? [] : await listMemories(read, owner, filter, { limit, offset: 0 });
  return [...own(attempt, tag), ...stored].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
}

async function found(
  attempt: AttemptMemory,
  { tag, limit }: Recollection,
  text: string,
): Promise<VisibleMemoryRow[]> {
  const { forgotten, remembered } = attempt;
  const { read } = attempt.database;
  const query = queryOf(text);
  const owner = await findOwner(read, attempt);
  const stored =
    owner === undefined
      ? { matches: [], others: [], counts: [] }
      : await matchesOf(read, { owner, query, tag }, forgotten);
  const counts = countAmong([...remembered.values()], query).map(({ strong, weak }, i) => ({
    strong: strong + (stored.counts[i]?.strong ?? 0),
    weak: weak + (stored.counts[i]?.weak ?? 0),
  }));
  const weights = weightsOf(counts, (owner?.count ?? 0) + remembered.size);
  const unrecorded = own(attempt, tag).filter((one) => matches(one, query));
  const all: (Ranked & { seq?: number })[] = [...unrecorded, ...stored.matches];
  const best = rank(all, query, weights);
  const ordered = [...best.map(({ id, seq }) => remembered.get(id) ?? seq), ...stored.others];
  const order = ordered.slice(0, limit);
  const seqs = order.filter((one) => typeof one === 'number');
  const rows = owner === undefined ? [] : await inOrder(read, owner.id, seqs);
  const bySeq = new Map(rows.map((row) => [row.seq, row]));
  return order.flatMap((one) => (typeof one === 'number' ? bySeq.get(one) : one) ?? []);
}

/** Does again what an earlier attempt did, under the same ids. */
async function restore(attempt: AttemptMemory, changes: readonly MemoryChange[]): Promise<void> {
  for (const change of changes) {
    if ('forgotten' in change) await ask(attempt, 'forget', change.forgotten);
    else {
      const { id, content, tag, metadata, created_at } = change.remembered;
      const fields = { content, tag, metadata };
      attempt.bounds.countRemembered(checkBytes(fields));
      await inTurn(attempt, () => remember(attempt, fields, Date.parse(created_at), id));
    }
  }
}

/** Takes back what a part of the run did that begins again; it counts against the bounds still. */
function undo(attempt: AttemptMemory, changes: readonly MemoryChange[]): Promise<void> {
  const { remembered, dropped, forgotten } = attempt;
  return inTurn(attempt, () => {
    for (const change of changes.toReversed()) {
      if ('remembered' in change) remembered.delete(change.remembered.id);
      else if (!forgotten.delete(change.forgotten)) {
        const own = dropped.get(change.forgotten);
        if (own !== undefined) remembered.set(own.id, own);
      }
    }
  });
}

/** The changes to record; resolves once every request has been answered. */
async function changes(attempt: AttemptMemory): Promise<MemoryChanges> {
  await attempt.answered;
  return {
    remembered: [...attempt.remembered.values()].map(recorded),
    forgotten: [...attempt.forgotten],
    share: attempt.bounds.share(),
  };
}

function recorded({ updated_at: _, ...memory }: Remembered): NewMemory {
  return memory;
}

/** As a run sees them: as many, from the first on, as fit into an answer. */
function fitting(rows: readonly VisibleMemoryRow[]): ReturnType<typeof runMemoryView>[] {
  const memories: ReturnType<typeof runMemoryView>[] = [];
  let bytes = 2;
  for (const row of rows) {
    const memory = runMemoryView(row);
    bytes += Buffer.byteLength(JSON.stringify(memory)) + 1;
    if (bytes > answerBytesMax) break;
    memories.push(memory);
  }
  return memories;
}
