import { describe, expect, test } from 'vitest';
import {
  cutShort,
  fakeModel,
  textIn,
  tryThinking,
} from '../../../../../test/support/fake-model.ts';
import { allows } from '../../../../../test/support/try-skill.ts';
import { pieceLengthMax } from '../_support/splitting.ts';
import summarize from './summarize.ts';

const long = 'The river rose by two metres. '.repeat(2_000);
const writesNotes = (prompt: string) => prompt.includes('Take your notes');

test('a text of one piece is summarized at once', async () => {
  const model = fakeModel(() => '\n It rose. ');
  const text = 'x'.repeat(pieceLengthMax);

  expect(await tryThinking(summarize, { text }, model)).toEqual({ summary: 'It rose.', parts: 1 });
  expect(model.requests).toHaveLength(1);
  expect(model.requests.map(textIn)).toEqual([text]);
  expect(model.requests[0]?.tools).toBeUndefined();
});

test('the request states length, form and focus', async () => {
  const model = fakeModel(() => '- It rose.');
  const text = 'The river rose.';

  await tryThinking(summarize, { text }, model);
  await tryThinking(summarize, { text, max_words: 40, format: 'bullets', focus: 'dams' }, model);

  const [plain, special] = model.requests.map(({ system }) => system);
  expect(plain).toContain('at most 150 words, in the language of the text, as prose');
  expect(plain).not.toContain('matters most');
  expect(special).toContain('at most 40 words, in the language of the text, as a Markdown list');
  expect(special).toContain('What matters most to the reader: dams');
});

test('a longer text is read in parts, and the summary made of the notes on them', async () => {
  const model = fakeModel(({ prompt }, number) =>
    writesNotes(prompt) ? `note ${number}` : 'It rose a lot.',
  );

  const given = await tryThinking(summarize, { text: long, focus: 'dams' }, model);

  expect(given).toEqual({ summary: 'It rose a lot.', parts: 3 });
  const last = model.requests[3];
  expect(model.requests).toHaveLength(4);
  expect(last?.prompt).toBe('<text>\nnote 1\n\nnote 2\n\nnote 3\n</text>\n\nSummarize this text.');
  expect(last?.system).toContain('you have notes on all parts');
  expect(model.requests.slice(0, 3).map(textIn).join('')).toBe(long);
  expect(model.requests[0]?.system).toContain('What matters most to the reader: dams');
});

test.each([
  [10, 200],
  [300, 300],
  [2_000, 600],
])('for a summary of %i words, notes of %i words are asked for', async (words, noteWords) => {
  const model = fakeModel(() => 'note');

  await tryThinking(summarize, { text: long, max_words: words }, model);

  expect(model.requests[0]?.system).toContain(`in at most ${noteWords} words`);
});

test('the same text gives the same requests', async () => {
  const asked = async () => {
    const model = fakeModel(({ prompt }) => `note of ${prompt.length}`);
    await tryThinking(summarize, { text: long }, model);
    return model.requests;
  };

  expect(await asked()).toEqual(await asked());
});

test('an empty answer is no summary, and asking again would bring the same', async () => {
  const running = tryThinking(
    summarize,
    { text: 'Text.' },
    fakeModel(() => '<text>\n</text>'),
  );

  await expect(running).rejects.toMatchObject({ retryable: false });
});

test('a summary that breaks off is none, and the error says what to do', async () => {
  const running = tryThinking(
    summarize,
    { text: 'Text.' },
    cutShort(fakeModel(() => 'It rose by')),
  );

  await expect(running).rejects.toMatchObject({
    retryable: false,
    message:
      'The model answered with a summary that breaks off: ask for fewer words (max_words) or raise MODEL_OUTPUT_TOKENS',
  });
});

test('notes that are cut are used', async () => {
  const model = cutShort(
    fakeModel(({ prompt }) => (writesNotes(prompt) ? 'It rose by' : 'It rose.')),
    ({ prompt }) => writesNotes(prompt),
  );

  expect(await tryThinking(summarize, { text: long }, model)).toEqual({
    summary: 'It rose.',
    parts: 3,
  });
});

test('the error of a part ends the run unchanged', async () => {
  const failure = Object.assign(new Error('slow down'), { code: 'upstream_unavailable' });

  const running = tryThinking(
    summarize,
    { text: long },
    fakeModel((_request, number) => (number === 2 ? Promise.reject(failure) : 'note')),
  );

  await expect(running).rejects.toBe(failure);
});

test('a cancelled run makes no further requests', async () => {
  const run = new AbortController();
  const model = fakeModel(() => {
    run.abort(new Error('cancelled'));
    return 'note';
  });

  const running = tryThinking(summarize, { text: long }, model, { signal: run.signal });

  await expect(running).rejects.toThrow('cancelled');
  expect(model.requests.every(({ prompt }) => writesNotes(prompt))).toBe(true);
});

describe('is refused', () => {
  test.each([
    ['no text', {}],
    ['white space', { text: ' \n' }],
    ['more than a million characters', { text: 'x'.repeat(1_000_001) }],
    ['too few words', { text: 'x', max_words: 9 }],
    ['an unknown form', { text: 'x', format: 'poem' }],
  ])('%s', (_what, input) => {
    expect(allows(summarize.parameters, input)).toBe(false);
  });
});
