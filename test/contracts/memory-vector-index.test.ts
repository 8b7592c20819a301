/** The index of vectors where PostgreSQL has the extension pgvector; skipped where it is not installed. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { Embeddings } from '../../src/adapters/models/embeddings.ts';
import { Prices } from '../../src/adapters/models/prices.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import type { Credentials } from '../../src/core/credentials/credentials.ts';
import { Embedder } from '../../src/core/embeddings/embedder.ts';
import { MemoryVectors } from '../../src/core/memories/embed-memories.ts';
import { VectorIndex } from '../../src/core/memories/vector-index.ts';
import { ProviderPaces } from '../../src/core/paces/provider-paces.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';

const credentials = { settingsForModel: async () => undefined } as unknown as Credentials;
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
  /** Of which a vector was asked for. */
  const texts: string[] = [];
  const embed: Embeddings['embed'] = async (call) => {
    texts.push(...call.texts);
    return { vectors: call.texts.map(vectorOf), usage: { prompt: 3, completion: 0 } };
  };
  const embedder = new Embedder(
    contextOf({ database, clock, log }),
    {
      name: 'local/angles',
      embeddings: { embed } as Embeddings,
      credentials,
      paces: new ProviderPaces(contextOf({ database, clock })),
      prices: new Prices([]),
    },
    () => {},
  );
  const index = new VectorIndex(contextOf({ database, clock, log }), 0);
  const base = { database, clock, log };
  const vectors = new MemoryVectors(contextOf(base), { embedder, index }, 'test');
  const { agents, memories } = composeAgents(contextOf({ database, clock }));
  await database.write((tx) => agents.createDefault(tx, 'default', 0));
  return {
    memories,
    texts,
    add: (text: string, userId: string | null = null) =>
      memories.create(own, { content: text }, userId),
    async embed() {
      clock.advance(120_000);
      while ((await vectors.embedSome()) > 0);
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

  test('vectors are kept where the index cannot be written, and are indexed later', async (context) => {
    const database = await engine.fresh();
    if (!(await isAvailable(database))) context.skip();
    const { add, embed, nearest, texts } = await world(database);
    await sql`create extension vector`.execute(database.read.kysely);
    await add('memory 1');
    await embed();
    await embed();
    await sql`alter table memory_nearest add constraint broken check (seq < 0) not valid`.execute(
      database.read.kysely,
    );
    await add('memory 3');
    await embed();
    await embed();

    expect(texts).toEqual(['memory 1', 'memory 3']);
    expect(await nearest('memory 3', 'own', 1)).toBeNull();
    await sql`alter table memory_nearest drop constraint broken`.execute(database.read.kysely);
    await embed();
    expect(await nearest('memory 3', 'own', 2)).toEqual(['memory 3', 'memory 1']);
    expect(texts).toEqual(['memory 1', 'memory 3']);
  });

  test('vectors are kept where the index is broken, also without the extension', async () => {
    const database = await engine.fresh();
    const { add, embed, texts } = await world(database);
    const run = (text: string) => sql.raw(text).execute(database.read.kysely);
    await run('create table memory_nearest (seq bigint primary key, model bigint)');
    await run('create index memory_nearest_1 on memory_nearest (model)');
    await add('memory 1');

    await embed();

    expect(texts).toEqual(['memory 1']);
    const { kysely } = database.read;
    expect(await kysely.selectFrom('memory_vectors').select('seq').execute()).toHaveLength(1);
  });

  test('a look begins behind the vectors that the look before the last one has seen', async () => {
    const database = await engine.fresh();
    const { add, embed } = await world(database);
    const run = (text: string) => sql.raw(text).execute(database.read.kysely);
    const indexed = async () => {
      const rows = await sql<{ seq: number }>`select seq from memory_nearest`.execute(
        database.read.kysely,
      );
      return rows.rows.length;
    };
    // What a look needs of pgvector, also where it is not installed; nothing is searched.
    await run(`insert into pg_extension
      (oid, extname, extowner, extnamespace, extrelocatable, extversion)
      select 99999, 'vector', extowner, extnamespace, false, '0.8.0' from pg_extension limit 1`);
    await run('create domain halfvec as text');
    await run(`create table memory_nearest (seq bigint primary key, owner bigint, together bigint,
      model bigint, vector halfvec)`);
    await run('create index memory_nearest_1 on memory_nearest (model)');
    await run('create function memory_nearest_1() returns int language sql return 1');
    await add('memory 1');
    await add('memory 2');
    await embed();
    await embed();
    expect(await indexed()).toBe(2);

    // What is gone from the index shows where a look begins.
    await run('delete from memory_nearest');
    await embed();
    expect(await indexed()).toBe(0);

    // The last look was before it was recorded.
    await add('memory 3');
    await embed();
    await run('delete from memory_nearest');
    await embed();
    expect(await indexed()).toBe(1);

    // Another process makes the index anew.
    await run('drop function memory_nearest_1()');
    await embed();
    expect(await indexed()).toBe(3);
  });

  test('an extension that was dropped and created again gets its index anew, without a restart', async (context) => {
    const database = await engine.fresh();
    if (!(await isAvailable(database))) context.skip();
    const { add, embed, nearest } = await world(database);
    const run = (text: string) => sql.raw(text).execute(database.read.kysely);
    await run('create extension vector');
    await add('memory 1');
    await embed();
    await embed();
    expect(await nearest('memory 1', 'own', 1)).toEqual(['memory 1']);

    for (const isSearchedMeanwhile of [true, false]) {
      await run('drop extension vector cascade');
      if (isSearchedMeanwhile) expect(await nearest('memory 1', 'own', 1)).toBeNull();
      await add('memory 3');
      await embed();
      await run('create extension vector');
      await embed();
      const most = isSearchedMeanwhile ? 2 : 3;
      expect(await nearest('memory 3', 'own', most)).toHaveLength(most);
    }
  });

  test('an index of many vectors is made in steps, each from where the last one ended', async (context) => {
    const database = await engine.fresh();
    if (!(await isAvailable(database))) context.skip();
    const { add, embed, nearest } = await world(database);
    for (let i = 0; i < 250; i++) await add(`memory ${i % 30}`);
    await embed();
    await sql`create extension vector`.execute(database.read.kysely);

    await embed();

    const { kysely } = database.read;
    const { rows } = await sql`select seq from memory_nearest`.execute(kysely);
    expect(rows).toHaveLength(250);
    expect(await nearest('memory 3', 'own', 200)).toHaveLength(200);
  });
});
