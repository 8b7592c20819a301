import { describe, expect, test } from 'vitest';
import { fakeModel, textIn, tryThinking } from '../../../../../test/support/fake-model.ts';
import { allows } from '../../../../../test/support/try-skill.ts';
import classify from './classify.ts';

const labels = [{ label: 'refund', description: 'Wants "money" back.' }, 'delivery', 'other'];
const text = 'The lamp is broken.';
const schemaOf = async (more: object = {}) => {
  const model = fakeModel(() => ({ reason: '', label: 'other', further_labels: [] }));
  await tryThinking(classify, { text, labels, ...more }, model);
  return model.requests[0]?.schema ?? {};
};

test('the answer is the label that fits best, and why', async () => {
  const model = fakeModel(() => ({ reason: 'It is broken.', label: 'refund' }));

  const given = await tryThinking(classify, { text, labels, instructions: 'Be kind.' }, model);

  expect(given).toEqual({ label: 'refund', reason: 'It is broken.' });
  const [request] = model.requests;
  expect(model.requests.map(textIn)).toEqual([text]);
  expect(request?.temperature).toBe(0);
  expect(request?.system).toContain('{"label":"refund","description":"Wants \\"money\\" back."}');
  expect(request?.system).toContain('{"label":"delivery"}\n{"label":"other"}\n');
  expect(request?.system).toContain('How to decide: Be kind.');
});

test('where several may fit, all that do are given once, the best first', async () => {
  const model = fakeModel(() => ({
    reason: 'Both.',
    label: 'delivery',
    further_labels: ['refund', 'delivery', 'refund'],
  }));

  expect(await tryThinking(classify, { text, labels, multiple: true }, model)).toEqual({
    label: 'delivery',
    labels: ['delivery', 'refund'],
    reason: 'Both.',
  });
});

describe('no other label is possible', () => {
  test('by the schema that the model has to answer by', async () => {
    const one = await schemaOf();
    const several = await schemaOf({ multiple: true });

    expect(allows(one, { reason: 'r', label: 'refund' })).toBe(true);
    expect(allows(one, { reason: 'r', label: 'Refund' })).toBe(false);
    expect(allows(one, { reason: 'r', label: 'refund', further_labels: [] })).toBe(false);
    expect(allows(several, { reason: 'r', label: 'other', further_labels: ['refund'] })).toBe(true);
    expect(allows(several, { reason: 'r', label: 'other', further_labels: ['spam'] })).toBe(false);
    expect(allows(several, { reason: 'r', label: 'other' })).toBe(false);
  });

  test.each([
    [{ reason: 'r', label: 'spam' }],
    [{ reason: 'r', label: 'other', further_labels: ['refund', 'spam'] }],
  ])('also where the schema was not kept: %j', async (choice) => {
    const running = tryThinking(
      classify,
      { text, labels },
      fakeModel(() => choice),
    );

    await expect(running).rejects.toMatchObject({
      message: 'The model chose "spam", which is none of the labels',
      retryable: false,
    });
  });

  test('the reason comes before the label, which it leads to', async () => {
    expect(Object.keys((await schemaOf())['properties'] as object)).toEqual(['reason', 'label']);
  });
});

test('a longer text is classified by notes on its parts', async () => {
  const long = 'It never came. '.repeat(2_000);
  const model = fakeModel((request) =>
    request.schema === undefined ? 'Speaks for delivery.' : { reason: 'r', label: 'delivery' },
  );

  const given = await tryThinking(classify, { text: long, labels }, model);
  await tryThinking(classify, { text: long, labels }, model);

  expect(given.label).toBe('delivery');
  expect(model.requests).toHaveLength(6);
  expect(model.requests.slice(0, 2).map(textIn).join('')).toBe(long);
  expect(model.requests[0]?.system).toContain('{"label":"delivery"}');
  expect(model.requests[2]?.prompt).toContain('Speaks for delivery.\n\nSpeaks for delivery.');
  expect(model.requests[2]?.system).toContain('you have notes on all parts');
  expect(model.requests.slice(0, 3)).toEqual(model.requests.slice(3));
});

test('a label that comes twice is refused before the model is asked', async () => {
  const model = fakeModel(() => 'never');
  const twice = ['spam', 'other', { label: 'spam' }];

  await expect(tryThinking(classify, { text, labels: twice }, model)).rejects.toMatchObject({
    message: 'The label "spam" comes twice; labels have to be different',
    retryable: false,
  });
  expect(model.requests).toEqual([]);
});

test.each([
  ['one label', { labels: ['a'] }],
  ['more than 100 labels', { labels: Array.from({ length: 101 }, (_, i) => `${i}`) }],
  ['an empty label', { labels: ['a', ' '] }],
  ['a label that is a number', { labels: ['a', 1] }],
  ['a label with unknown fields', { labels: ['a', { label: 'b', weight: 1 }] }],
])('%s is refused', (_what, input) => {
  expect(allows(classify.parameters, { text, ...input })).toBe(false);
});
