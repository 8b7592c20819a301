import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import hello from '../../../../examples/skills/greetings/hello.ts';
import { contextOf, trySkill } from '../../../../test/support/try-skill.ts';
import type { SkillDefinition } from '../definition.ts';
import { loadSkillModules, type SkillModule } from '../sources/modules.ts';

const examplesFolder = fileURLToPath(new URL('../../../../examples/skills', import.meta.url));
const catalogFolder = fileURLToPath(new URL('.', import.meta.url));

/** What the loader made of a module, as a skill again. */
function skillOf({ skill, run }: SkillModule): SkillDefinition {
  return { ...skill, run };
}

test('the loader takes every skill of the catalog, and takes nothing else for one', async () => {
  const loaded = await loadSkillModules([catalogFolder], { checkSchemas: true });

  expect(loaded).toHaveLength(21);
});

describe('the skills to copy', async () => {
  const loaded = await loadSkillModules([examplesFolder], { checkSchemas: true });
  const examples = loaded.flatMap((module) =>
    // The others wait for events and people: test/journeys/durable-examples.test.ts runs them.
    module.skill.examples
      .filter(({ output }) => output !== undefined)
      .map((example) => ({ key: module.skill.key, module, example })),
  );
  const exampleOf = (key: string) =>
    skillOf(loaded.find(({ skill }) => skill.key === key) as SkillModule);

  test('are loaded as they are', () => {
    expect(loaded.map(({ skill }) => skill.key)).toEqual([
      'durable/v1.0/fan-out',
      'durable/v1.0/nightly-digest',
      'durable/v1.0/order',
      'examples/v1.0/slugify',
      'greetings/v1.0/hello',
      'notes/v1.0/customer-notes',
      'signing/v1.0/sign-text',
    ]);
  });

  test.each(examples)('$key gives what its example says', async ({ module, example }) => {
    expect(await trySkill(skillOf(module), example.input)).toEqual(example.output);
  });

  test('hello says how far it is and logs, and stops when it is cancelled', async () => {
    const progress = vi.fn();
    const log = vi.fn();
    const input: Parameters<typeof hello.run>[0] = { name: 'Ada', languages: ['de', 'ja'] };

    await hello.run(input, { ...contextOf({ progress }), log });
    const cancelled = hello.run(input, contextOf({ signal: AbortSignal.abort(new Error('gone')) }));

    expect(progress).toHaveBeenLastCalledWith(1, 'greeted in ja');
    expect(log).toHaveBeenCalledWith('All greetings are ready', { languages: 2 });
    await expect(cancelled).rejects.toThrow('gone');
  });

  test('customer notes are known at the next run, and the oldest are forgotten', async () => {
    const notes = exampleOf('notes/v1.0/customer-notes');
    const context = contextOf({});
    const tell = (note?: string) => notes.run({ customer: 'Ada', note }, context);

    for (let i = 1; i <= 25; i += 1) await tell(`likes ${i}`);
    await tell('likes 25');

    const known = Array.from({ length: 20 }, (_, i) => `Ada: likes ${25 - i}`);
    expect(await tell()).toEqual({ notes: known });
  });

  test('sign-text signs with the key that is set', async () => {
    const sign = exampleOf('signing/v1.0/sign-text');
    const config = { SIGNING_KEY: 'a-key-of-16-chars', SIGNING_KEY_NAME: 'second' };

    expect(await sign.run({ text: 'hello' }, { ...contextOf({}), config })).toEqual({
      signature: expect.stringMatching(/^[0-9a-f]{64}$/),
      key_name: 'second',
    });
  });

  test.each([
    ['Hello   World', 'hello-world'],
    ['Straße & Zürich: 5 €', 'stra-e-zurich-5'],
    ['x'.repeat(300), 'x'.repeat(60)],
  ])('slugify turns %j into %j', async (text, slug) => {
    const slugify = exampleOf('examples/v1.0/slugify');

    expect(await trySkill(slugify, { text })).toEqual({ slug });
  });

  test('slugify says when there is nothing to make a slug of, and not to try again', async () => {
    const slugify = exampleOf('examples/v1.0/slugify');

    await expect(trySkill(slugify, { text: '東京' })).rejects.toMatchObject({ retryable: false });
  });
});
