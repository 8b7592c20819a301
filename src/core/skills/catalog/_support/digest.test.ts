import { describe, expect, test, vi } from 'vitest';
import {
  cutShort,
  type FakeModel,
  fakeModel,
  textIn,
} from '../../../../../test/support/fake-model.ts';
import { contextOf, type Trial } from '../../../../../test/support/try-skill.ts';
import { digestOf } from './digest.ts';
import { pieceLengthMax } from './splitting.ts';

const paragraphs = (count: number) =>
  Array.from({ length: count }, (_, i) => `Paragraph ${i + 1}. ${'It goes on. '.repeat(80)}`).join(
    '\n\n',
  );

const digest = (text: string, model: FakeModel, trial: Trial = {}) =>
  digestOf(text, {
    ctx: contextOf({ ...trial, generate: model.generate }),
    instructions: ['Note the numbers of the paragraphs.'],
  });

test('a text of one piece is its own digest, and no model is asked', async () => {
  const model = fakeModel(() => 'never');
  const text = 'x'.repeat(pieceLengthMax);

  expect(await digest(text, model)).toEqual({ text, parts: 1 });
  expect(model.requests).toEqual([]);
});

test('of a longer text notes are taken on each piece, and joined in order', async () => {
  const model = fakeModel((request) => /Paragraph \d+/.exec(textIn(request))?.[0] ?? '');
  const text = paragraphs(100);

  const { text: notes, parts } = await digest(text, model);

  expect(parts).toBe(5);
  expect(notes).toMatch(
    /^Paragraph 1\n\nParagraph \d+\n\nParagraph \d+\n\nParagraph \d+\n\nParagraph \d+$/,
  );
  expect(model.requests.map(textIn).join('')).toBe(text);
  expect(model.requests[1]).toMatchObject({ temperature: 0 });
  expect(model.requests[1]?.system).toMatch(
    /^Note the numbers of the paragraphs\.\nAnswer with the /,
  );
  expect(model.requests[1]?.prompt).toMatch(
    /\n\nTake your notes on this text, which is part 2 of 5\.$/,
  );
});

test('at most four pieces are read at a time', async () => {
  const model = fakeModel(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return 'note';
  });

  await digest(paragraphs(200), model);

  expect(model.atOnceMax()).toBe(4);
});

test('notes that are too long are digested again, which is no progress to speak of', async () => {
  const progress = vi.fn();
  const model = fakeModel((request) =>
    request.prompt.includes('Paragraph') ? 'A long note. '.repeat(400) : 'short',
  );

  const { text, parts } = await digest(paragraphs(200), model, { progress });

  expect(parts).toBe(9);
  expect(model.requests).toHaveLength(9 + 3);
  expect(text).toBe('short\n\nshort\n\nshort');
  expect(progress).toHaveBeenCalledTimes(9);
});

test('it ends, however much the model writes', async () => {
  const model = fakeModel(() => 'No end. '.repeat(20_000));

  const { text } = await digest('x'.repeat(1_000_000), model);

  expect(text.length).toBeLessThanOrEqual(pieceLengthMax);
  expect(model.requests.length).toBeLessThan(70);
});

describe('a note that breaks off', () => {
  const breakingOff = (note: string) =>
    cutShort(
      fakeModel((_request, number) => (number === 2 ? note : 'note')),
      ({ prompt }) => prompt.includes('part 2 of 3'),
    );

  test('is used as far as it goes', async () => {
    expect((await digest(paragraphs(60), breakingOff('half a'))).text).toBe(
      'note\n\nhalf a\n\nnote',
    );
  });

  test('before its first word leaves a part unread, which ends the run', async () => {
    await expect(digest(paragraphs(60), breakingOff(' \n'))).rejects.toMatchObject({
      retryable: false,
      message:
        'The model broke off before its first note on part 2 of 3: raise MODEL_OUTPUT_TOKENS',
    });
  });
});

describe('white space', () => {
  test('is not read', async () => {
    const model = fakeModel(() => 'note');

    const { parts } = await digest(`One.${' '.repeat(5 * pieceLengthMax)}Two.`, model);

    expect(parts).toBe(2);
    expect(model.requests).toHaveLength(2);
  });

  test('is no note', async () => {
    const model = fakeModel((_request, number) => (number === 2 ? ' \n' : `note ${number}`));

    expect((await digest(paragraphs(60), model)).text).toBe('note 1\n\nnote 3');
  });
});

test('it says how far it is, and leaves something to do', async () => {
  const progress = vi.fn();

  await digest(
    paragraphs(60),
    fakeModel(() => 'note'),
    { progress },
  );

  expect(progress.mock.calls).toEqual([
    [0.25, 'read 1 of 3 parts'],
    [0.5, 'read 2 of 3 parts'],
    [0.75, 'read 3 of 3 parts'],
  ]);
});
