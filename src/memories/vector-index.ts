/**
 * An index of vectors where PostgreSQL has the extension pgvector, for agents with so many memories that to look at the
 * codes of all takes long. What it finds are some of the nearest; the exact comparison is the same.
 */
import type { Database } from '../database/database.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { isUnavailable } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import { vectorOf } from './codes.ts';
import {
  canIndex,
  createIndex,
  createSearch,
  dropSearch,
  findLastNumber,
  hasIndex,
  indexVectors,
  isIndexed,
  listUnindexed,
  nearestIndexed,
} from './pgvector.store.ts';
import type { EmbeddingModel, SeenOwners } from './vectors.store.ts';

/** Memories of owners up to which all codes are looked at, unless a test says otherwise. */
const codesMax = 50_000;
/** Between two looks whether the extension or the index is there. */
const lookMs = 60_000;
/** Vectors added in one transaction, and transactions of one call. */
const addedMax = 100;
const additionsMax = 10;
/** Before the number of the first vector. */
const beginning = -1;

interface VectorIndexState {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly exactMax: number;
  /** Models whose index has all vectors, as far as this process knows. */
  readonly complete: Set<number>;
  /** By model: the number of the last vector up to which the index lacks none; a look begins behind it. */
  readonly filledTo: Map<number, number>;
  /**
   * By model, once the index had all vectors: the number of the last vector at a look, and when that was, on the monotonic
   * clock. `filledTo` follows it one look later, because others may commit lower numbers after the look.
   */
  readonly lookedAt: Map<number, { readonly n: number; readonly at: number }>;
  /** When to look again for the search of an index, and for what an index lacks; on the monotonic clock. */
  searchAt: number;
  fillAt: number;
  hasFailed: boolean;
}

export type VectorIndex = ReturnType<typeof createVectorIndex>;

type Deps = Pick<VectorIndexState, 'database' | 'clock' | 'log'> & { readonly exactMax?: number };

export function createVectorIndex(deps: Deps) {
  const times = { searchAt: 0, fillAt: 0 };
  const known = { complete: new Set<number>(), filledTo: new Map(), lookedAt: new Map() };
  const own = { ...times, ...known, hasFailed: false };
  const state: VectorIndexState = { exactMax: codesMax, ...deps, ...own };
  return bind(state, { fill, add, nearest });
}

/**
 * Makes the index of a model and adds some of the vectors that it lacks; `hold` says whether this process may. Also of
 * an index that was complete: the extension may have been dropped, and a process may have ended before its vectors were in.
 */
async function fill(
  state: VectorIndexState,
  { id, dimensions }: EmbeddingModel,
  hold: () => Promise<boolean>,
): Promise<void> {
  const { database, clock } = state;
  if (database.read.dialect !== 'postgres' || dimensions === null) return;
  const now = clock.monotonic();
  if (now < state.fillAt) return;
  state.fillAt = now + lookMs;
  try {
    await fillSome(state, { id, dimensions }, hold);
    state.hasFailed = false;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    noteFailure(state, error);
    // The codes tell until the index has all vectors again.
    await database.write((tx) => dropSearch(tx, id));
  }
}

async function fillSome(
  state: VectorIndexState,
  { id, dimensions }: { id: number; dimensions: number },
  hold: () => Promise<boolean>,
): Promise<void> {
  const { database, filledTo, lookedAt } = state;
  const { read } = database;
  if (!(await canIndex(read, dimensions)) || !(await hold())) return;
  const isMade = await hasIndex(read, id);
  const isWhole = isMade && (await isIndexed(read, id));
  // Another process may have made it anew since this one had filled it.
  if (!isMade || (!isWhole && lookedAt.has(id))) {
    filledTo.delete(id);
    lookedAt.delete(id);
  }
  if (!isMade) {
    await database.write((tx) => createIndex(tx, id, dimensions));
  }
  const recordedTo = await findLastNumber(read, beginning);
  for (let step = 0; step < additionsMax; step++) {
    const after = filledTo.get(id) ?? beginning;
    const rows = await listUnindexed(read, { model: id, after, max: addedMax });
    await index(state, rows);
    const last = rows.at(-1);
    if (last !== undefined) filledTo.set(id, Number(last.n));
    if (rows.length === addedMax) continue;
    if (!isWhole) await database.write((tx) => createSearch(tx, id, dimensions));
    noteLook(state, id, recordedTo);
    return;
  }
  // The next call goes on.
  state.fillAt = 0;
}

/** A look has found all that the index lacked, of the vectors up to a number. */
function noteLook({ clock, filledTo, lookedAt }: VectorIndexState, id: number, n: number): void {
  const at = clock.monotonic();
  const before = lookedAt.get(id);
  // A look that follows at once leaves no time to commit.
  if (before !== undefined && at - before.at < lookMs) return;
  if (before !== undefined) filledTo.set(id, Math.max(before.n, filledTo.get(id) ?? beginning));
  lookedAt.set(id, { n, at });
}

async function index(
  { database }: VectorIndexState,
  rows: Awaited<ReturnType<typeof listUnindexed>>,
): Promise<void> {
  if (rows.length === 0) return;
  const vectors = rows.map(({ seq, vector }) => ({ seq, vector: vectorOf(vector) }));
  await database.write((tx) => indexVectors(tx, vectors));
}

/** Adds vectors of a model that are recorded, where it has an index; never throws, because `fill` makes up for it. */
async function add(
  state: VectorIndexState,
  model: number,
  rows: Parameters<typeof indexVectors>[1],
): Promise<void> {
  const { database } = state;
  try {
    if (rows.length === 0 || !(await hasIndex(database.read, model))) return;
    await database.write((tx) => indexVectors(tx, rows));
  } catch (error) {
    noteFailure(state, error);
    state.fillAt = 0;
  }
}

function noteFailure(state: VectorIndexState, error: unknown): void {
  if (!state.hasFailed) {
    state.log.warn({ err: error }, 'vectors cannot be indexed: searches go without');
  }
  state.hasFailed = true;
}

/** The nearest of owners with many memories; null where the codes have to tell. */
async function nearest(
  state: VectorIndexState,
  seen: SeenOwners,
  wanted: { model: number; vector: Float32Array; most: number; count: number },
): Promise<readonly number[] | null> {
  const { read } = state.database;
  if (read.dialect !== 'postgres' || wanted.count <= state.exactMax) return null;
  if (!state.complete.has(wanted.model)) {
    const now = state.clock.monotonic();
    if (now < state.searchAt) return null;
    state.searchAt = now + lookMs;
    if (!(await isIndexed(read, wanted.model))) return null;
    state.complete.add(wanted.model);
  }
  try {
    const found = await nearestIndexed(read, seen, wanted);
    // Fewer are found where most of the index is of other owners.
    return found.length === wanted.most ? found : null;
  } catch {
    // Such as after the extension was removed.
    state.complete.delete(wanted.model);
    return null;
  }
}
