/**
 * The background job that makes vectors of memories without one of the current model: new and changed memories, and all
 * memories after a change of the model. One process of a cluster at a time does it, under a lease. Each request is
 * recorded at once, so an interruption loses little. The newest memories come first, and agents take turns.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Context } from '../context/context.ts';
import type { Embedder } from '../embeddings/embedder.ts';
import type { Owning } from '../embeddings/request.ts';
import { bytesOf, codeOf } from './codes.ts';
import { activationTime, CurrentModel } from './current-model.ts';
import {
  type EmbeddingModel,
  findEarlierModels,
  findModel,
  insertModel,
  setDimensions,
  takeLease,
} from './embedding-models.store.ts';
import { agentOf, usersOf } from './owners.ts';
import type { VectorIndex } from './vector-index.ts';
import {
  countWithout,
  deleteVectors,
  findOwnerName,
  findOwnerWith,
  hasVectorsElsewhere,
  insertVectors,
  listWith,
  lockBySeq,
  setModel,
} from './vectors.store.ts';

/** UTF-8 bytes of the texts of one request. */
const bytesMax = 128 * 1024;
/** Requests to the provider in one call, and owners examined in one round. */
const requestsMax = 20;
const ownersMax = 1_000;
/** Longer than the three requests that one text may take. */
const leaseMs = 100_000;
const countedMax = 10_000;
/** Before the first owner. */
const beginning = -1;
/** A model's dimensions may change only after this time. */
const dimensionsMs = 60 * 60_000;
/** How long an organization waits after its provider gave vectors of other dimensions. */
const refusedMs = 10 * 60_000;

export class MemoryVectors {
  readonly database: Database;
  readonly clock: Clock;
  readonly embedder: Embedder;
  readonly index: VectorIndex;
  /** The id of this process, as holder of the lease. */
  readonly #holder: string;
  /** By the present model of the memories: the last owner of the previous round; the next round begins after it. */
  readonly #after = new Map<number, number>();
  /** Organizations whose vectors had other dimensions. The next request has one text, to check whether it still holds. */
  readonly #refused = new Set<string>();
  readonly #currentModel: CurrentModel;

  constructor(
    context: Context,
    { embedder, index }: { readonly embedder: Embedder; readonly index: VectorIndex },
    holder: string,
  ) {
    this.database = context.database;
    this.clock = context.clock;
    this.embedder = embedder;
    this.index = index;
    this.#holder = holder;
    this.#currentModel = new CurrentModel(context, embedder);
  }

  /** Makes some of the missing vectors; returns how many memories it has handled. */
  async embedSome(): Promise<number> {
    const model = await this.#currentModel.find();
    if (model === null) return 0;
    await this.index.fill(model, () => this.#holdLease(model));
    const pass: Pass = { requests: 0, made: 0, isElsewhere: false };
    for (const embedding of await findEarlierModels(this.database.read, model.id)) {
      const isPartial = () => this.#after.has(embedding);
      let before: number;
      let wasPartial: boolean;
      do {
        before = pass.made;
        wasPartial = isPartial();
        await this.#embedRound(pass, model, embedding);
        // A round that began in the middle has skipped the owners before its start, so another round follows.
      } while (!isOver(pass) && (pass.made > before || (wasPartial && !isPartial())));
    }
    return pass.made;
  }

  /** One round: a request for each agent, beginning after the owner at which the last round ended. */
  async #embedRound(pass: Pass, model: EmbeddingModel, embedding: number): Promise<void> {
    const { read } = this.database;
    const seen = new Set<string>();
    for (let looked = 0; looked < ownersMax && !isOver(pass); looked++) {
      const after = this.#after.get(embedding) ?? beginning;
      const next = await findOwnerWith(read, { embedding, after });
      if (next === undefined) {
        this.#after.delete(embedding);
        return;
      }
      this.#after.set(embedding, next.owner);
      const owning = await this.#agentOfOwner(next.owner);
      if (owning === null || this.embedder.isWaiting(owning)) continue;
      // An agent has several owners, because each of its users is one.
      const key = JSON.stringify([owning.organizationId, owning.agentId]);
      if (seen.has(key)) continue;
      seen.add(key);
      const done = await this.#embedOf(model, { embedding, owning });
      pass.isElsewhere = done === null;
      pass.requests += 1;
      pass.made += done ?? 0;
    }
  }

