/** Vectors of memories: the model that makes them, the search by them, and the background task. Loaded only with `EMBEDDING_MODEL`. */

import type { Metrics } from '../../adapters/http/metrics.ts';
import { Embeddings } from '../../adapters/models/embeddings.ts';
import { Prices } from '../../adapters/models/prices.ts';
import type { Context } from '../../core/context/context.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import { Embedder } from '../../core/embeddings/embedder.ts';
import { MemoryVectors } from '../../core/memories/embed-memories.ts';
import { Meaning } from '../../core/memories/meaning.ts';
import { VectorIndex } from '../../core/memories/vector-index.ts';
import type { ProviderPaces } from '../../core/paces/provider-paces.ts';
import { newId } from '../../kernel/ids.ts';
import { warnOfModel } from './warn-of-model.ts';

export type ComposedEmbeddings = ReturnType<typeof composeEmbeddings>;

/** `name` is `provider/model`. */
export function composeEmbeddings(
  context: Context,
  name: string,
  { credentials, paces }: { readonly credentials: Credentials; readonly paces: ProviderPaces },
  metrics: Metrics,
) {
  const { database, clock, config, log } = context;
  warnOfModel('EMBEDDING_MODEL', name, { providers: config.providers, log });
  const embeddings = new Embeddings(clock);
  const prices = new Prices(config.modelPrices);
  const model = { name, embeddings, credentials, paces, prices };
  const embedder = new Embedder(context, model, ({ purpose, outcome, usage, cost }) => {
    metrics.embedded({ purpose, outcome });
    if (usage !== null) metrics.tokensUsed(usage, cost);
  });
  const index = new VectorIndex(context);
  const meaning = new Meaning(database, embedder, index);
  const vectors = new MemoryVectors(context, { embedder, index }, newId());
  return { meaning, vectors, embedder };
}
