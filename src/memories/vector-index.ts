/**
 * An index of vectors where PostgreSQL has the extension pgvector, for agents with so many memories that to look at the
 * codes of all takes long. What it finds are some of the nearest; the exact comparison is the same.
 */
import type { Database, Transaction } from '../database/database.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { isUnavailable } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import { vectorOf } from './codes.ts';
import {
  canIndex,
  createIndex,
  createSearch,
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

interface VectorIndexState {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly exactMax: number;
  /** Models whose index has all vectors, as far as this process knows. */
  readonly complete: Set<number>;
  /** When to look again for the search of an index, and for what an index lacks; on the monotonic clock. */
  searchAt: number;
  fillAt: number;
  hasFailed: boolean;
}

export type VectorIndex = ReturnType<typeof createVectorIndex>;

type Deps = Pick<VectorIndexState, 'database' | 'clock' | 'log'> & { readonly exactMax?: number };

export function createVectorIndex(deps: Deps) {
  const times = { searchAt: 0, fillAt: 0 };
  const own = { ...times, complete: new Set<number>(), hasFailed: false };
  const state: VectorIndexState = { exactMax: codesMax, ...deps, ...own };
  return bind(state, { fill, add, nearest });
}

/** Makes the index of a model and adds some of the vectors that it lacks; `hold` says whether this process may. */
async function fill(
  state: VectorIndexState,
  { id, dimensions }: EmbeddingModel,
  hold: () => Promise<boolean>,
): Promise<void> {
  const { database, clock, log } = state;
  if (database.read.dialect !== 'postgres' || dimensions === null) return;
  const now = clock.monotonic();
  if (state.complete.has(id) || now < state.fillAt) return;
  state.fillAt = now + lookMs;
  try {
    await fillSome(state, { id, dimensions }, hold);
    state.hasFailed = false;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    if (!state.hasFailed)
      log.warn({ err: error }, 'vectors cannot be indexed: searches go without');
    state.hasFailed = true;
  }
}

async function fillSome(
  state: VectorIndexState,
  { id, dimensions }: { id: number; dimensions: number },
  hold: () => Promise<boolean>,
): Promise<void> {
  const { database } = state;
  const { read } = database;
  if (await isIndexed(read, id)) return void state.complete.add(id);
  if (!(await canIndex(read, dimensions)) || !(await hold())) return;
  if (!(await hasIndex(read, id))) await database.write((tx) => createIndex(tx, id, dimensions));
  for (let step = 0; step < additionsMax; step++) {
    const rows = await listUnindexed(read, id, addedMax);
    const vectors = rows.map(({ seq, vector }) => ({ seq, vector: vectorOf(vector) }));
    await database.write((tx) => indexVectors(tx, vectors));
    if (rows.length === addedMax) continue;
    await database.write((tx) => createSearch(tx, id, dimensions));
    state.complete.add(id);
    return;
  }
  // The next call goes on.
  state.fillAt = 0;
}

/** Adds new vectors of a model, where it has an index. */
async function add(
  _state: VectorIndexState,
  tx: Transaction,
  model: number,
  rows: Parameters<typeof indexVectors>[1],
): Promise<void> {
  if (rows.length > 0 && (await hasIndex(tx, model))) await indexVectors(tx, rows);
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
