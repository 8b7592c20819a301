/**
 * Makes vectors in the background of the memories that have none of the current model: new and changed ones, and all of
 * them when the model is another one. One process of a cluster does it at a time, under a lease; what it did counts when
 * it is interrupted. The newest of an agent come first, and agents take turns.
 */
import type { Database, Transaction } from '../database/database.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { bytesOf, codeOf } from './codes.ts';
import { activationTime, createCurrentModel } from './current-model.ts';
import type { Embedder } from './meaning.ts';
import { agentOf, type Owning, usersOf } from './owners.ts';
import type { VectorIndex } from './vector-index.ts';
import {
  countWithout,
  deleteVectors,
  type EmbeddingModel,
  findEarlierModels,
  findModel,
  findOwnerName,
  findOwnerWith,
  hasVectorsElsewhere,
  insertModel,
  insertVectors,
  listWith,
  lockBySeq,
  setDimensions,
  setModel,
  takeLease,
} from './vectors.store.ts';

/** UTF-8 bytes of the texts of one request. */
const bytesMax = 128 * 1024;
/** Agents of one call that are served, and owners that are looked at in a round. */
const requestsMax = 20;
const ownersMax = 1_000;
/** Longer than the requests for one text may take, which are three at most. */
const leaseMs = 100_000;
const countedMax = 10_000;
/** Before the first owner. */
const beginning = -1;
/** How long the dimensions of a model stay what they are, at least. */
const dimensionsMs = 60 * 60_000;
/** How long the texts of an organization wait whose vectors have other dimensions. */
const refusedMs = 10 * 60_000;

interface Base {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
}

interface EmbedMemoriesDeps {
  readonly base: Base;
  readonly embedder: Embedder;
  readonly index: VectorIndex;
  /** Names this process. */
  readonly holder: string;
}

interface EmbedMemoriesState extends Base, Omit<EmbedMemoriesDeps, 'base'> {
  /** By the model of their memories: the owner at which the last round ended; the next one begins behind it. */
  readonly after: Map<number, number>;
  /** Organizations whose vectors had other dimensions: one text tells whether they still have. */
  readonly refused: Set<string>;
  /** The model of this process; null where a later process has another one. */
  readonly currentModel: () => Promise<EmbeddingModel | null>;
}

export function createEmbedMemories({ base, ...deps }: EmbedMemoriesDeps) {
  const state: EmbedMemoriesState = {
    ...base,
    ...deps,
    after: new Map(),
    refused: new Set(),
    currentModel: createCurrentModel({ ...base, embedder: deps.embedder }),
  };
  return bind(state, { embedSome, countAwaiting });
}

/** Makes some of the vectors that are missing; how many memories have one then. */
async function embedSome(state: EmbedMemoriesState): Promise<number> {
  const model = await state.currentModel();
  if (model === null) return 0;
  await state.index.fill(model, () => holdLease(state, model));
  const pass: Pass = { requests: 0, made: 0, isElsewhere: false };
  for (const embedding of await findEarlierModels(state.database.read, model.id)) {
    const isHalf = () => state.after.has(embedding);
    let before: number;
    let wasHalf: boolean;
    do {
      before = pass.made;
      wasHalf = isHalf();
      await embedRound(state, pass, model, embedding);
      // What a round that began in the middle has not seen is before it.
    } while (!isOver(pass) && (pass.made > before || (wasHalf && !isHalf())));
  }
  return pass.made;
}

interface Pass {
  requests: number;
  made: number;
  /** Whether another process makes vectors. */
  isElsewhere: boolean;
}

const isOver = ({ requests, isElsewhere }: Pass) => isElsewhere || requests >= requestsMax;

/** The texts of one request for each agent, from where the last round ended. */
async function embedRound(
  state: EmbedMemoriesState,
  pass: Pass,
  model: EmbeddingModel,
  embedding: number,
): Promise<void> {
  const { read } = state.database;
  const seen = new Set<string>();
  for (let looked = 0; looked < ownersMax && !isOver(pass); looked++) {
    const after = state.after.get(embedding) ?? beginning;
    const next = await findOwnerWith(read, { embedding, after });
    if (next === undefined) {
      state.after.delete(embedding);
      return;
    }
    state.after.set(embedding, next.owner);
    const owning = await agentOfOwner(state, next.owner);
    if (owning === null || state.embedder.isWaiting(owning)) continue;
    // Users of an agent are owners too.
    const key = JSON.stringify([owning.organizationId, owning.agentId]);
    if (seen.has(key)) continue;
    seen.add(key);
    const done = await embedOf(state, model, { embedding, owning });
    pass.isElsewhere = done === null;
    pass.requests += 1;
    pass.made += done ?? 0;
  }
}

/** How many memories await a vector, counted up to 10,000. */
async function countAwaiting({ database: { read }, embedder }: EmbedMemoriesState) {
  const model = await findModel(read, { model: embedder.model });
  const row = await countWithout(read, { model: model?.id ?? -1, most: countedMax });
  return Number(row?.count ?? 0);
}

