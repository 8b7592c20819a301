/**
 * The memory of a scripted run, in the test's own process: read, bounded and searched by the rules of the platform
 * (src/core/memories/run-memory.ts). A run changes a copy, which is kept when it completes.
 */

import { checkBytes, defaultTag, type MemoryFields } from '../../core/memories/fields.ts';
import { MemoryBounds } from '../../core/memories/memory-bounds.ts';
import type { MemoryVerb } from '../../core/memories/memory-verbs.ts';
import type { MemoryChange } from '../../core/memories/run-memory.ts';
import {
  type Recollection,
  readForget,
  readRecall,
  readRemember,
  refusing,
  type Whose,
} from '../../core/memories/run-questions.ts';
import { wordsOf } from '../../core/memories/words.ts';
import type { Memory } from '../../core/skills/definition.ts';
import { timestamp } from '../../kernel/clock.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { RunSkillOptions } from './types.ts';
import type { World } from './world.ts';

type NewMemory = MemoryFields & { content: string; whose?: Whose };

/** A memory, and how many words it has. */
interface Entry {
  readonly memory: MemoryView;
  readonly id: string;
  readonly word_count: number;
}

/** As runs see it; the fields may not be changed. */
type MemoryView = Memory & { readonly metadata: Record<string, unknown> };

/** What an agent remembers, the oldest first. */
export type Memories = readonly Entry[];

/** The memory of one pass of a run. */
export class ScriptedMemory {
  entries: Entry[];
  readonly bounds = new MemoryBounds();
  /** The user for whom it runs. */
  readonly userId: string | null;
  /** Entries that were there when the run began. */
  readonly known: ReadonlySet<Entry>;
  readonly now: () => number;
  readonly newId: () => string;

  constructor({ memories, newMemoryId, script }: World, now: () => number) {
    this.entries = [...memories];
    this.userId = script.options.userId ?? null;
    this.known = new Set(memories);
    this.now = now;
    this.newId = newMemoryId;
  }
}

/** Ids that are the same each time, in the order in which they are made. */
export function memoryIds(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `00000000-0000-7000-8000-${count.toString(16).padStart(12, '0')}`;
  };
}

/** The memories that a test gives. */
export function givenMemories(
  { memory: given = [], userId }: Pick<RunSkillOptions, 'memory' | 'userId'>,
  now: number,
  newId: () => string,
): Memories {
  return given.map((memory) => {
    const { whose, ...fields } = readRemember({ ...memory }, now);
    return entryOf(fields, { userId: userOf(userId ?? null, whose), now, id: newId() });
  });
}

/** The newest first. */
export function viewOf(memories: Memories): Memory[] {
  return memories.map(({ memory }) => memory).reverse();
}

/** Answers a question of the run; `note` gets what it changed. */
export async function askMemory(
  state: ScriptedMemory,
  verb: MemoryVerb,
  payload: unknown,
  note: (change: MemoryChange) => void,
): Promise<unknown> {
  if (verb === 'recall') return recall(state, readRecall(payload));
  if (verb === 'forget') {
    const id = readForget(payload);
    const isGone = forget(state, id);
    if (isGone) note({ forgotten: id });
    return isGone;
  }
  const { whose, ...fields } = readRemember(payload, state.now());
  const userId = userOf(state.userId, whose);
  const before = await similarTo(state, fields, userId);
  if (before !== undefined) forget(state, before.id);
  const id = before?.id ?? state.newId();
  const made = remember(state, fields, { userId, now: state.now(), id });
  const isUpdate = before !== undefined && { updated: true };
  note({ remembered: { ...made, step: null, ...isUpdate } });
  return before === undefined ? made : { ...made, ...isUpdate, old_content: before.memory.content };
}

