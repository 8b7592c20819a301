import { describe, expect, test, vi } from 'vitest';
import { fakeModel, textIn, tryThinking } from '../../../../../test/support/fake-model.ts';
import { allows } from '../../../../../test/support/try-skill.ts';
import extract from './extract.ts';

const names = { type: 'array', items: { type: 'string' } };
const people = {
  type: 'object',
  required: ['names'],
  additionalProperties: false,
  properties: { names },
};
const contract = { type: 'object', properties: { party: { type: 'string' }, names } };
/** Three pieces, of which each begins with its name. */
const long = ['Ada', 'Bo', 'Cleo']
  .map((name) => `${name} was there. ${'Nothing else happened. '.repeat(900)}`)
  .join('\n\n');
const nameIn = (text: string) => /^\w+/.exec(text)?.[0] ?? '';

test('a text of one piece is asked for the data at once, by the schema as it is', async () => {
  const model = fakeModel(() => ({ party: 'Ada' }));
  const input = { text: 'Ada signs.', schema: contract, instructions: 'First names only.' };

  expect(await tryThinking(extract, input, model)).toEqual({ data: { party: 'Ada' } });
  expect(model.requests).toHaveLength(1);
  expect(model.requests[0]).toMatchObject({ schema: contract, temperature: 0 });
  expect(model.requests.map(textIn)).toEqual(['Ada signs.']);
  expect(model.requests[0]?.system).toContain(
    'What to take and what to leave out: First names only.',
  );
  expect(model.requests[0]?.system).not.toContain('what was found in its parts');
});

describe('of a longer text', () => {
  test('lists are taken of each part and joined, each entry once', async () => {
    const model = fakeModel((request) => ({ names: [nameIn(textIn(request)), 'Everybody'] }));
    const progress = vi.fn();

    const given = await tryThinking(extract, { text: long, schema: people }, model, { progress });

    expect(given).toEqual({ data: { names: ['Ada', 'Everybody', 'Bo', 'Cleo'] } });
    expect(model.requests.map(textIn).join('')).toBe(long);
    expect(model.requests.every(({ schema }) => schema === people)).toBe(true);
    expect(progress).toHaveBeenLastCalledWith(1, 'read 3 of 3 parts');
  });

  test('anything else is made of what was found in each part', async () => {
    const model = fakeModel((request) =>
      request.schema === undefined ? `names: ${nameIn(textIn(request))}` : { party: 'Ada' },
    );
    const input = { text: long, schema: contract, instructions: 'First names only.' };

    expect(await tryThinking(extract, input, model)).toEqual({ data: { party: 'Ada' } });
    const [first, , , last] = model.requests;
    expect(model.requests).toHaveLength(4);
    expect(first?.system).toContain(`The schema: ${JSON.stringify(contract)}`);
    expect(first?.system).toContain('First names only.');
    expect(last).toMatchObject({ schema: contract, temperature: 0 });
    expect(last?.prompt).toContain('<text>\nnames: Ada\n\nnames: Bo\n\nnames: Cleo\n</text>');
    expect(last?.system).toContain('what was found in its parts');
  });

  test('nothing is looked for by a schema that cannot be used', async () => {
    const model = fakeModel(() => 'never');
    const input = { text: long, schema: { type: 'object', properties: { a: { type: 'strung' } } } };

    await expect(tryThinking(extract, input, model)).rejects.toMatchObject({
      message: expect.stringContaining('The schema cannot be used'),
      retryable: false,
    });
    expect(model.requests).toEqual([]);
  });

  test.each([
    ['lists', people],
    ['anything else', contract],
  ])('the same text is the same requests, for %s', async (_what, schema) => {
    const asked = async () => {
      const model = fakeModel((request) =>
        request.schema === undefined ? 'found' : { names: [] },
      );
      await tryThinking(extract, { text: long, schema }, model);
      return model.requests;
    };

    expect(await asked()).toEqual(await asked());
  });
});

test('what goes wrong with the model ends the run as it is', async () => {
  const refusal = new Error('The schema has a lookahead');

  const running = tryThinking(
    extract,
    { text: 'Text.', schema: people },
    fakeModel(() => Promise.reject(refusal)),
  );

  await expect(running).rejects.toBe(refusal);
});

test.each([
  ['no schema', { text: 'x' }],
  ['a schema that is no object', { text: 'x', schema: true }],
  ['white space', { text: ' ', schema: {} }],
])('%s is refused', (_what, input) => {
  expect(allows(extract.parameters, input)).toBe(false);
});