  /** How many memories await a vector, counted up to 10,000. */
  async countAwaiting() {
    const { embedder } = this;
    const { read } = this.database;
    const model = await findModel(read, { model: embedder.model });
    const row = await countWithout(read, { model: model?.id ?? -1, most: countedMax });
    return Number(row?.count ?? 0);
  }

  /** The agent of an owner; null for a removed owner, whose memories are about to be deleted. */
  async #agentOfOwner(id: number): Promise<Owning | null> {
    const { database } = this;
    const owner = await findOwnerName(database.read, { id });
    return owner === undefined || owner.removed === 1 ? null : agentOf(owner);
  }

  /** Takes or renews the lease. */
  #holdLease({ id }: EmbeddingModel): Promise<boolean> {
    const { database, clock } = this;
    const holder = this.#holder;
    const now = clock.now();
    return database.write((tx) => takeLease(tx, { id, holder, now, until: now + leaseMs }));
  }

  /** One request for memories of an agent; null where another process has the lease. */
  async #embedOf(
    model: EmbeddingModel,
    { embedding, owning }: { embedding: number; owning: Owning },
  ): Promise<number | null> {
    if (!(await this.#holdLease(model))) return null;
    const { database, embedder } = this;
    const refused = this.#refused;
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
      () => this.#holdLease(model),
    );
    const made = rows.flatMap(({ seq, updated_at }, i) => {
      const vector = vectors[i];
      return vector === undefined ? [] : [{ seq, updated_at, vector }];
    });
    if (made.length === 0) return 0;
    const recorded = await database.write((tx) => this.#record(tx, model, { owning, made }));
    if (recorded === 'other dimensions') {
      const reason = 'the provider of this organization answers vectors of other dimensions';
      embedder.postpone(owning, `${reason} than those that are kept of ${model.model}`, refusedMs);
      refused.add(organizationId);
      return 0;
    }
    refused.delete(organizationId);
    // In a transaction of its own: a broken index must not lose vectors that were paid for.
    await this.index.add(model.id, recorded.vectors);
    return recorded.count;
  }

  /** Records the vectors of memories that have not changed since they were read. */
  async #record(
    tx: Transaction,
    { id, model: name }: EmbeddingModel,
    { owning, made }: { owning: Owning; made: readonly MadeVector[] },
  ): Promise<RecordedVectors | 'other dimensions'> {
    const { clock } = this;
    // Read again: an earlier request may have set the dimensions, or another process may have replaced the model.
    const model = await findModel(tx, { model: name });
    if (model?.id !== id) return nothingRecorded;
    const lengths = made.flatMap(({ vector }) => (vector === null ? [] : [vector.length]));
    const dimensions = model.dimensions ?? lengths[0] ?? null;
    const other = lengths.find((length) => length !== dimensions);
    if (other !== undefined) {
      // The provider may have replaced the model under the same name: then all vectors are made again. Not if other
      // organizations have vectors, or the dimensions changed recently: that could repeat without end.
      const isOld = clock.now() - Number(model.activated_at) >= dimensionsMs;
      if (!isOld || (await hasVectorsElsewhere(tx, id, owning))) return 'other dimensions';
      await insertModel(tx, {
        model: name,
        dimensions: other,
        at: await activationTime(tx, clock),
      });
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
}

interface Pass {
  requests: number;
  made: number;
  /** Whether another process holds the lease. */
  isElsewhere: boolean;
}

const isOver = ({ requests, isElsewhere }: Pass) => isElsewhere || requests >= requestsMax;

/** The rows whose texts fit into one request. */
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

interface MadeVector {
  readonly seq: number;
  readonly updated_at: number;
  readonly vector: Float32Array | null;
}

interface RecordedVectors {
  /** How many memories were handled, with a vector or without. */
  readonly count: number;
  readonly vectors: readonly { readonly seq: number; readonly vector: Float32Array }[];
}

const nothingRecorded: RecordedVectors = { count: 0, vectors: [] };
