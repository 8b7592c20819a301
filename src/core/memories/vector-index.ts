/**
 * The vector index of PostgreSQL with the extension pgvector, for agents with so many memories that comparing all codes
 * is slow. It gives candidates, approximately the nearest; they are then compared exactly like those of the codes.
 */
import type { Database } from '../../adapters/database/database.ts';
import { bind } from '../../kernel/bind.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isUnavailable } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { vectorOf } from './codes.ts';
import type { EmbeddingModel } from './embedding-models.store.ts';
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
import type { SeenOwners } from './vectors.store.ts';

/** Up to so many memories of the owners, all codes are compared instead. Tests set another number. */
const codesMax = 50_000;
/** Milliseconds between two checks of the extension and the index. */
const checkIntervalMs = 60_000;
/** Vectors added in one transaction, and transactions in one call. */
const addedMax = 100;
const additionsMax = 10;
/** Before the number of the first vector. */
const beginning = -1;

interface VectorIndexState {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly exactMax: number;
  /** Models whose index is complete, as far as this process knows. */
  readonly complete: Set<number>;
  /** By model: the number of a vector up to which all are indexed; a check begins after it. */
  readonly filledTo: Map<number, number>;
  /**
   * By model with a complete index: the number of the newest vector at the last check, and the monotonic time of it.
   * `filledTo` advances to it one check later, because other transactions may still commit lower numbers.
   */
  readonly checkedAt: Map<number, { readonly n: number; readonly at: number }>;
  /** The monotonic times of the next check for a search function and of the next fill, in milliseconds. */
  searchAt: number;
  fillAt: number;
  hasFailed: boolean;
}

export type VectorIndex = ReturnType<typeof createVectorIndex>;

type Deps = Pick<VectorIndexState, 'database' | 'clock' | 'log'> & { readonly exactMax?: number };

export function createVectorIndex(deps: Deps) {
  const times = { searchAt: 0, fillAt: 0 };
  const known = { complete: new Set<number>(), filledTo: new Map(), checkedAt: new Map() };
  const own = { ...times, ...known, hasFailed: false };
  const state: VectorIndexState = { exactMax: codesMax, ...deps, ...own };
  return bind(state, { fill, add, nearest });
}

/**
 * Creates the index of a model and adds some of the missing vectors, if `hold` grants this process the lease. Checks
 * complete indexes as well: the extension may have been dropped, or a process may have died before it added vectors.
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
  state.fillAt = now + checkIntervalMs;
  try {
    await fillSome(state, { id, dimensions }, hold);
    state.hasFailed = false;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    logFailure(state, error);
    // Searches use the codes until the index is complete again.
    await database.write((tx) => dropSearch(tx, id));
  }
}

async function fillSome(
  state: VectorIndexState,
  { id, dimensions }: { id: number; dimensions: number },
  hold: () => Promise<boolean>,
): Promise<void> {
  const { database, filledTo, checkedAt } = state;
  const { read } = database;
  if (!(await canIndex(read, dimensions)) || !(await hold())) return;
  const isMade = await hasIndex(read, id);
  const isWhole = isMade && (await isIndexed(read, id));
  // Another process may have rebuilt the index since this one filled it.
  if (!isMade || (!isWhole && checkedAt.has(id))) {
    filledTo.delete(id);
    checkedAt.delete(id);
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
    recordCheck(state, id, recordedTo);
    return;
  }
  // More is left: let the next call continue at once.
  state.fillAt = 0;
}

/** Records that a check has indexed all vectors up to `n`. */
function recordCheck(
  { clock, filledTo, checkedAt }: VectorIndexState,
  id: number,
  n: number,
): void {
  const at = clock.monotonic();
  const before = checkedAt.get(id);
  // Too soon after the last check: transactions of that time may still be open.
  if (before !== undefined && at - before.at < checkIntervalMs) return;
  if (before !== undefined) filledTo.set(id, Math.max(before.n, filledTo.get(id) ?? beginning));
  checkedAt.set(id, { n, at });
}

async function index(
  { database }: VectorIndexState,
  rows: Awaited<ReturnType<typeof listUnindexed>>,
): Promise<void> {
  if (rows.length === 0) return;
  const vectors = rows.map(({ seq, vector }) => ({ seq, vector: vectorOf(vector) }));
  await database.write((tx) => indexVectors(tx, vectors));
}

/** Adds recorded vectors of a model, if it has an index. Never throws: `fill` adds what failed here. */
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
    logFailure(state, error);
    state.fillAt = 0;
  }
}

function logFailure(state: VectorIndexState, error: unknown): void {
  if (!state.hasFailed) {
    state.log.warn({ err: error }, 'vectors cannot be indexed: searches go without');
  }
  state.hasFailed = true;
}

/** The nearest memories of owners with many memories; null if the search has to use the codes. */
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
    state.searchAt = now + checkIntervalMs;
    if (!(await isIndexed(read, wanted.model))) return null;
    state.complete.add(wanted.model);
  }
  try {
    const found = await nearestIndexed(read, seen, wanted);
    // The index may give too few when most of its entries belong to other owners.
    return found.length === wanted.most ? found : null;
  } catch {
    // For example, the extension was removed.
    state.complete.delete(wanted.model);
    return null;
  }
}
