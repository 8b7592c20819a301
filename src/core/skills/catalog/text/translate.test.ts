import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  cutShort,
  fakeModel,
  textIn,
  tryThinking,
} from '../../../../../test/support/fake-model.ts';
import { allows } from '../../../../../test/support/try-skill.ts';
import translate, { pieceLengthMax } from './translate.ts';

/** A model that translates by capitalizing words. */
const shouting = () => fakeModel((request) => textIn(request).toUpperCase());
const to = 'Capitals';

test('a short text is translated at once, and the white space around it kept', async () => {
  const model = shouting();

  expect(await tryThinking(translate, { text: ' \n\tone two\r\n\n', to }, model)).toEqual({
    text: ' \n\tONE TWO\r\n\n',
  });
  expect(model.requests.map(textIn)).toEqual(['one two']);
});

test('the request states languages, tone and glossary', async () => {
  const model = shouting();
  const glossary = { table: 'Tafel', chair: 'Sessel "alt"' };

  await tryThinking(translate, { text: 'one', to: 'German' }, model);
  await tryThinking(
    translate,
    { text: 'one', to: 'de-AT', from: 'English', tone: 'warm', glossary },
    model,
  );

  const [plain, special] = model.requests.map(({ system }) => system);
  expect(plain).toMatch(/^You translate a text into German\.\nTranslate everything/);
  expect(plain).not.toContain('terms');
  expect(special).toMatch(/^You translate a text from English into de-AT\.\nThe tone: warm\n/);
  expect(special).toContain(
    '{"term":"chair","translation":"Sessel \\"alt\\""}\n{"term":"table","translation":"Tafel"}\n',
  );
});

describe('a longer text', () => {
  const paragraphs = Array.from({ length: 12 }, (_, i) => `${i}. ${'some words '.repeat(100)}.`);

  test('is translated in parts and joined with exactly what stood between them', async () => {
    const separators = ['\n\n', '\r\n\r\n', '\n \n\n\n', '\n\n    '];
    const text = paragraphs.map((one, i) => one + separators[i % separators.length]).join('');
    const model = shouting();
    const progress = vi.fn();

    const given = await tryThinking(translate, { text, to }, model, { progress });

    expect(given.text).toBe(text.toUpperCase());
    expect(model.requests).toHaveLength(4);
    expect(progress.mock.calls.map(([fraction]) => fraction)).toEqual([0.25, 0.5, 0.75, 1]);
    expect(progress).toHaveBeenLastCalledWith(1, 'translated 4 of 4 parts');
  });

  test('keeps its white space, however it is made', async () => {
    const parts = fc.constantFrom(
      'words ',
      'w. ',
      '\n',
      '\r\n',
      '\n\n',
      ' ',
      '\t',
      '\u00a0',
      '\u3000',
    );
    const texts = fc
      .array(parts, { minLength: 1_500, maxLength: 4_000, size: 'max' })
      .map((all) => `a${all.join('')}`);

    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const given = await tryThinking(translate, { text, to }, shouting());

        expect(given.text).toBe(text.toUpperCase());
      }),
      { numRuns: 30 },
    );
  });

  test('sends no part of white space alone', async () => {
    const text = `one${'\n'.repeat(3 * pieceLengthMax)}two`;
    const model = shouting();

    expect((await tryThinking(translate, { text, to }, model)).text).toBe(text.toUpperCase());
    expect(model.requests.map(textIn)).toEqual(['one', 'two']);
  });

  test('keeps code blocks whole', async () => {
    const code = `\`\`\`\n${'call();\n\n'.repeat(300)}\`\`\``;
    const model = shouting();

    await tryThinking(
      translate,
      { text: `${paragraphs.slice(0, 3).join('\n\n')}\n\n${code}`, to },
      model,
    );

    expect(model.requests.map(textIn)).toContainEqual(code);
  });

  test('is translated four parts at a time, by the same requests each time', async () => {
    const asked = async () => {
      const model = fakeModel(async (request) => {
        await new Promise((resolve) => setImmediate(resolve));
        return textIn(request);
      });
      await tryThinking(translate, { text: paragraphs.concat(paragraphs).join('\n\n'), to }, model);
      expect(model.atOnceMax()).toBe(4);
      return model.requests;
    };

    expect(await asked()).toEqual(await asked());
  });
});

test('tags that the model repeats are taken off', async () => {
  const model = fakeModel(() => '<text>\nEINS\n</text>\n');

  expect((await tryThinking(translate, { text: 'one\n', to }, model)).text).toBe('EINS\n');
});

test('an empty answer is no translation, and asking again would bring the same', async () => {
  const running = tryThinking(
    translate,
    { text: 'one', to },
    fakeModel(() => ' '),
  );

  await expect(running).rejects.toMatchObject({ retryable: false });
});

test('a translation that breaks off is none, and the error says what to do', async () => {
  const running = tryThinking(translate, { text: 'one two', to }, cutShort(shouting()));

  await expect(running).rejects.toMatchObject({
    retryable: false,
    message: 'The model answered with a translation that breaks off: raise MODEL_OUTPUT_TOKENS',
  });
});

test('a cancelled run ends with its reason', async () => {
  const running = tryThinking(translate, { text: 'one', to }, shouting(), {
    signal: AbortSignal.abort(new Error('cancelled')),
  });

  await expect(running).rejects.toThrow('cancelled');
});

test.each([
  ['no language', { text: 'x' }],
  ['an empty language', { text: 'x', to: ' ' }],
  ['white space', { text: ' ', to }],
  ['more than 300,000 characters', { text: 'x'.repeat(300_001), to }],
  ['a term without a translation', { text: 'x', to, glossary: { chair: '' } }],
  ['a term that is too long', { text: 'x', to, glossary: { ['x'.repeat(101)]: 'y' } }],
])('%s is refused', (_what, input) => {
  expect(allows(translate.parameters, input)).toBe(false);
});
