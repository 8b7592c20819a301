/** Vectors of memories on every database where a provider or a process does what it should not. */
import { describe, expect, test } from 'vitest';
import { engines } from '../support/databases.ts';
import { expectMemoriesConsistent } from '../support/memories.ts';
import { other, own, vectorsWorld } from '../support/vectors-world.ts';

const minuteMs = 60_000;

describe.each(await engines())('on $name', (engine) => {
  test('a new memory is near where it has the number of a deleted one', async () => {
    const { given, embed, search, memories } = await vectorsWorld(engine);
    const [first] = await given(['Ada has a puppy', null], ['The clinic is near', null]);
    await embed();
    expect((await search('dog')).total).toBe(1);
    await memories.update(own, first?.id ?? '', { content: 'Ada has an umbrella' });
    await embed();
    expect((await search('weather')).total).toBe(1);
    await memories.remove(own, first?.id ?? '');
    await given(['Bo is ill', null]);
    await embed();

    expect((await search('unwell')).contents).toEqual(['Bo is ill']);
  });

  test.each([
    ['answers 500 to', { status: 500 }],
    ['answers nonsense to', 'malformed'],
  ] as const)('a text that a provider %s holds up no other', async (_, trouble) => {
    const { clock, given, embed, awaiting, vectors, search, provider } = await vectorsWorld(engine);
    provider.script(({ input }) =>
      input.some((text) => text.includes('poison')) ? trouble : null,
    );
    await given(['Ada has bought an automobile', null], ['A hound barks', null]);
    await given(['poison', null]);

    for (let i = 0; i < 12; i++) {
      await embed();
      clock.advance(10 * minuteMs);
    }

    expect((await search('vehicle')).total).toBe(1);
    expect(await vectors()).toBe(2);
    expect(await awaiting()).toBe(0);
  });

  test('no text is left to words where a provider is out of order', async () => {
    const { clock, given, embed, awaiting, vectors, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null], ['A hound barks', null]);
    provider.script(() => ({ status: 500 }));
    for (let i = 0; i < 12; i++) {
      await embed();
      clock.advance(10 * minuteMs);
    }
    expect(await awaiting()).toBe(2);
    provider.script(() => null);

    await embed();

    expect(await awaiting()).toBe(0);
    expect(await vectors()).toBe(2);
  });

  test('many users that wait with one model do not hold up those behind them', async () => {
    const { budget, memories, given, embed, awaiting, processWith, use, clock } =
      await vectorsWorld(engine);
    await given(['Tea is served', null]);
    await embed();
    const users = Array.from({ length: 1_010 }, (_, i): [string, string] => ['tea', `user-${i}`]);
    await given(...users);
    await budget(1);
    await memories.create(other, { content: 'A hound barks' }, null);
    clock.advance(1);
    use(processWith('large'));
    const waiting = await awaiting();

    for (let i = 0; i < 5; i++) await embed();

    expect(await awaiting()).toBe(waiting - 1);
  });

  test('vectors that are refused for their dimensions cost one text a try', async () => {
    const { memories, clock, given, embed, awaiting, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    await embed();
    for (let i = 0; i < 10; i++) {
      await memories.create(other, { content: `hound number ${i}` }, null);
    }
    provider.dimensions(64);
    await embed();
    const before = provider.requests.length;

    for (let i = 0; i < 3; i++) {
      clock.advance(11 * minuteMs);
      await embed();
    }

    const sent = provider.requests.slice(before).map(({ input }) => input.length);
    expect(sent).toEqual([1, 1, 1]);
    provider.dimensions(32);
    clock.advance(11 * minuteMs);
    await embed();
    expect(await awaiting()).toBe(0);
  });

  test('what the provider counted of an answer without sense is charged', async () => {
    const { given, embed, usage, provider } = await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null]);
    provider.script(() => 'too-few');

    await embed();

    expect((await usage())[0]).toMatchObject({ prompt_tokens: 5, estimated_tokens: 0 });
  });

  test('a model that changes and changes back keeps what it has made', async () => {
    const { given, embed, vectors, search, provider, processWith, use, clock, database } =
      await vectorsWorld(engine);
    await given(['Ada has bought an automobile', null], ['A hound barks', null]);
    await embed();
    clock.advance(1);
    const changed = processWith('large');
    provider.script(() => ({ status: 503 }));
    use(changed);
    await embed();
    provider.script(() => null);
    clock.advance(1);
    use(processWith('small'));
    const before = provider.requests.length;

    await embed();

    expect(provider.requests.length).toBe(before);
    expect(await vectors()).toBe(2);
    expect((await search('vehicle')).total).toBe(1);
    await expectMemoriesConsistent(database);
  });

  test('two processes at once make each vector once', async () => {
    const { given, processWith, awaiting, vectors, provider, database } =
      await vectorsWorld(engine);
    const texts = Array.from({ length: 300 }, (_, i): [string, null] => [`hound ${i}`, null]);
    await given(...texts);
    const processes = [processWith('small'), processWith('small')];

    while ((await awaiting()) > 0)
      await Promise.all(processes.map((one) => one.vectors.embedSome()));

    expect(await vectors()).toBe(300);
    const sent = provider.requests.flatMap(({ input }) => input);
    expect(sent.length).toBe(new Set(sent).size);
    await expectMemoriesConsistent(database);
  });
});