/** The agent of an owner; null for one that was removed, whose memories are about to be deleted. */
async function agentOfOwner({ database }: EmbedMemoriesState, id: number): Promise<Owning | null> {
  const owner = await findOwnerName(database.read, { id });
  return owner === undefined || owner.removed === 1 ? null : agentOf(owner);
}

/** Takes or renews the lease. */
function holdLease(
  { database, clock, holder }: EmbedMemoriesState,
  { id }: EmbeddingModel,
): Promise<boolean> {
  const now = clock.now();
  return database.write((tx) => takeLease(tx, { id, holder, now, until: now + leaseMs }));
}

/** One request for memories of an agent; null where another process has the lease. */
async function embedOf(
  state: EmbedMemoriesState,
  model: EmbeddingModel,
  { embedding, owning }: { embedding: number; owning: Owning },
): Promise<number | null> {
  if (!(await holdLease(state, model))) return null;
  const { database, embedder, refused } = state;
  const { organizationId } = owning;
  const rows = fitting(
    embedder,
    await listWith(database.read, {
      embedding,
      organization_id: organizationId,
      agent_id: owning.agentId,
      users_agent_id: usersOf(owning.agentId),
      limit: refused.has(organizationId) ? 1 : embedder.bounds.textsMax,
    }),
  );
  if (rows.length === 0) return 0;
  const vectors = await embedder.texts(
    owning,
    rows.map(({ content }) => content),
    () => holdLease(state, model),
  );
  const made = rows.flatMap(({ seq, updated_at }, i) => {
    const vector = vectors[i];
    return vector === undefined ? [] : [{ seq, updated_at, vector }];
  });
  if (made.length === 0) return 0;
  const recorded = await database.write((tx) => record(state, tx, model, { owning, made }));
  if (recorded === 'other dimensions') {
    const reason = 'the provider of this organization answers vectors of other dimensions';
    embedder.postpone(owning, `${reason} than those that are kept of ${model.model}`, refusedMs);
    refused.add(organizationId);
    return 0;
  }
  refused.delete(organizationId);
  // Apart from the vectors, which were paid for: the index may be broken.
  await state.index.add(model.id, recorded.vectors);
  return recorded.count;
}

/** As many as one request takes. */
function fitting<R extends { readonly content: string }>(
  { bounds: { textBytesMax } }: Embedder,
  rows: readonly R[],
): R[] {
  let bytes = 0;
  return rows.filter(({ content }, i) => {
    bytes += Math.min(textBytesMax, Buffer.byteLength(content));
    return i === 0 || bytes <= bytesMax;
  });
}

interface Made {
  readonly seq: number;
  readonly updated_at: number;
  readonly vector: Float32Array | null;
}

interface Recorded {
  /** How many memories have been read by the model. */
  readonly count: number;
  readonly vectors: readonly { readonly seq: number; readonly vector: Float32Array }[];
}

const nothingRecorded: Recorded = { count: 0, vectors: [] };

/** Records vectors of memories that are what they were when they were read. */
async function record(
  { clock }: EmbedMemoriesState,
  tx: Transaction,
  { id, model: name }: EmbeddingModel,
  { owning, made }: { owning: Owning; made: readonly Made[] },
): Promise<Recorded | 'other dimensions'> {
  // An earlier request of the same pass may have set its dimensions, or another process made it another one.
  const model = await findModel(tx, { model: name });
  if (model?.id !== id) return nothingRecorded;
  const lengths = made.flatMap(({ vector }) => (vector === null ? [] : [vector.length]));
  const dimensions = model.dimensions ?? lengths[0] ?? null;
  const other = lengths.find((length) => length !== dimensions);
  if (other !== undefined) {
    // The provider may have another model behind the name: all vectors are made anew, these too. Where organizations
    // have different ones, or the model changes all the time, that would never end.
    const isOld = clock.now() - Number(model.activated_at) >= dimensionsMs;
    if (!isOld || (await hasVectorsElsewhere(tx, id, owning))) return 'other dimensions';
    await insertModel(tx, { model: name, dimensions: other, at: await activationTime(tx, clock) });
    return nothingRecorded;
  }
  if (dimensions !== null && model.dimensions === null) await setDimensions(tx, id, dimensions);
  const bySeq = new Map(made.map((one) => [one.seq, one]));
  const rows = await lockBySeq(tx, [...bySeq.keys()]);
  const same = rows.filter(({ seq, updated_at }) => bySeq.get(seq)?.updated_at === updated_at);
  await deleteVectors(tx, same);
  const vectors = same.flatMap(({ seq, owner, together }) => {
    const vector = bySeq.get(seq)?.vector ?? null;
    return vector === null ? [] : [{ seq, owner, together, vector }];
  });
  await insertVectors(
    tx,
    model.id,
    vectors.map(({ vector, ...row }) => ({
      ...row,
      vector: bytesOf(vector),
      code: codeOf(vector),
    })),
  );
  await setModel(
    tx,
    model.id,
    same.map(({ seq }) => seq),
  );
  return { count: same.length, vectors };
}
