import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../../../../test/support/cpu-time.ts';
import { refusedSchemas } from '../../../../test/support/hostile-schemas.ts';
import { patient } from '../../../../test/support/wait-for.ts';
import { jsonTextFault } from '../../../kernel/text.ts';
import type { GenerateRequest } from '../../skills/definition.ts';
import { generationIdOf, readGenerateRequest } from '../../thinking/generate-request.ts';
import { createGenerate } from './generate.ts';

const usage = {
  ...{ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  ...{ cost_usd: null, cost_is_partial: true },
};

/** `generate` of a run whose parent answers with one text after the other, the last one again. */
function answering(...texts: readonly string[]) {
  const asked: ReturnType<typeof readGenerateRequest>[] = [];
  const counter = { names: undefined };
  const generate = createGenerate(ask, () => counter);
  return { asked, generate };

  async function ask(payload: unknown) {
    // As run-context hands it on.
    const json = JSON.stringify(payload);
    expect(jsonTextFault(json)).toBeNull();
    asked.push(readGenerateRequest(JSON.parse(json)));
    const text = texts[Math.min(asked.length, texts.length) - 1] ?? '';
    return { text, isCut: false, turns: asked.length, usage };
  }
}

const schema = {
  type: 'object',
  properties: { a: { type: 'integer' } },
  required: ['a'],
  additionalProperties: false,
};
const wanted = { prompt: 'hello', schema };

describe('generate', () => {
  test.each(Object.entries(refusedSchemas))(
    'with a schema that would take too long fails before the model is called: %s',
    async (_name, hostile) => {
      const { generate, asked } = answering('"a"');
      await expect(generate({ prompt: 'hello', schema: hostile })).rejects.toThrow(/^the schema /);
      expect(asked).toEqual([]);
    },
  );

  test('fails when its answer takes too many steps, and asks for no correction', async () => {
    const fork = { allOf: [{ items: { $ref: '#' } }, { items: { $ref: '#' } }] };
    const { generate, asked } = answering('['.repeat(40) + ']'.repeat(40));
    await expect(generate({ prompt: 'hello', schema: fork })).rejects.toThrow(
      /^the schema takes too many steps to check this value: simplify the schema/,
    );
    expect(asked).toHaveLength(1);
  });

  test('without a schema returns the unchanged answer', async () => {
    const { generate } = answering('```json\n{}\n```');

    const result = await generate({ prompt: 'hello' });

    expect(result).toEqual({ text: '```json\n{}\n```', isCut: false, turns: 1, usage });
  });

  test.each([
    '{"a":1}',
    ' \n{ "a": 1 }\n ',
    '```json\n{"a":1}\n```',
    '```\n{"a":1}\n```',
    '```JSON  \n{"a":1}```',
    '\n\n```json\r\n{"a":1}\r\n```\n\n',
  ])('with a schema gives what the answer says: %j', async (text) => {
    const { generate, asked } = answering(text);

    const result = await generate(wanted);

    expect(result).toEqual({ text, isCut: false, output: { a: 1 }, turns: 1, usage });
    expect(asked).toMatchObject([{ nth: 1, corrections: [] }]);
  });

  test.each([
    ['plain words', 'it is not JSON: '],
    ['', 'it is not JSON: '],
    ['```', 'it is not JSON: '],
    ['```json\n```', 'it is not JSON: '],
    ['```json {"a":1} ```', 'it is not JSON: '],
    ['```json\n{"a":1}', 'it is not JSON: '],
    ['[]', 'it breaks the schema: body must be object'],
    ['{"a":"1"}', 'it breaks the schema: a must be integer'],
    ['{}', 'it breaks the schema: a is required'],
    ['{"a":1,"b":2}', 'it breaks the schema: b is not allowed'],
    ['{"a":1e999}', 'it contains a number that is too large'],
    ['{"a":"\\u0000"}', 'it contains a NUL character or a lone surrogate'],
    [`{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, 'it is nested deeper than 64 levels'],
  ])('tells the model what is wrong with %.20j', async (text, fault) => {
    const { generate, asked } = answering(text, '{"a":1}');

    expect(await generate(wanted)).toMatchObject({ output: { a: 1 } });

    expect(asked.map(({ corrections }) => corrections)).toEqual([
      [],
      [
        expect.stringMatching(
          new RegExp(
            `^Your answer cannot be used: ${RegExp.escape(fault)}.*\\. Answer again with JSON that fits the schema, and with nothing else\\.$`,
            's',
          ),
        ),
      ],
    ]);
  });

  test('sends the model all earlier faults, and fails after four invalid answers', async () => {
    const { generate, asked } = answering('x', '[]', '{}', '{"a":"b"}');

    await expect(generate(wanted)).rejects.toMatchObject({
      message: "the model's answer was wrong 4 times: it breaks the schema: a must be integer",
      retryable: false,
    });

    expect(asked.map(({ corrections }) => corrections.length)).toEqual([0, 1, 2, 3]);
    for (const { nth } of asked) expect(nth).toBe(1);
    const [, , third, fourth] = asked;
    expect(fourth?.corrections.slice(0, 2)).toEqual(third?.corrections);
  });

  test('reports a fault for every kind of invalid answer', async () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('😀', '\ud83d', '{"😀', `{"a":1,"${'😀'.repeat(3_000)}":1}`, '\0'),
      fc.string({ unit: 'grapheme' }).map((key) => JSON.stringify({ a: 1, [key]: key })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { minLength: 1, maxLength: 4 }), async (texts) => {
        const { generate, asked } = answering(...texts, '{"a":1}');

        await generate(wanted).catch((error: Error) =>
          expect(error).toMatchObject({ message: expect.stringMatching(/^the model's answer/) }),
        );

        for (const { corrections } of asked) {
          for (const one of corrections) expect(one.length).toBeLessThan(2_200);
        }
      }),
    );
  });

  test('takes time linear in the length of the answer', async () => {
    const { generate } = answering(`\`\`\`json\n${'\n'.repeat(1_000_000)}`, '{"a":1}');

    expect(await cpuMsOf(() => generate(wanted))).toBeLessThan(patient(2_000));
  });

  test.each<[string, unknown]>([
    ['the schema must be an object', null],
    ['the schema must be an object', 'string'],
    ['the schema must be an object', true],
    ['the schema must be an object', []],
    ['the schema has the keyword type, which must be the name of a type.*', { type: 'nothing' }],
    ['the schema refers to "#/missing", which it does not define', { $ref: '#/missing' }],
    ['the schema is larger than 64 KiB of JSON', { title: 'x'.repeat(70_000) }],
  ])('with a wrong schema costs nothing: %s', async (message, wrong) => {
    const { generate, asked } = answering('{}');

    await expect(generate({ prompt: 'hello', schema: wrong as never })).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`^${message}$`)),
      retryable: false,
    });

    expect(asked).toEqual([]);
  });

  test("passes on the parent's refusal", async () => {
    const refused = Object.assign(new Error('no'), { code: 'budget_exceeded', retryable: false });
    const generate = createGenerate(
      () => Promise.reject(refused),
      () => ({ names: undefined }),
    );

    await expect(generate(wanted)).rejects.toBe(refused);
  });
});

