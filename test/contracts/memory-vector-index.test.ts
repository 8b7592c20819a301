/** The index of vectors where PostgreSQL has the extension pgvector; skipped where it is not installed. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { insertDefaultAgent } from '../../src/agents/agents.ts';
import { composeAgents } from '../../src/composition/agents.ts';
import type { Database } from '../../src/database/database.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { createEmbedMemories } from '../../src/memories/embed-memories.ts';
import { createVectorIndex } from '../../src/memories/vector-index.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';

const own = { organizationId: 'default', agentId: 'default' };
const log = createLogger('silent');
const servers = (await engines()).filter(({ name }) => name === 'PostgreSQL');

/** A direction of its own for each number in a text. */
const vectorOf = (text: string) => {
  const angle = Number(/\d+/.exec(text)?.[0] ?? 0) / 10;
  return Float32Array.of(Math.cos(angle), Math.sin(angle), 0, 0);
};

async function isAvailable(database: Database): Promise<boolean> {
  const { rows } = await sql`select 1 from pg_available_extensions where name = 'vector'`.execute(
    database.read.kysely,
  );
  return rows.length > 0;
}

async function world(database: Database) {
  const clock = manualClock();
  const embedder = {
    model: 'local/angles',
    question: async () => null,
    texts: async (_: unknown, texts: readonly string[]) => texts.map(vectorOf),
    isWaiting: () => false,
    postpone() {},
  };
  const index = createVectorIndex({ database, clock, log, exactMax: 0 });
  const deps = { database, clock, log, embedder, index, holder: 'test' };
  const { embedSome } = createEmbedMemories(deps);
  const { memories } = composeAgents({ database, clock });
  await database.write((tx) => insertDefaultAgent(tx, 'default', 0));
  return {
    memories,
    add: (text: string, userId: string | null = null) =>
      memories.create(own, { content: text }, userId),
    async embed() {
      clock.advance(120_000);
      while ((await embedSome()) > 0);
    },
    /** The texts nearest to another one, of the owners with these kinds; null without an index. */
    async nearest(text: string, kind: 'own' | 'together', most: number) {
      clock.advance(120_000);
      const { kysely } = database.read;
      const owners = await kysely.selectFrom('memory_owners').select(['id', 'kind']).execute();
      const ids = (wanted: number) =>
        owners.filter((one) => one.kind === wanted).map(({ id }) => Number(id));
      const seen = {
        own: kind === 'own' ? ids(0) : [],
        together: kind === 'together' ? ids(2) : [],
      };
      const { id } = await kysely
        .selectFrom('embedding_models')
        .select('id')
        .orderBy('id', 'desc')
        .executeTakeFirstOrThrow();
      const wanted = { model: Number(id), vector: vectorOf(text), most, count: 1 };
      const seqs = await index.nearest(seen, wanted);
      if (seqs === null) return null;
      const rows = await kysely.selectFrom('memories').select(['seq', 'content']).execute();
      return seqs.map((seq) => rows.find((row) => Number(row.seq) === seq)?.content);
    },
  };
}

describe.each(servers)('on $name', (engine) => {
  test('without the extension there is no index, and nothing fails', async () => {
    const { add, embed, nearest } = await world(await engine.fresh());
    await add('memory 1');
    await embed();

    expect(await nearest('memory 1', 'own', 1)).toBeNull();
  });

  test('an index is made of what there is, and follows what is added and deleted', async (context) => {
    const database = await engine.fresh();
    if (!(await isAvailable(database))) context.skip();
    const { add, embed, nearest, memories } = await world(database);
    await add('memory 1');
    await add('memory 2', 'alice');
    await embed();
    await sql`create extension vector`.execute(database.read.kysely);
    await embed();
    expect(await nearest('memory 1', 'own', 1)).toEqual(['memory 1']);
    expect(await nearest('memory 1', 'together', 1)).toEqual(['memory 2']);

    const nearer = await add('memory 3');
    await embed();
    expect(await nearest('memory 3', 'own', 2)).toEqual(['memory 3', 'memory 1']);
    await memories.remove(own, nearer.id);
    expect(await nearest('memory 3', 'own', 1)).toEqual(['memory 1']);
    // Fewer than were asked for: the codes have to tell.
    expect(await nearest('memory 3', 'own', 2)).toBeNull();
    await sql`drop extension vector cascade`.execute(database.read.kysely);
    expect(await nearest('memory 3', 'own', 1)).toBeNull();
    await add('memory 4');
    await embed();
  });
});
