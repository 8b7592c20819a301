/**
 * The current embedding model: that of the process that started last. A process with another model makes no vectors,
 * because the two would replace each other's.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Context } from '../context/context.ts';
import type { Embedder } from '../embeddings/embedder.ts';
import {
  activateModel,
  type EmbeddingModel,
  findActiveModel,
  findModel,
  insertModel,
  lockModels,
} from './embedding-models.store.ts';

export class CurrentModel {
  readonly #context: Context;
  /** The embedder of this process. */
  readonly #embedder: Embedder;
  /** Whether this process has made its model the current one. */
  #isActivated = false;
  /** Whether the log already says that another process has another model. */
  #isOutdated = false;

  constructor(context: Context, embedder: Embedder) {
    this.#context = context;
    this.#embedder = embedder;
  }

  /** The model of this process; the first call makes it the current one. Null if a later process has another model. */
  async find(): Promise<EmbeddingModel | null> {
    const { database, clock, log } = this.#context;
    const embedder = this.#embedder;
    if (!this.#isActivated) {
      const { model } = embedder;
      await database.write(async (tx) => {
        await lockModels(tx);
        const known = await findModel(tx, { model });
        const at = await activationTime(tx, clock);
        if (known === undefined) await insertModel(tx, { model, dimensions: null, at });
        else await activateModel(tx, known.id, at);
      });
      this.#isActivated = true;
    }
    const active = await findActiveModel(database.read, {});
    if (active === undefined) return null;
    if (active.model === embedder.model) return active;
    if (!this.#isOutdated) {
      this.#isOutdated = true;
      log.warn(
        { embedding_model: embedder.model, other: active.model },
        'a process that started later has another EMBEDDING_MODEL: this one makes no vectors of memories',
      );
    }
    return null;
  }
}

/** A time after all earlier activations, even if the clock of another process was ahead. */
export async function activationTime(tx: Transaction, clock: Clock): Promise<number> {
  const active = await findActiveModel(tx, {});
  return Math.max(clock.now(), active === undefined ? 0 : Number(active.activated_at) + 1);
}