describe('the same request again', () => {
  const nthsOf = async (...requests: readonly object[]) => {
    const { generate, asked } = answering('{}');
    // At once: it is counted when it is asked for.
    await Promise.all(requests.map((request) => generate(request as GenerateRequest)));
    return asked.map(({ nth }) => nth);
  };

  test('is counted separately from other requests', async () => {
    const one = { prompt: 'a' };
    const other = { prompt: 'b' };

    expect(await nthsOf(one, one, other, one, other)).toEqual([1, 2, 1, 3, 2]);
  });

  test('is equal for any order and form of its fields', async () => {
    expect(
      await nthsOf(
        { prompt: 'a', system: 's' },
        { system: 's', prompt: 'a' },
        { system: 's', prompt: 'a', tools: false },
        { prompt: 'a', system: 's', continues: false, maxTurns: undefined },
      ),
    ).toEqual([1, 2, 3, 4]);
    expect(await nthsOf({ prompt: 'a' }, { prompt: 'a', system: '' })).toEqual([1, 2]);
    expect(await nthsOf({ prompt: 'a' }, { prompt: 'a', tools: [] })).toEqual([1, 1]);
  });

  test('in a part of a run shares no generation with another, whatever both are', async () => {
    const request = fc.record(
      {
        prompt: fc.constantFrom('a', 'b'),
        system: fc.constantFrom('', 's', undefined),
        tools: fc.constantFrom(false, true, [], ['*'], undefined),
        continues: fc.constantFrom(false, true, undefined),
        maxTurns: fc.constantFrom(1, undefined),
        temperature: fc.constantFrom(0, undefined),
      },
      { requiredKeys: ['prompt'] },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 12 }), async (requests) => {
        const { generate, asked } = answering('x');

        for (const one of requests) await generate(one as GenerateRequest);

        const generations = asked.map((one) => generationIdOf('', one));
        expect(new Set(generations).size).toBe(requests.length);
      }),
    );
  });
});
