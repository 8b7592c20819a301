/** Memories on every database (specification: Agent memory; docs/decisions/memories.md). */
import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { countsOf, FrequentTerms } from '../../src/core/memories/frequent-terms.ts';
import { reindexMemory } from '../../src/core/memories/index.store.ts';
import { memoriesAfter } from '../../src/core/memories/memories.store.ts';
import type { Memories } from '../../src/core/memories/memories.ts';
import { queryOf } from '../../src/core/memories/query.ts';
import { indexedAs, newMemory } from '../../src/core/memories/record.ts';
import { findAmong } from '../../src/core/memories/relevance.ts';
import { anyOf, countMatches, newestMatches } from '../../src/core/memories/search.store.ts';
import { columnsOfWords, indexedTerms, wordTerm } from '../../src/core/memories/terms.ts';
import { readWords } from '../../src/core/memories/words.ts';
import { contextOf } from '../support/context.ts';
import { type Engine, engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { expectMemoriesConsistent } from '../support/memories.ts';
import { propertyRuns } from '../support/soak.ts';
import { anyWriter } from '../support/writers.ts';

const ada = { organizationId: 'default', agentId: 'ada' };
const bob = { organizationId: 'default', agentId: 'bob' };
const elsewhere = { organizationId: 'other', agentId: 'ada' };
const page = { limit: 50, offset: 0 };
const unknownId = '0191f3b0-0000-7000-8000-000000000000';

/** The verbs on a new database, where `ada` and `bob` work, and another `ada` elsewhere. */
async function world(engine: Engine) {
  const place = await engine.emptiedPlace();
  return await worldOn(await place.open(), place);
}

async function worldOn(database: Database, place?: { open(): Promise<Database> }) {
  const clock = manualClock();
  const { agents, memories } = composeAgents(contextOf({ database, clock }));
  const existing = await agents.list('default', page);
  if (existing.total === 0) {
    for (const { organizationId, agentId } of [ada, bob, elsewhere]) {
      await database.write((tx) => agents.createDefault(tx, organizationId, 0));
      await agents.create(anyWriter(organizationId), { id: agentId });
    }
  }
  return { database, clock, agents, memories, place };
}

const found = async (memories: Memories, q: string, more: { tag?: string } = {}, owning = ada) =>
  (await memories.list(owning, { q, ...more }, page)).memories.map(({ content }) => content);

describe.each(await engines())('on $name', (engine) => {
  test('the newest with a word are the same, whether the last memories are enough or older ones are needed', async () => {
    const { database, memories } = await world(engine);
    const make = async (owning: typeof ada, count: number) => {
      for (let i = 0; i < count; i++) {
        await memories.create(owning, { content: i % 2 === 0 ? 'green tea' : 'black coffee' });
      }
    };
    await make(ada, 24);
    const rows = await database.read.kysely
      .selectFrom('memories')
      .select(['seq', 'owner', 'words'])
      .execute();
    const tea = rows.filter(({ words }) => words.includes('tea')).map(({ seq }) => seq);
    const newestFirst = tea.toSorted((a, b) => b - a);
    const owners = [rows[0]?.owner ?? 0];
    const terms = anyOf(database.read, owners, [wordTerm('tea')]);
    const expectNewest = async () => {
      for (const limit of [1, 3, 11, 12, 13, 2_000, 5_000]) {
        const found = await newestMatches(database.read, { terms, owners }, limit);
        expect(found).toEqual(newestFirst.slice(0, limit));
      }
      expect(await countMatches(database.read, terms)).toBe(12);
    };

    await expectNewest();
    await make(bob, 9);
    await expectNewest();
  });

  test('the newest are those of all owners that are asked for', async () => {
    const { database, memories } = await world(engine);
    for (let i = 0; i < 12; i++) {
      await memories.create(ada, { content: 'green tea' }, i % 3 === 0 ? null : `user-${i % 3}`);
    }
    const { kysely } = database.read;
    const rows = await kysely.selectFrom('memories').select(['seq', 'owner', 'together']).execute();
    const newestOf = async (owners: readonly number[], limit: number) => {
      const terms = anyOf(database.read, owners, [wordTerm('tea')]);
      return newestMatches(database.read, { terms, owners }, limit);
    };
    const seqsOf = (owners: readonly (number | null)[]) =>
      rows
        .filter(({ owner, together }) => owners.includes(owner) || owners.includes(together ?? -1))
        .map(({ seq }) => seq)
        .toSorted((a, b) => b - a);
    const [own, together] = [rows[0]?.owner ?? 0, rows[1]?.together ?? 0];
    const one = rows[1]?.owner ?? 0;

    for (const owners of [[own], [together], [own, together], [own, one]]) {
      for (const limit of [1, 3, 20]) {
        expect(await newestOf(owners, limit)).toEqual(seqsOf(owners).slice(0, limit));
      }
    }
  });

  test('a frequent word is counted again after ten minutes, and a rare one each time', async () => {
    const { database, memories, clock } = await world(engine);
    const frequent = new FrequentTerms(clock);
    const contents = ['green tea', 'black tea', 'iced tea', 'coffee'];
    const made = await Promise.all(contents.map((content) => memories.create(ada, { content })));
    const row = await database.read.kysely
      .selectFrom('memories')
      .select('owner')
      .executeTakeFirst();
    const one = (word: string) => ({
      strong: anyOf(database.read, [row?.owner ?? 0], [wordTerm(word)]),
      weak: '',
    });
    const counted = async () =>
      (await countsOf(database.read, [one('tea'), one('coffee')], { most: 3, frequent })).map(
        ({ strong }) => strong,
      );

    expect(await counted()).toEqual([3, 1]);
    for (const { id } of made.slice(2)) await memories.remove(ada, id);
    expect(await counted()).toEqual([3, 0]);
    clock.advance(10 * 60 * 1000);
    expect(await counted()).toEqual([2, 0]);
  });

  test('a frequent word whose count expires while others are counted is still frequent', async () => {
    const { database, memories, clock } = await world(engine);
    for (const content of ['green tea', 'black tea']) await memories.create(ada, { content });
    const row = await database.read.kysely
      .selectFrom('memories')
      .select('owner')
      .executeTakeFirst();
    const expressions = ['tea', 'coffee'].map((word) => ({
      strong: anyOf(database.read, [row?.owner ?? 0], [wordTerm(word)]),
      weak: '',
    }));
    const frequent = new FrequentTerms(clock);
    const counted = async () =>
      (await countsOf(database.read, expressions, { most: 2, frequent })).map(
        ({ strong }) => strong,
      );
    await counted();
    clock.advance(10 * 60 * 1000 - 1);

    const counting = counted();
    clock.advance(1);

    expect(await counting).toEqual([2, 0]);
  });

  test('a memory has the given fields, and defaults for the others', async () => {
    const { memories, clock } = await world(engine);
    const now = new Date(clock.now()).toISOString();

    const plain = await memories.create(ada, { content: 'x' });
    const full = await memories.create(ada, {
      content: ' Tabs\tand\r\nlines, 😀 ',
      tag: 'Ünï "tag" 100%',
      metadata: { a: [1, { b: null }], '': 'é' },
    });

    expect(plain).toEqual({
      id: expect.any(String),
      agent_id: 'ada',
      content: 'x',
      tag: 'fact',
      metadata: {},
      user_id: null,
      created_at: now,
      updated_at: now,
      expires_at: null,
      source: null,
    });
    expect(full).toMatchObject({
      content: ' Tabs\tand\r\nlines, 😀 ',
      tag: 'Ünï "tag" 100%',
      metadata: { a: [1, { b: null }], '': 'é' },
    });
    expect(await memories.get(ada, full.id)).toEqual(full);
  });

  test('a change applies to the given fields, refreshes updated_at, and is searchable', async () => {
    const { memories, clock, database } = await world(engine);
    const before = await memories.create(ada, { content: 'red fox', metadata: { a: 1 } });
    clock.advance(1_000);

    const content = await memories.update(ada, before.id, { content: 'blue whale' });
    clock.advance(1_000);
    const tag = await memories.update(ada, before.id, { tag: 'animal' });
    clock.advance(1_000);
    const metadata = await memories.update(ada, before.id, { metadata: {} });

    const at = (ago: number) => ({ updated_at: new Date(clock.now() - ago).toISOString() });
    expect(content).toEqual({ ...before, content: 'blue whale', ...at(2_000) });
    expect(tag).toEqual({ ...content, tag: 'animal', ...at(1_000) });
    expect(metadata).toEqual({ ...tag, metadata: {}, ...at(0) });
    expect(await memories.get(ada, before.id)).toEqual(metadata);
    expect(await found(memories, 'fox')).toEqual([]);
    expect(await found(memories, 'whale', { tag: 'animal' })).toEqual(['blue whale']);
    expect(await found(memories, 'whale', { tag: 'fact' })).toEqual([]);
    await expectMemoriesConsistent(database);
  });

  test('updated_at grows with every change, also when the clock has been set back', async () => {
    const { memories, clock } = await world(engine);
    const before = await memories.create(ada, { content: 'x' });
    const later = (ms: number) => new Date(Date.parse(before.created_at) + ms).toISOString();

    const at = [await memories.update(ada, before.id, { content: 'y' })];
    clock.advance(-60_000);
    at.push(await memories.update(ada, before.id, { tag: 'z' }));

    expect(at.map(({ updated_at }) => updated_at)).toEqual([later(1), later(2)]);
  });

  test('an empty change changes only the time of the last one', async () => {
    const { memories, clock } = await world(engine);
    const before = await memories.create(ada, { content: 'x' });
    clock.advance(1_000);

    const changed = await memories.update(ada, before.id, {});
    expect(changed).toEqual({ ...before, updated_at: changed.updated_at });
    expect(changed.updated_at > before.updated_at).toBe(true);
    expect(await memories.get(ada, before.id)).toEqual(changed);
  });

  test('a deleted memory is in no list, search or count', async () => {
    const { memories, database } = await world(engine);
    const gone = await memories.create(ada, { content: 'one' });
    await memories.create(ada, { content: 'two', tag: 'other' });

    await memories.remove(ada, gone.id);

    expect((await memories.list(ada, {}, page)).total).toBe(1);
    expect((await memories.list(ada, { tag: 'fact' }, page)).total).toBe(0);
    expect(await found(memories, 'one')).toEqual([]);
    await expect(memories.remove(ada, gone.id)).rejects.toMatchObject({ code: 'not_found' });
    await expectMemoriesConsistent(database);
  });

  test('an agent knows neither another one’s memories nor those of another organization', async () => {
    const { memories } = await world(engine);
    const { id } = await memories.create(ada, { content: 'secret', tag: 'private' });

    for (const stranger of [bob, elsewhere]) {
      const nothing = { memories: [], total: 0, next: null };
      await memories.create(stranger, { content: 'public' });
      expect(await memories.list(stranger, { q: 'secret' }, page)).toEqual(nothing);
      expect(await memories.list(stranger, { tag: 'private' }, page)).toEqual(nothing);
      expect((await memories.list(stranger, {}, page)).total).toBe(1);
      for (const attempt of [
        () => memories.get(stranger, id),
        () => memories.update(stranger, id, { content: 'mine' }),
        () => memories.update(stranger, id, {}),
        () => memories.remove(stranger, id),
      ]) {
        await expect(attempt()).rejects.toMatchObject({
          code: 'not_found',
          message: 'Memory not found',
        });
      }
    }
    expect((await memories.get(ada, id)).content).toBe('secret');
  });

  test.each(['', 'x', unknownId, unknownId.toUpperCase(), `${unknownId} `, '%', "'"])(
    'there is no memory %j',
    async (id) => {
      const { memories } = await world(engine);
      await memories.create(ada, { content: 'x' });

      await expect(memories.get(ada, id)).rejects.toMatchObject({ code: 'not_found' });
      await expect(memories.remove(ada, id)).rejects.toMatchObject({ code: 'not_found' });
    },
  );

  test('lists are newest first, in pages, with exact totals', async () => {
    const { memories } = await world(engine);
    for (let i = 1; i <= 12; i += 1) {
      await memories.create(ada, { content: `${i}`, tag: i % 3 === 0 ? 'third' : 'other' });
    }
    const list = async (filter: { tag?: string; q?: string }, limit: number, offset: number) => {
      const { memories: rows, total } = await memories.list(ada, filter, { limit, offset });
      return [...rows.map(({ content }) => content), total];
    };

    expect(await list({}, 3, 0)).toEqual(['12', '11', '10', 12]);
    expect(await list({}, 5, 10)).toEqual(['2', '1', 12]);
    expect(await list({}, 5, 2_147_483_647)).toEqual([12]);
    expect(await list({ tag: 'third' }, 2, 1)).toEqual(['9', '6', 4]);
    expect(await list({ tag: 'Third' }, 2, 0)).toEqual([0]);
    expect(await list({ tag: '' }, 2, 0)).toEqual([0]);
  });

  const documents = [
    'The quick brown fox jumps over the lazy dog.',
    'Crème brûlée: caramelised sugar & CREAM',
    'Ada prefers tea. Ada drinks tea.',
    'Bob prefers coffee to tea, most days',
    '東京都庁へ行きました',
    'ภาษาไทยง่ายมาก',
    'О́н живёт в Москве́',
    "O'Brien's e-mail: o.brien@example.com",
    'NOT a AND b OR c NEAR d',
    '100% of "quoted" words*',
    'שָׁלוֹם עולם',
    '👍 !!!',
    'a:b -c +d ^e (f) {g} <h> \\ | & ! ~',
  ];
  test.each([
    ['fox', [0]],
    ['FOX', [0]],
    ['fox dog', [0]],
    ['dog, fox!', [0]],
    ['fox cat', [0]],
    ['fo', []],
    ['foxes', [0]],
    ['creme', [1]],
    ['BRÛLÉE', [1]],
    ['tea', [2, 3]],
    ['prefers', [2, 3]],
    ['prefers coffee', [3, 2]],
    ['preference', [2, 3]],
    ['sugar dog', [1, 0]],
    ['都庁', [4]],
    ['ไทย', [5]],
    ['жив', []],
    ['живет', [6]],
    ['Москве', [6]],
    ['e-mail', [7, 12]],
    ["o'brien", [7]],
    ['o.brien@example.com', [7]],
    ['not', [8]],
    ['AND OR NOT', [8]],
    ['a AND b', [12, 8]],
    ['NEAR(a d)', [8]],
    ['quoted', [9]],
    ['"of quoted"', [9]],
    ['word*', [9]],
    ['"word"', []],
    ['שלום', [10]],
    ['tokens:tea', [2, 3]],
    ['a:b', [12, 8]],
    ['', []],
    ['   ', []],
    ['*', []],
    ['"', []],
    ["'", []],
    ["'; drop table memories; --", []],
    ['-tea', [2, 3]],
    ['!tea & (', [2, 3]],
    ['tea | coffee', [3, 2]],
    ['"coffee to tea"', [3]],
    ['"tea to coffee"', []],
    ['"Ada drinks" "prefers tea"', [2]],
    ['"prefers coffee" sugar', [3]],
    ['“京都庁”', [4]],
    ['都庁へ行く', [4]],
    ['tea:*', [2, 3]],
    ['tea:AB', [2, 3]],
    ['\\', []],
    ['%', []],
    ['👍', []],
    ['\u00b7', []],
    ['1\u00b7tea', [2, 3]],
    ['1\u00a7', []],
    ['{tokens}: tea', [2, 3]],
    ['^tea', [2, 3]],
  ])('the search for %j finds %j', async (q, indexes) => {
    const { memories } = await world(engine);
    for (const content of documents) await memories.create(ada, { content });
    await memories.create(bob, { content: documents.join('\n') });

    const { memories: rows, total } = await memories.list(ada, { q }, page);

    expect(rows.map(({ content }) => documents.indexOf(content))).toEqual(indexes);
    expect(total).toBe(indexes.length);
  });

  test('finds and orders any texts by the documented rules', async () => {
    const { memories, agents } = await world(engine);
    const unit = fc.constantFrom(
      ...'aAbBcä é-\'"*:&|!()<>\\%_1 2 ß東京かがกไท न ि ς Σ 𐐨 🏔'.split(''),
    );
    const contents = fc.array(fc.string({ unit, minLength: 1, maxLength: 24 }), { maxLength: 12 });
    const queries = fc.array(fc.string({ unit, maxLength: 8 }), { minLength: 1, maxLength: 5 });
    let samples = 0;

    await fc.assert(
      fc.asyncProperty(contents, queries, async (texts, asked) => {
        samples += 1;
        const sample = { organizationId: 'default', agentId: `sample-${samples}` };
        await agents.create(anyWriter(), { id: sample.agentId });
        const made: { id: string; content: string }[] = [];
        for (const content of texts.map((text) => text.toWellFormed())) {
          made.push(await memories.create(sample, { content }));
        }
        for (const q of asked.map((text) => text.toWellFormed())) {
          const { memories: rows, total } = await memories.list(sample, { q }, page);
          const expected = oracle(made, q);
          expect(rows.map(({ id }) => id)).toEqual(expected);
          expect(total).toBe(expected.length);
        }
      }),
      propertyRuns(15, 40),
    );
  });

  test('where frequent words match, what has all of them comes first, and the total is exact', async () => {
    const { memories, database } = await world(engine);
    const now = Date.now();
    await fill(
      memories,
      database,
      11_000,
      (i) => (i === 7 ? 'tea milk' : i % 2 === 0 ? `tea ${i}` : `milk ${i}`),
      now,
    );

    const first = await memories.list(ada, { q: 'tea milk' }, { limit: 5, offset: 0 });
    const last = await memories.list(ada, { q: 'tea milk' }, { limit: 5, offset: 10_998 });

    expect(first.memories[0]?.content).toBe('tea milk');
    expect([first.total, last.total]).toEqual([11_000, 11_000]);
    expect(last.memories.map(({ content }) => content)).toEqual(['milk 1', 'tea 0']);
  });

  test('a memory for which an earlier version recorded no terms is found by its words, changed and deleted', async () => {
    const { memories, database } = await world(engine);
    const old = await memories.create(ada, { content: 'deliveries of oak chairs' });
    const gone = await memories.create(ada, { content: 'deliveries of tables' });
    const changed = await memories.create(ada, { content: 'deliveries of lamps' });
    await database.write(async (tx) => {
      for (const row of await memoriesAfter(tx, 0, 10)) {
        const terms = indexedTerms(null, row.words, row.tag);
        await reindexMemory(tx, indexedAs(row), terms);
        await sql`update memories set terms = null where seq = ${row.seq}`.execute(tx.kysely);
      }
    });

    expect(await found(memories, 'deliveries oak')).toEqual([
      old.content,
      changed.content,
      gone.content,
    ]);
    await memories.remove(ada, gone.id);
    await memories.update(ada, changed.id, { tag: 'light' });
    expect(await found(memories, 'lamps', { tag: 'light' })).toEqual([changed.content]);
    await memories.update(ada, old.id, { content: 'two chairs' });
    expect(await found(memories, 'chair')).toEqual(['two chairs']);
    await memories.remove(ada, old.id);
    await memories.remove(ada, changed.id);
    expect(await found(memories, 'deliveries chairs')).toEqual([]);
    await expectMemoriesConsistent(database);
  });

  test('where more match than are ranked, every match is on one page, and the total is exact', async () => {
    const { memories, database } = await world(engine);
    const now = Date.now();
    await fill(memories, database, 1_300, (i) => (i === 1_100 ? 'tea tea tea' : `tea ${i}`), now);
    await fill(memories, database, 5, () => 'coffee', now);

    const ids: string[] = [];
    for (let offset = 0; offset < 1_400; offset += 130) {
      const { memories: rows, total } = await memories.list(
        ada,
        { q: 'tea' },
        { limit: 130, offset },
      );
      expect(total).toBe(1_300);
      ids.push(...rows.map(({ id }) => id));
    }

    expect(ids).toHaveLength(1_300);
    expect(new Set(ids).size).toBe(1_300);
    expect((await memories.get(ada, ids[0] ?? '')).content).toBe('tea tea tea');
    expect((await memories.get(ada, ids[1_299] ?? '')).content).toBe('tea 0');
  });

  test('where the matches are long, fewer are ranked, and none is missing', async () => {
    const { memories, database } = await world(engine);
    const long = 'tea '.repeat(16_000);
    await fill(memories, database, 30, (i) => (i === 0 ? 'tea' : `${long}${i}`), Date.now());

    const first = await memories.list(ada, { q: 'tea' }, { limit: 20, offset: 0 });
    const second = await memories.list(ada, { q: 'tea' }, { limit: 20, offset: 20 });

    const ids = [...first.memories, ...second.memories].map(({ id }) => id);
    expect(new Set(ids).size).toBe(30);
    expect([first.total, second.total]).toEqual([30, 30]);
    expect(second.memories.at(-1)?.content).toBe('tea');
  });

  test('the longest memory is kept and found by its first 10,000 words', async () => {
    const { memories } = await world(engine);
    const words = Array.from({ length: 16_000 }, (_, i) => i.toString(36).padStart(3, '0'));
    const content = words.join(' ').padEnd(65_536, ' ');
    const tag = '🏷'.repeat(200);

    const { id } = await memories.create(ada, { content, tag });
    await memories.create(ada, { content: 'ﷺ '.repeat(16_384) });

    expect((await memories.get(ada, id)).content).toBe(content);
    expect(await found(memories, words[0] ?? '', { tag })).toEqual([content]);
    expect(await found(memories, words[9_999] ?? '')).toEqual([content]);
    expect(await found(memories, words[10_000] ?? '')).toEqual([]);
    expect(await found(memories, 'الله')).toHaveLength(1);
  });

  test.each([
    ['content', { content: 'x'.repeat(65_537) }],
    ['content', { content: '🏔'.repeat(16_385) }],
    ['metadata', { content: 'x', metadata: { a: '🏔'.repeat(16_384) } }],
  ])('a longer %s is refused', async (field, fields) => {
    const { memories } = await world(engine);

    await expect(memories.create(ada, fields)).rejects.toMatchObject({
      code: 'validation_error',
      extras: { details: [{ field, issue: expect.any(String) }] },
    });
  });

  test('an unknown agent gets no memories', async () => {
    const { memories, database } = await world(engine);
    const unknownAgent = { organizationId: 'default', agentId: 'nobody' };

    await expect(memories.create(unknownAgent, { content: 'x' })).rejects.toMatchObject({
      code: 'not_found',
      message: 'Agent not found',
    });
    await expectMemoriesConsistent(database);
  });

  test('a deleted agent’s memories are gone at once, and a new one of its id begins with none', async () => {
    const { memories, agents, database } = await world(engine);
    const now = Date.now();
    await fill(memories, database, 1_200, (i) => `tea ${i}`, now);
    const [{ id } = { id: '' }] = (await memories.list(ada, {}, page)).memories;
    await memories.create(bob, { content: 'tea' });

    await agents.remove(anyWriter(), 'ada');
    await agents.create(anyWriter(), { id: 'ada' });

    expect(await memories.list(ada, {}, page)).toEqual({ memories: [], total: 0, next: null });
    expect(await memories.list(ada, { q: 'tea' }, page)).toEqual({
      memories: [],
      total: 0,
      next: null,
    });
    await expect(memories.get(ada, id)).rejects.toMatchObject({ code: 'not_found' });
    await memories.create(ada, { content: 'tea again' });
    await memories.purge();
    expect(await found(memories, 'tea')).toEqual(['tea again']);
    expect(await found(memories, 'tea', {}, bob)).toEqual(['tea']);
    const rows = await database.read.kysely.selectFrom('memories').select('id').execute();
    const owners = await database.read.kysely.selectFrom('memory_owners').select('id').execute();
    expect([rows.length, owners.length]).toEqual([2, 2]);
    await expectMemoriesConsistent(database);
  });

  test('many writers at once leave right counts, and no memory of a deleted agent', async () => {
    const { memories, agents, database, place } = await world(engine);
    const second = engine.name === 'SQLite' || place === undefined ? database : await place.open();
    const { memories: others } = await worldOn(second);
    const tags = ['a', 'b', 'c'];
    const made = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        (i % 2 === 0 ? memories : others).create(ada, { content: `m ${i}`, tag: tags[i % 3]! }),
      ),
    );
    await Promise.all(
      made.map(({ id }, i) => {
        const verbs = i % 2 === 0 ? others : memories;
        if (i % 3 === 0) return verbs.remove(ada, id);
        return verbs.update(ada, id, { tag: tags[(i + 1) % 3]!, content: `n ${i}` });
      }),
    );

    expect((await memories.list(ada, {}, page)).total).toBe(40);
    expect((await memories.list(ada, { q: 'n' }, page)).total).toBe(40);
    expect((await memories.list(ada, { q: 'm' }, page)).total).toBe(0);
    await expectMemoriesConsistent(database);

    const late = Array.from({ length: 20 }, (_, i) => others.create(ada, { content: `late ${i}` }));
    const [removed, ...written] = await Promise.allSettled([
      agents.remove(anyWriter(), 'ada'),
      ...late,
    ]);

    expect(removed.status).toBe('fulfilled');
    for (const one of written) {
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'not_found' });
    }
    await memories.purge();
    expect(await database.read.kysely.selectFrom('memories').select('id').execute()).toEqual([]);
  });
});

/** The ids that a search has to give, reckoned without a database. */
function oracle(made: readonly { id: string; content: string }[], q: string): string[] {
  const memories = made.map(({ id, content }) => ({
    id,
    ...columnsOfWords(readWords(content), 'fact'),
  }));
  return findAmong(memories, queryOf(q)).map(({ id }) => id);
}

/** Gives `ada` many memories, as a run that completes does. */
async function fill(
  memories: Memories,
  database: Database,
  count: number,
  contentOf: (i: number) => string,
  now: number,
): Promise<void> {
  const remembered = Array.from({ length: count }, (_, i) =>
    newMemory({ content: contentOf(i) }, { now }),
  );
  const run = { ...ada, userId: null, remembered, forgotten: [], share: 0, acceptedAt: Infinity };
  await database.write((tx) => memories.keep(tx, [run]));
}
