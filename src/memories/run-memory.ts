/**
 * The memory of one attempt. Its changes are kept here, visible to the attempt at once and to no
 * other, until the transaction that completes the job records it; when the attempt ends
 * otherwise, it is dropped. Questions are answered one after another, in the order in which they
 * were asked, and each in a turn of the event loop of its own: on SQLite an answer blocks it.
 */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { isId } from '../kernel/ids.ts';
import { checkBytes } from './fields.ts';
import { findOwner, listMemories, sizeOfMemory, type VisibleMemoryRow } from './memories.store.ts';
import { runMemoryView } from './memories.ts';
import {
  type MemoryChanges,
  type NewMemory,
  newMemory,
  type Owning,
  readyMemory,
} from './record.ts';
import { hasWords, type Ranked, rank } from './relevance.ts';
import { createRunBounds } from './run-bounds.ts';
import {
  type Recollection,
  readForget,
  readRecall,
  readRemember,
  refusing,
} from './run-questions.ts';
import { inOrder, matchesOf } from './search.ts';
import { createTurns } from './turns.ts';
import { queryWordsOf } from './words.ts';

/** Bytes of an answer as JSON text; an executor takes no larger one. */
const answerBytesMax = 1_000_000;

const questions = ['remember', 'recall', 'forget'] as const;
type Question = (typeof questions)[number];

export function isMemoryQuestion(kind: string): kind is Question {
  return questions.includes(kind as Question);
}

/** One thing that a part of a run did to the memory, as JSON. */
export type MemoryChange =
  | { readonly remembered: ReturnType<typeof runMemoryView> }
  | { readonly forgotten: string };

export interface RunMemory {
  /**
   * Rejects with a sentence for the author of the skill. `onChange` hears of what the question
   * changed, so that a repetition of the run that does not ask again can restore it.
   */
  ask(
    kind: Question,
    payload: unknown,
    onChange?: (change: MemoryChange) => void,
  ): Promise<unknown>;
  /** Does again what an earlier attempt did, under the same ids. */
  restore(changes: readonly MemoryChange[]): Promise<void>;
  /** Takes back what a part of the run did that begins again; it counts against the bounds still. */
  undo(changes: readonly MemoryChange[]): Promise<void>;
  /** The changes to record; resolves once every request has been answered. */
  changes(): Promise<MemoryChanges>;
}

/** The memory of an attempt of this agent; to be made when the attempt first asks for it. */
export type StartRunMemory = (owning: Owning) => RunMemory;

/** A memory that is not recorded yet. */
type Remembered = NewMemory & VisibleMemoryRow;

export function createRunMemories(database: Database, clock: Clock): StartRunMemory {
  // For all runs: what each of them does in a turn adds up.
  const turn = createTurns();

  return ({ organizationId, agentId }) => {
    const remembered = new Map<string, Remembered>();
    /** What the run remembered and forgot again. */
    const dropped = new Map<string, Remembered>();
    const forgotten = new Set<string>();
    const bounds = createRunBounds();
    let answered: Promise<unknown> = Promise.resolve();

    const ownerId = async () => (await findOwner(database.read, organizationId, agentId))?.id;

    /** Runs `act` when all that was asked before is answered. */
    function inTurn<T>(act: () => T | Promise<T>): Promise<T> {
      const result = answered.then(() => turn()).then(act);
      answered = result.catch(() => undefined);
      return result;
    }

    /** A request is validated at once, so that a refused one does not wait for the database. */
    async function answer(
      kind: Question,
      payload: unknown,
      onChange: (change: MemoryChange) => void = () => {},
    ): Promise<unknown> {
      switch (kind) {
        case 'remember': {
          const fields = readRemember(payload);
          bounds.countRemembered(refusing(() => checkBytes(fields)));
          return inTurn(() => {
            const memory = remember(fields);
            onChange({ remembered: memory });
            return memory;
          });
        }
        case 'recall': {
          const wanted = readRecall(payload);
          return inTurn(() => recall(wanted));
        }
        case 'forget': {
          const id = readForget(payload);
          const isGone = isId(id) && (await inTurn(() => forget(id)));
          if (isGone) onChange({ forgotten: id });
          return isGone;
        }
      }
    }

    function remember(
      fields: ReturnType<typeof readRemember>,
      now = clock.now(),
      id: string | undefined = undefined,
    ) {
      const memory = newMemory(fields, now, id);
      bounds.countWords(memory.word_count);
      const row = { ...memory, updated_at: memory.created_at };
      remembered.set(memory.id, row);
      return runMemoryView(row);
    }

    async function forget(id: string): Promise<boolean> {
      const own = remembered.get(id);
      if (own !== undefined) {
        bounds.countForgotten(0);
        dropped.set(id, own);
        return remembered.delete(id);
      }
      const owner = await ownerId();
      const size = owner === undefined ? undefined : await sizeOfMemory(database.read, owner, id);
      if (size === undefined || forgotten.has(id)) return false;
      bounds.countForgotten(size);
      forgotten.add(id);
      return true;
    }

    async function recall(wanted: Recollection) {
      return fitting(
        await (wanted.query === undefined ? newest(wanted) : found(wanted, wanted.query)),
      );
    }

    /** The attempt's own new memories with the tag. */
    function own(tag: string | undefined): Remembered[] {
      return [...remembered.values()].filter((one) => tag === undefined || one.tag === tag);
    }

    async function newest({ tag, limit }: Recollection): Promise<VisibleMemoryRow[]> {
      const owner = await ownerId();
      const page = { limit, offset: 0 };
      const filter = { tag, without: [...forgotten] };
      const stored =
        owner === undefined ? [] : await listMemories(database.read, owner, filter, page);
      return [...own(tag), ...stored].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
    }

    async function found({ tag, limit }: Recollection, query: string): Promise<VisibleMemoryRow[]> {
      const words = queryWordsOf(query);
      const owner = await ownerId();
      const stored =
        owner === undefined
          ? { matches: [], others: [] }
          : await matchesOf(database.read, { owner, words, tag }, forgotten);
      const unrecorded = own(tag).filter((one) => hasWords(one, words));
      const best = rank<Ranked & { seq?: number }>([...unrecorded, ...stored.matches], words);
      const order = [
        ...best.map(({ id, seq }) => remembered.get(id) ?? seq),
        ...stored.others,
      ].slice(0, limit);
      const seqs = order.filter((one) => typeof one === 'number');
      const rows = owner === undefined ? [] : await inOrder(database.read, owner, seqs);
      const bySeq = new Map(rows.map((row) => [row.seq, row]));
      return order.flatMap((one) => (typeof one === 'number' ? bySeq.get(one) : one) ?? []);
    }

    return {
      ask: answer,

      async restore(changes) {
        for (const change of changes) {
          if ('forgotten' in change) await answer('forget', change.forgotten);
          else {
            const { id, content, tag, metadata, created_at } = change.remembered;
            const fields = { content, tag, metadata };
            bounds.countRemembered(checkBytes(fields));
            await inTurn(() => remember(fields, Date.parse(created_at), id));
          }
        }
      },

      undo: (changes) =>
        inTurn(() => {
          for (const change of changes.toReversed()) {
            if ('remembered' in change) remembered.delete(change.remembered.id);
            else if (!forgotten.delete(change.forgotten)) {
              const own = dropped.get(change.forgotten);
              if (own !== undefined) remembered.set(own.id, own);
            }
          }
        }),

      async changes() {
        await answered;
        return {
          remembered: [...remembered.values()].map(readyMemory),
          forgotten: [...forgotten],
          share: bounds.share(),
        };
      },
    };
  };
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
