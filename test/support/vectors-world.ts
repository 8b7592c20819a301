/** Memories with vectors of a scripted provider, on a database of the running test's own. */
import { expect, onTestFinished } from 'vitest';
import { Metrics } from '../../src/adapters/http/metrics.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { composeEmbeddings } from '../../src/apps/composition/embeddings.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { Credentials } from '../../src/core/credentials/credentials.ts';
import type { Meaning } from '../../src/core/memories/meaning.ts';
import { RunMemories } from '../../src/core/memories/run-memory.ts';
import { ProviderPaces } from '../../src/core/paces/provider-paces.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { contextOf } from './context.ts';
import type { Engine } from './databases.ts';
import { manualClock } from './manual-clock.ts';
import { startScriptedEmbedder } from './scripted-embedder.ts';
import { anyWriter } from './writers.ts';

export const own = { organizationId: 'default', agentId: 'support' };
export const other = { organizationId: 'other', agentId: 'support' };
const page = { limit: 50, offset: 0 };

export async function vectorsWorld(engine: Engine) {
  const database = await (await engine.emptiedPlace()).open();
  const clock = manualClock();
  const provider = await startScriptedEmbedder();
  onTestFinished(() => provider.close());
  const events: string[] = [];
  /** What a process has that started with this model. */
  const processWith = (name: string) => {
    const model = `local/${name}`;
    const providers = new Map([['local', { apiKey: null, baseUrl: provider.baseUrl }]]);
    const context = contextOf({ database, clock, config: { ...readConfig({}), providers } });
    const metrics = new Metrics({ version: '1.0.0', roles: 'worker' });
    metrics.embedded = ({ purpose, outcome }) => void events.push(`${purpose} ${outcome}`);
    const credentials = new Credentials(context, null);
    const paces = new ProviderPaces(context);
    const embeddings = composeEmbeddings(context, model, { credentials, paces }, metrics);
    onTestFinished(() => embeddings.embedder.stop());
    return embeddings;
  };
  let embeddings = processWith('small');
  const meaning = (): Meaning => embeddings.meaning;
  const { agents, memories } = composeAgents(contextOf({ database, clock }), { meaning });
  const { total } = await agents.list('default', page);
  if (total === 0) {
    await database.write((tx) => agents.createDefault(tx, 'default', 0));
    await agents.create(anyWriter(), { id: 'support' });
    await agents.create(anyWriter('other'), { id: 'support' });
  }
  const log = createLogger('silent');
  const runMemories = new RunMemories(contextOf({ database, clock, log }), memories, agents);
  return {
    ...{ database, clock, provider, events, agents, memories, processWith },
    /** Makes all vectors that are missing. */
    async embed() {
      while ((await embeddings.vectors.embedSome()) > 0);
      await embeddings.vectors.embedSome();
    },
    awaiting: () => embeddings.vectors.countAwaiting(),
    use(next: ReturnType<typeof processWith>) {
      embeddings = next;
    },
    runFor: (userId: string | null) =>
      runMemories.begin({
        ...own,
        userId,
        jobId: 'job',
        conversationId: 'conversation',
        acceptedAt: clock.now(),
        isTrial: false,
      }),
    async given(...all: readonly [content: string, userId: string | null, tag?: string][]) {
      const made: { id: string }[] = [];
      for (const [content, userId, tag] of all) {
        made.push(await memories.create(own, { content, ...(tag && { tag }) }, userId));
      }
      return made;
    },
    async search(q: string, filter: Parameters<typeof memories.list>[1] = {}, at = page) {
      const listed = await memories.list(own, { ...filter, q }, at);
      return { contents: listed.memories.map(({ content }) => content), total: listed.total };
    },
    /** The tokens that the agent `support` may use in a day. */
    async budget(tokens: number) {
      const owner = {
        organization_id: 'default',
        owner_kind: 'agent',
        owner_id: 'support',
      } as const;
      const limits = { tokens_per_day: tokens, tokens_per_month: null, updated_at: 0 };
      await database.write(async (tx) => {
        await tx.kysely.deleteFrom('token_budgets').execute();
        await tx.kysely
          .insertInto('token_budgets')
          .values({ ...owner, ...limits })
          .execute();
      });
    },
    async vectors() {
      const db = database.read.kysely;
      const vectors = await db.selectFrom('memory_vectors').select('seq').execute();
      const codes = await db.selectFrom('memory_codes').select('seq').execute();
      expect(vectors.length).toBe(codes.length);
      return vectors.length;
    },
    /** The lines of the ledger, by owner. */
    usage: () =>
      database.read.kysely.selectFrom('token_usage').selectAll().orderBy('owner_kind').execute(),
    async used(kind: 'agent' | 'embedding_model') {
      return await database.read.kysely
        .selectFrom('token_usage')
        .select(['owner_id', 'prompt_tokens', 'calls', 'unpriced_calls', 'reserved_tokens'])
        .where('owner_kind', '=', kind)
        .execute();
    },
  };
}

export type VectorsWorld = Awaited<ReturnType<typeof vectorsWorld>>;
