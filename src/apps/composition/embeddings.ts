/** Vectors of memories: the model that makes them, the search by them, and the background task. Loaded only with `EMBEDDING_MODEL`. */

import type { Metrics } from '../../adapters/http/metrics.ts';
import { createEmbeddings } from '../../adapters/models/embeddings.ts';
import { Prices } from '../../adapters/models/prices.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import { Embedder } from '../../core/embeddings/embedder.ts';
import { MemoryVectors } from '../../core/memories/embed-memories.ts';
import { Meaning } from '../../core/memories/meaning.ts';
import { VectorIndex } from '../../core/memories/vector-index.ts';
import { newId } from '../../kernel/ids.ts';
import { providerSettings, warnOfModel } from './provider-settings.ts';

export interface EmbeddingsDeps {
  readonly base: Pick<Context, 'database' | 'clock' | 'log'>;
  readonly config: Pick<Config, 'providers' | 'modelPrices'>;
  /** `provider/model`. */
  readonly model: string;
  readonly credentials: Pick<Credentials, 'settingsOf'>;
  readonly metrics: Pick<Metrics, 'embedded' | 'tokensUsed'>;
}

export type ComposedEmbeddings = ReturnType<typeof composeEmbeddings>;

export function composeEmbeddings({
  base,
  config,
  model: name,
  credentials,
  metrics,
}: EmbeddingsDeps) {
  const { database, clock, log } = base;
  warnOfModel('EMBEDDING_MODEL', name, { providers: config.providers, log });
  const settingsOf = providerSettings(config.providers, credentials);
  const embeddings = createEmbeddings({ settingsOf, clock });
  const model = { name, embeddings, prices: new Prices(config.modelPrices) };
  const embedder = new Embedder(base, model, ({ purpose, outcome, usage, cost }) => {
    metrics.embedded({ purpose, outcome });
    if (usage !== null) metrics.tokensUsed(usage, cost);
  });
  const index = new VectorIndex(base);
  const meaning = new Meaning(database, embedder, index);
  const vectors = new MemoryVectors(base, { embedder, index }, newId());
  return { meaning, vectors, embedder };
}
