/**
 * The memory of one attempt. What it remembers and forgets is kept here, seen by itself at once and
 * by nobody else, until the transaction that completes the job records it; when the attempt ends
 * otherwise, it is dropped. Bounded in changes and in bytes.
 */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { isId } from '../kernel/ids.ts';
import { findMemory, findOwner, listMemories, type ShownRow } from './memories.store.ts';
import { shownToRun } from './memories.ts';
import { type MemoryChanges, type NewMemory, newMemory, type Owning } from './record.ts';
import { hasWords, joinWords, type Ranked, rank } from './relevance.ts';
import {
  type Recollection,
  readForget,
  readRecall,
  readRemember,
  refusal,
  refusing,
} from './run-questions.ts';
import { inOrder, matchesOf } from './search.ts';
import { queryWordsOf } from './words.ts';

/** What one attempt may remember and forget, counted together. */
const changesMax = 1_000;
/** UTF-8 bytes of all that one attempt remembers. */
const bytesMax = 4 * 1024 * 1024;
/** Bytes of an answer as JSON text; an executor takes no larger one. */
const answerBytesMax = 1_000_000;

const questions = ['remember', 'recall', 'forget'] as const;
type Question = (typeof questions)[number];

export function isMemoryQuestion(kind: string): kind is Question {
  return questions.includes(kind as Question);
}

export interface RunMemory {
  /** Rejects with a sentence for the author of the skill. */
  ask(kind: Question, payload: unknown): Promise<unknown>;
  /** What is to be recorded, once everything that was asked is answered. */
  changes(): Promise<MemoryChanges>;
}

/** The memory of an attempt of this agent; to be made when the attempt first asks for it. */
export type StartRunMemory = (owning: Owning) => RunMemory;

/** A memory that is not recorded yet, with what ranks it. */
interface Remembered extends Ranked {
  readonly memory: NewMemory;
  readonly row: ShownRow;
}

export function createRunMemories(database: Database, clock: Clock): StartRunMemory {
  return ({ organizationId, agentId }) => {
    const remembered = new Map<string, Remembered>();
    const forgotten = new Set<string>();
    const underWay = new Set<Promise<unknown>>();
    let changes = 0;
    let bytes = 0;

    const ownerId = async () => (await findOwner(database.read, organizationId, agentId))?.id;

    function countChange(): void {
      if (changes >= changesMax) {
        throw refusal(`a run may remember and forget ${changesMax} times`);
      }
      changes += 1;
    }

    /** Takes effect before it returns, so that a run which does not wait for it has it all the same. */
    function remember(payload: unknown) {
      const fields = readRemember(payload);
      const memory = refusing(() => newMemory(fields, clock.now()));
      const size = Buffer.byteLength(memory.content) + Buffer.byteLength(memory.metadata);
      if (bytes + size > bytesMax) throw refusal('a run may remember 4 MiB');
      countChange();
      bytes += size;
      const row = { ...memory, updated_at: memory.created_at };
      remembered.set(memory.id, { ...rankedOf(memory), memory, row });
      return shownToRun(row);
    }

    async function forget(payload: unknown): Promise<boolean> {
      const id = readForget(payload);
      if (!isId(id)) return false;
      if (remembered.has(id)) {
        countChange();
        return remembered.delete(id);
      }
      const owner = await ownerId();
      const row = owner === undefined ? undefined : await findMemory(database.read, owner, id);
      if (row === undefined || forgotten.has(id)) return false;
      countChange();
      forgotten.add(id);
      return true;
    }

    async function recall(payload: unknown) {
      const wanted = readRecall(payload);
      const rows = await (wanted.query === undefined
        ? newest(wanted)
        : found(wanted, wanted.query));
      return fitting(rows.map(shownToRun));
    }

    /** Of what the attempt remembers itself, what has the tag. */
    function own(tag: string | undefined): Remembered[] {
      return [...remembered.values()].filter(({ row }) => tag === undefined || row.tag === tag);
    }

    async function newest({ tag, limit }: Recollection): Promise<ShownRow[]> {
      const owner = await ownerId();
      const page = { limit, offset: 0 };
      const filter = { tag, without: [...forgotten] };
      const stored =
        owner === undefined ? [] : await listMemories(database.read, owner, filter, page);
      return [...own(tag).map(({ row }) => row), ...stored]
        .sort((a, b) => (a.id < b.id ? 1 : -1))
        .slice(0, limit);
    }

    async function found({ tag, limit }: Recollection, query: string): Promise<ShownRow[]> {
      const words = queryWordsOf(query);
      const owner = await ownerId();
      const stored =
        owner === undefined ? [] : await matchesOf(database.read, { owner, words, tag }, forgotten);
      const unrecorded = own(tag).filter((one) => hasWords(one, words));
      const best = rank<Ranked & { seq?: number; row?: ShownRow }>(
        [...unrecorded, ...stored],
        words,
      ).slice(0, limit);
      const seqs = best.flatMap(({ seq }) => seq ?? []);
      const rows = owner === undefined ? [] : await inOrder(database.read, owner, seqs);
      const byId = new Map(rows.map((row) => [row.id, row]));
      return best.flatMap(({ id, row }) => row ?? byId.get(id) ?? []);
    }

    async function answer(kind: Question, payload: unknown): Promise<unknown> {
      switch (kind) {
        case 'remember':
          return remember(payload);
        case 'recall':
          return await recall(payload);
        case 'forget':
          return await forget(payload);
      }
    }

    return {
      ask(kind, payload) {
        const answered = answer(kind, payload);
        underWay.add(answered);
        const done = () => void underWay.delete(answered);
        answered.then(done, done);
        return answered;
      },
      async changes() {
        await Promise.allSettled(underWay);
        return {
          remembered: [...remembered.values()].map(({ memory }) => memory),
          forgotten: [...forgotten],
        };
      },
    };
  };
}

function rankedOf({ id, words }: NewMemory): Ranked {
  return { id, words: joinWords(words), word_count: words.length };
}

/** As many, from the first on, as fit into an answer. */
function fitting<T>(memories: readonly T[]): T[] {
  let bytes = 2;
  const fits = (memory: T) => {
    bytes += Buffer.byteLength(JSON.stringify(memory)) + 1;
    return bytes <= answerBytesMax;
  };
  const end = memories.findIndex((memory) => !fits(memory));
  return end === -1 ? [...memories] : memories.slice(0, end);
}