/** Does again what a recorded step did. */
export async function restoreMemory(
  state: ScriptedMemory,
  changes: readonly MemoryChange[],
): Promise<void> {
  for (const change of changes) {
    if ('forgotten' in change) forget(state, change.forgotten);
    else {
      const { id, created_at, content, tag, metadata, user_id, expires_at } = change.remembered;
      const ends = expires_at === null ? null : Date.parse(expires_at);
      const fields = { content, tag, metadata, expires_at: ends };
      if (change.remembered.updated === true) forget(state, id);
      remember(state, fields, { userId: user_id, now: Date.parse(created_at), id });
    }
  }
}

/** The memory that a new one replaces, by the rules of the platform. */
async function similarTo(
  { entries }: ScriptedMemory,
  { content, tag = defaultTag, metadata = {} }: NewMemory,
  userId: string | null,
): Promise<Entry | undefined> {
  const json = canonicalJson(metadata);
  const others = entries.filter(
    ({ memory }) =>
      memory.user_id === userId && memory.tag === tag && canonicalJson(memory.metadata) === json,
  );
  if (others.length === 0) return undefined;
  const { likenessOf } = await import('../../core/memories/near-duplicates.ts');
  const found = (likeness: 'same' | 'changed') =>
    others.find(({ memory }) => likenessOf(memory.content, content) === likeness);
  return found('same') ?? found('changed');
}

/** Whose memory it is. */
interface Making {
  readonly userId: string | null;
  readonly now: number;
  readonly id: string;
}

function userOf(userId: string | null, whose: Whose | undefined): string | null {
  if (whose !== 'user') return whose === 'agent' ? null : userId;
  if (userId === null) throw permanentError('this run is for no user, so whose must be agent');
  return userId;
}

function remember(state: ScriptedMemory, fields: NewMemory, making: Making): MemoryView {
  state.bounds.countRemembered(refusing(() => checkBytes(fields)));
  const entry = entryOf(fields, making);
  state.bounds.countWords(entry.word_count);
  state.entries.push(entry);
  return entry.memory;
}

function forget(state: ScriptedMemory, id: string): boolean {
  const entry = state.entries.find((one) => one.id === id);
  if (entry === undefined) return false;
  state.bounds.countForgotten(state.known.has(entry) ? entry.word_count : 0);
  state.entries = state.entries.filter((one) => one !== entry);
  return true;
}

async function recall(
  { entries: all, now, userId }: ScriptedMemory,
  { query, tag, limit, whose }: Recollection,
): Promise<Memory[]> {
  const only = whose === undefined ? undefined : userOf(userId, whose);
  const isCurrent = (at: string | null) => at === null || Date.parse(at) > now();
  const entries = all.filter(
    ({ memory }) => isCurrent(memory.expires_at) && (only === undefined || memory.user_id === only),
  );
  const isTagged = ({ memory }: Entry) => tag === undefined || memory.tag === tag;
  const found = query === undefined ? entries.toReversed() : await search(entries, query);
  return found
    .filter(isTagged)
    .slice(0, limit)
    .map(({ memory }) => memory);
}

/** Loads what a search needs only for a run that searches: the stemmers are large. */
async function search(entries: readonly Entry[], query: string): Promise<Entry[]> {
  const [{ queryOf }, { findAmong }, { columnsOfWords }, { readWords }] = await Promise.all([
    import('../../core/memories/query.ts'),
    import('../../core/memories/relevance.ts'),
    import('../../core/memories/terms.ts'),
    import('../../core/memories/words.ts'),
  ]);
  const ranked = entries.map((entry) => ({
    ...entry,
    ...columnsOfWords(readWords(entry.memory.content), entry.memory.tag ?? ''),
    entry,
  }));
  return findAmong(ranked, queryOf(query)).map(({ entry }) => entry);
}

function entryOf(fields: NewMemory, { userId, now, id }: Making): Entry {
  const { content, tag = defaultTag, metadata = {}, expires_at: ends = null } = fields;
  const at = timestamp(now);
  const memory = {
    ...{ id, content, tag, metadata: { ...metadata }, user_id: userId },
    ...{ created_at: at, updated_at: at, expires_at: ends === null ? null : timestamp(ends) },
  };
  return { memory, id, word_count: wordsOf(content).length };
}
