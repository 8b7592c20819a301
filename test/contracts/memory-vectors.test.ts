/** Vectors of memories on every database: which are made, when they go, and what a search by meaning finds. */
import { describe, expect, test } from 'vitest';
import { engines } from '../support/databases.ts';
import { expectMemoriesConsistent } from '../support/memories.ts';
import { tokensOf } from '../support/scripted-embedder.ts';
import { other, own, type VectorsWorld, vectorsWorld } from '../support/vectors-world.ts';
import { anyWriter } from '../support/writers.ts';

const recalled = async (memory: ReturnType<VectorsWorld['runFor']>, query: string, more = {}) => {
  const found = (await memory.ask('recall', { query, ...more })) as { content: string }[];
  return found.map(({ content }) => content);
};

describe.each(await engines())('on $name', (engine) => {
  test('a question finds what means the same in no common word, once it has a vector', async () => {
    const { given, search, embed, awaiting, database } = await vectorsWorld(engine);
    await given(
      ['Ada has bought an automobile', null],
      ['The hound barks at night', null],
      ['Bo trades in spoons', null],
    );
    expect(await search('Which vehicle?')).toEqual({ contents: [], total: 0 });
    expect(await awaiting()).toBe(3);

    await embed();

    expect(await awaiting()).toBe(0);
    expect(await search('Which vehicle?')).toEqual({
      contents: ['Ada has bought an automobile'],
      total: 1,
    });
    await expectMemoriesConsistent(database);
  });

  test('words and meaning are ranked together, and each match is counted once', async () => {
    const { given, search, embed } = await vectorsWorld(engine);
    await given(
      ['The vehicle tax is due', null],
      ['Her automobile is red', null],
      ['A red spoon', null],
    );
    await embed();

    const { contents, total } = await search('Which vehicle is red?');

    expect(total).toBe(3);
    expect(contents.slice(0, 2).sort()).toEqual([
      'Her automobile is red',
      'The vehicle tax is due',
    ]);
    const pages = await Promise.all(
      [0, 1, 2].map((offset) => search('Which vehicle is red?', {}, { limit: 1, offset })),
    );
    expect(pages.map(({ contents: [one] }) => one)).toEqual(contents);
  });

  test('a phrase in quotes has to stand there', async () => {
    const { given, search, embed } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();

    expect((await search('"vehicle"')).total).toBe(0);
  });

  test('a run sees what is near of its agent and its user, never of another user', async () => {
    const { given, runFor, embed } = await vectorsWorld(engine);
    await given(
      ['Staff income is 5,000', null],
      ['Alice earns 7,000', 'alice'],
      ['Bob earns 6,000', 'bob'],
    );
    await embed();

    const seen = await recalled(runFor('bob'), 'the salary?');

    expect(seen.sort()).toEqual(['Bob earns 6,000', 'Staff income is 5,000']);
    expect(await recalled(runFor('bob'), 'the salary?', { whose: 'user' })).toEqual([
      'Bob earns 6,000',
    ]);
    expect(await recalled(runFor(null), 'the salary?')).toEqual(['Staff income is 5,000']);
  });

  test('a client finds by meaning all users’ memories, and of one user or tag those alone', async () => {
    const { given, search, embed } = await vectorsWorld(engine);
    await given(
      ['Alice earns 7,000', 'alice', 'pay'],
      ['Bob earns 6,000', 'bob'],
      ['Income is taxed', null],
    );
    await embed();

    expect((await search('salary')).total).toBe(3);
    expect((await search('salary', { userId: 'alice' })).contents).toEqual(['Alice earns 7,000']);
    expect((await search('salary', { userId: null })).contents).toEqual(['Income is taxed']);
    expect((await search('salary', { tag: 'pay' })).contents).toEqual(['Alice earns 7,000']);
  });

  test('what a run remembers and forgets counts at once, and expired memories are not near', async () => {
    const { clock, memories, given, runFor, embed } = await vectorsWorld(engine);
    const [first] = await given(['Ada has a puppy', null]);
    await memories.create(own, { content: 'The hound is ill', expires_at: clock.now() + 1_000 });
    await embed();
    const run = runFor(null);
    await run.ask('forget', first?.id);
    await run.ask('remember', { content: 'A dog needs walks' });

    expect(await recalled(run, 'any dog?')).toEqual(['A dog needs walks', 'The hound is ill']);
    clock.advance(2_000);
    expect(await recalled(run, 'any dog?')).toEqual(['A dog needs walks']);
  });

  test('a memory of another text awaits a vector, and a deleted one leaves none', async () => {
    const { memories, given, search, embed, awaiting, vectors } = await vectorsWorld(engine);
    const [first, second] = await given(['Ada has a puppy', null], ['The clinic is near', null]);
    await embed();
    await memories.update(own, first?.id ?? '', { tag: 'pet' });
    expect(await awaiting()).toBe(0);

    await memories.update(own, first?.id ?? '', { content: 'Ada has an umbrella' });

    expect(await awaiting()).toBe(1);
    expect(await vectors()).toBe(1);
    expect((await search('dog')).total).toBe(0);
    await embed();
    expect((await search('weather')).contents).toEqual(['Ada has an umbrella']);
    expect((await search('dog')).total).toBe(0);
    await memories.remove(own, second?.id ?? '');
    expect(await vectors()).toBe(1);
  });

  test('the erasure of a user and the deletion of an agent leave no vector', async () => {
    const { agents, memories, given, embed, vectors } = await vectorsWorld(engine);
    await given(['Alice earns 7,000', 'alice'], ['The clinic is near', null]);
    await embed();
    expect(await vectors()).toBe(2);

    await memories.eraseUser('default', 'alice', () => false);
    expect(await vectors()).toBe(1);
    await agents.remove(anyWriter(), 'support');
    for (let i = 0; i < 3; i++) await memories.purge();
    expect(await vectors()).toBe(0);
  });

  test('another model makes all vectors anew, and words find what has none yet', async () => {
    const { provider, given, search, embed, awaiting, processWith, use, vectors } =
      await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    provider.dimensions(48);
    use(processWith('large'));

    expect((await search('vehicle')).total).toBe(0);
    expect((await search('automobile')).total).toBe(1);
    expect(await awaiting()).toBe(1);
    await embed();

    expect((await search('vehicle')).total).toBe(1);
    expect(await vectors()).toBe(1);
    expect(provider.requests.at(-1)?.model).toBe('large');
  });

  test('a process with an earlier model makes none while a later one has another', async () => {
    const { given, processWith, provider, clock } = await vectorsWorld(engine);
    const earlier = processWith('small');
    await earlier.vectors.embedSome();
    clock.advance(1);
    const later = processWith('large');
    await later.vectors.embedSome();
    await given(['Ada has bought an automobile', null]);

    expect(await earlier.vectors.embedSome()).toBe(0);
    expect(await later.vectors.embedSome()).toBe(1);
    expect(await earlier.vectors.embedSome()).toBe(0);
    expect(provider.requests.map(({ model }) => model)).toEqual(['large']);
  });

  test('a model that changes its dimensions counts as another one', async () => {
    const { given, provider, embed, search, awaiting, vectors, clock } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    provider.dimensions(64);
    await given(['A hound barks', null]);
    await embed();
    expect(await awaiting()).toBe(1);

    clock.advance(60 * 60_000);
    await embed();

    expect(await awaiting()).toBe(0);
    expect(await vectors()).toBe(2);
    expect((await search('vehicle')).total).toBe(1);
  });

  test('one of two processes makes a vector, and the other one goes on when it is gone', async () => {
    const { given, provider, clock, processWith, embed } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    await given(['A hound barks', null]);
    const [first, second] = [processWith('small'), processWith('small')];
    clock.advance(120_000);
    provider.script(() => 'hang');
    const hanging = first.vectors.embedSome();
    await expect.poll(() => provider.requests.length).toBe(2);

    expect(await second.vectors.embedSome()).toBe(0);
    expect(provider.requests.length).toBe(2);
    provider.script(() => null);
    clock.advance(120_000);
    expect(await second.vectors.embedSome()).toBe(1);
    first.embedder.stop();
    expect(await hanging).toBe(0);
  });

  test('tokens are counted for the agent and for the model, with nothing held back', async () => {
    const { given, search, embed, used } = await vectorsWorld(engine);
    const texts = ['Ada has bought an automobile', 'The hound barks'];
    await given(...texts.map((text): [string, null] => [text, null]));
    await embed();
    await search('Which vehicle?');
    await search('Which vehicle?', {}, { limit: 1, offset: 1 });

    const tokens = [...texts, 'Which vehicle?'].reduce((sum, text) => sum + tokensOf(text), 0);
    const expected = { prompt_tokens: tokens, calls: 2, unpriced_calls: 2, reserved_tokens: 0 };
    expect(await used('agent')).toEqual([{ owner_id: 'support', ...expected }]);
    expect(await used('embedding_model')).toEqual([{ owner_id: 'local/small', ...expected }]);
  });

  test('a budget that is used up lets vectors wait, and a search goes by words', async () => {
    const { budget, clock, given, search, embed, awaiting, events, provider } =
      await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    await budget(5);
    await given(['A hound barks', null]);
    const before = provider.requests.length;

    await embed();

    expect(await search('Which automobile')).toMatchObject({ total: 1 });
    expect((await search('vehicle')).total).toBe(0);
    expect(await awaiting()).toBe(1);
    expect(provider.requests.length).toBe(before);
    expect(events).toContain('memory budget');
    expect(events).toContain('question budget');
    await budget(1_000);
    clock.advance(120_000);
    await embed();
    expect(await awaiting()).toBe(0);
  });

  test('a provider that is down is asked again after its pause, and searches go by words meanwhile', async () => {
    const { clock, given, search, embed, awaiting, provider, processWith } =
      await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    await given(['A hound barks', null]);
    provider.script(() => ({ status: 429, headers: { 'retry-after': '30' } }));
    await embed();
    const failed = provider.requests.length;
    await embed();
    // Searches keep to the pause as well, also those of another process.
    expect(await search('automobile')).toMatchObject({ total: 1 });
    expect((await search('hound')).total).toBe(1);
    expect(await processWith('small').embedder.question(own, 'dog')).toBeNull();
    expect(provider.requests.length).toBe(failed);

    provider.script(() => null);
    clock.advance(29_000);
    await embed();
    expect(await awaiting()).toBe(1);
    clock.advance(2_000);
    await embed();
    expect(await awaiting()).toBe(0);
    expect((await search('vehicle')).total).toBe(1);
  });

  test('a text that the model does not take is left to words, and holds up no other', async () => {
    const { given, embed, awaiting, vectors, search, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    provider.script(({ input }) =>
      input.some((text) => text.includes('unreadable')) ? { status: 400 } : null,
    );
    await given(['A hound barks', null], ['unreadable', null]);

    await embed();

    expect(await awaiting()).toBe(0);
    expect(await vectors()).toBe(2);
    expect((await search('dog')).total).toBe(1);
  });

  test('an answer that makes no sense makes no vector', async () => {
    const { given, embed, awaiting, vectors, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    provider.script(() => 'malformed');

    await embed();

    expect(await awaiting()).toBe(1);
    expect(await vectors()).toBe(0);
  });

  test('what is made of a batch is kept when a later request fails, and the rest goes on', async () => {
    const { clock, given, embed, awaiting, provider } = await vectorsWorld(engine);
    const texts = Array.from({ length: 40 }, (_, i) => `hound number ${i}`);
    await given(...[...texts, 'unreadable'].map((text): [string, null] => [text, null]));
    let taken = 0;
    provider.script(({ input }) => {
      if (input.some((text) => text.includes('unreadable'))) return { status: 400 };
      taken += 1;
      return taken > 2 ? { status: 429 } : null;
    });

    await embed();
    expect(await awaiting()).toBeLessThan(41);
    provider.script(({ input }) =>
      input.some((text) => text.includes('unreadable')) ? { status: 400 } : null,
    );
    clock.advance(60_000);
    await embed();

    expect(await awaiting()).toBe(0);
    const sent = provider.requests.flatMap(({ input }) => input);
    expect(sent.filter((text) => text === texts[0]).length).toBeLessThan(10);
    expect(provider.requests.length).toBeLessThan(25);
  });

  test('a provider that refuses all texts lets them wait, also one that worked before', async () => {
    const { clock, given, embed, awaiting, vectors, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    provider.script(() => ({ status: 400 }));
    await given(['A hound barks', null], ['Rain falls', null]);
    await embed();
    expect(await awaiting()).toBe(2);

    provider.script(() => null);
    clock.advance(60_000);
    await embed();
    expect(await awaiting()).toBe(0);
    expect(await vectors()).toBe(3);
  });

  test('a budget too small for all texts is used for some', async () => {
    const { budget, given, embed, awaiting } = await vectorsWorld(engine);
    await budget(100);
    const texts = Array.from({ length: 8 }, (_, i) => `the hound with the number ${i}`);
    await given(...texts.map((text): [string, null] => [text, null]));

    await embed();

    expect(await awaiting()).toBeLessThan(8);
  });

  test('organizations whose providers differ in dimensions do not undo each other’s vectors', async () => {
    const { memories, clock, given, embed, awaiting, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    clock.advance(2 * 60 * 60_000);
    await memories.create(other, { content: 'A hound barks' }, null);
    provider.dimensions(64);
    const before = provider.requests.length;

    for (let i = 0; i < 5; i++) {
      await embed();
      clock.advance(1_000);
    }

    expect(await awaiting()).toBe(1);
    expect(provider.requests.length).toBe(before + 1);
  });

  test('many users of an agent whose budget is used up do not hold up another agent', async () => {
    const { budget, memories, given, embed, awaiting } = await vectorsWorld(engine);
    const users = Array.from({ length: 1_010 }, (_, i): [string, string] => ['tea', `user-${i}`]);
    await given(...users);
    await budget(1);
    await memories.create(other, { content: 'A hound barks' }, null);
    const waiting = await awaiting();

    await embed();
    await embed();

    expect(await awaiting()).toBe(waiting - 1);
  });
});
