import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type GenerateRequest, generationIdOf, readGenerateRequest } from './generate-request.ts';

const payload = (request: object, more: object = {}) => ({
  request: { prompt: 'hello', ...request },
  nth: 1,
  corrections: [],
  ...more,
});
const read = (request: object, more: object = {}): GenerateRequest =>
  readGenerateRequest(payload(request, more));

describe('a request to a model', () => {
  test('has defaults for all but the prompt', () => {
    expect(read({})).toEqual({
      request: {
        prompt: 'hello',
        system: '',
        schema: undefined,
        tools: false,
        files: undefined,
        continues: false,
        maxOutputTokens: undefined,
        maxTurns: undefined,
        temperature: undefined,
      },
      nth: 1,
      corrections: [],
    });
  });

  test('keeps its options', () => {
    const request = {
      prompt: 'p',
      system: 's',
      schema: { type: 'string' },
      tools: ['text/*'],
      files: 'a/v1.0/b',
      continues: true,
      maxOutputTokens: 1,
      maxTurns: 1_000,
      temperature: 2,
      effort: 'high',
      timeoutMs: 21_600_000,
      firstByteTimeoutMs: 100,
    };
    const corrections = ['Your answer cannot be used.'];

    expect(readGenerateRequest({ request, nth: 3, corrections })).toEqual({
      request,
      nth: 3,
      corrections,
    });
  });

  test.each<[string, object]>([
    ['effort must be one of none, minimal, low, medium, high, xhigh, max', { effort: 'huge' }],
    ['timeoutMs must be an integer from 100 to 21600000', { timeoutMs: 99 }],
    [
      'firstByteTimeoutMs must be an integer from 100 to 3600000',
      { firstByteTimeoutMs: 3_600_001 },
    ],
    ['prompt must be a text of 1 to 1000000 bytes', { prompt: undefined }],
    ['prompt must be a text of 1 to 1000000 bytes', { prompt: '' }],
    ['prompt must be a text of 1 to 1000000 bytes', { prompt: 7 }],
    ['prompt must be a text of 1 to 1000000 bytes', { prompt: ['x'] }],
    ['prompt must be a text of 1 to 1000000 bytes', { prompt: '漢'.repeat(333_334) }],
    ['system must be a text of at most 256 KiB', { system: null }],
    ['system must be a text of at most 256 KiB', { system: 'x'.repeat(262_145) }],
    ['schema must be an object', { schema: null }],
    ['schema must be an object', { schema: true }],
    ['schema must be an object', { schema: [] }],
    ['schema must have at most 64 KiB of JSON', { schema: { title: 'x'.repeat(65_536) } }],
    ['tools must be true, false or a list of patterns such as text/*', { tools: 'text/*' }],
    ['tools must be true, false or a list of patterns such as text/*', { tools: [1] }],
    ['tools must be true, false or a list of patterns such as text/*', { tools: null }],
    [
      'tools must be true, false or a list of patterns such as text/*',
      { tools: Array.from({ length: 201 }, () => '*') },
    ],
    [
      'tools must be true, false or a list of patterns such as text/*',
      { tools: ['x'.repeat(201)] },
    ],
    ['files must name a skill as category/version/name', { files: true }],
    ['files must name a skill as category/version/name', { files: 'x'.repeat(301) }],
    ['continues must be true or false', { continues: 1 }],
    ['maxOutputTokens must be an integer from 1 to 1000000', { maxOutputTokens: 0 }],
    ['maxOutputTokens must be an integer from 1 to 1000000', { maxOutputTokens: 1.5 }],
    ['maxOutputTokens must be an integer from 1 to 1000000', { maxOutputTokens: '1' }],
    ['maxOutputTokens must be an integer from 1 to 1000000', { maxOutputTokens: null }],
    ['maxTurns must be an integer from 1 to 1000', { maxTurns: 1_001 }],
    ['maxTurns must be an integer from 1 to 1000', { maxTurns: -1 }],
    ['temperature must be a number from 0 to 2', { temperature: 2.1 }],
    ['temperature must be a number from 0 to 2', { temperature: Number.NaN }],
    ['temperature must be a number from 0 to 2', { temperature: '1' }],
    ['generate knows no promt', { promt: 'x' }],
    ['generate knows no __proto__', JSON.parse('{"__proto__":{"tools":true}}')],
  ])('is refused for good with "%s"', (message, request) => {
    const given = { prompt: 'hello', ...request };
    // A spread would set the prototype.
    if (Object.hasOwn(request, '__proto__')) {
      Object.defineProperty(given, '__proto__', { value: {}, enumerable: true });
    }

    expect(() => readGenerateRequest({ request: given, nth: 1, corrections: [] })).toThrow(
      expect.objectContaining({ message, retryable: false }),
    );
  });

  test.each<[string, object]>([
    ['nth must be a count', { nth: 0 }],
    ['nth must be a count', { nth: 1.5 }],
    ['nth must be a count', { nth: '1' }],
    ['nth must be a count', { nth: undefined }],
    ['corrections must be up to 10 texts', { corrections: undefined }],
    ['corrections must be up to 10 texts', { corrections: [1] }],
    ['corrections must be up to 10 texts', { corrections: { length: 1 } }],
    ['corrections must be up to 10 texts', { corrections: Array(11).fill('x') }],
    ['corrections must be up to 10 texts', { corrections: ['漢'.repeat(4_097)] }],
    ['what is asked of generate must be an object', { request: 'hello' }],
    ['what is asked of generate must be an object', { request: null }],
  ])('of a faulty child is refused for good with "%s"', (message, more) => {
    expect(() => readGenerateRequest({ ...payload({}), ...more })).toThrow(
      expect.objectContaining({ message, retryable: false }),
    );
  });

  test('a schema of extreme depth is refused', () => {
    const deep = JSON.parse(`${'{"items":'.repeat(30_000)}{}${'}'.repeat(30_000)}`);

    expect(() => read({ schema: deep })).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^schema /), retryable: false }),
    );
  });

  test('any invalid payload is refused with a sentence', () => {
    const given = fc.oneof(
      fc.anything(),
      fc.record({ request: fc.anything(), nth: fc.anything(), corrections: fc.anything() }),
      fc.record({
        request: fc.dictionary(
          fc.constantFrom('prompt', 'system', 'schema', 'tools', 'maxTurns', 'temperature'),
          fc.anything(),
        ),
        nth: fc.constant(1),
        corrections: fc.constant([]),
      }),
    );
    fc.assert(
      fc.property(given, (anything) => {
        try {
          const { request } = readGenerateRequest(anything);
          expect(typeof request.prompt).toBe('string');
        } catch (error) {
          expect(error).toMatchObject({ message: expect.stringMatching(/\S/), retryable: false });
        }
      }),
    );
  });
});

describe('the id of a generation', () => {
  const prompt = fc.string({ minLength: 1, maxLength: 5 });
  const request = fc.record(
    {
      prompt,
      system: fc.constantFrom('', 'a', 'b'),
      tools: fc.constantFrom(true, false, ['a', 'b'], ['b', 'a']),
      schema: fc.dictionary(fc.constantFrom('title', 'type'), fc.jsonValue({ maxDepth: 2 })),
      continues: fc.boolean(),
      temperature: fc.constantFrom(0, 1),
      maxTurns: fc.integer({ min: 1, max: 3 }),
    },
    { requiredKeys: ['prompt'] },
  );

  test('is the same for the same request, in any order of its fields', () => {
    const reversed = (value: unknown): unknown => {
      if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
      return Object.fromEntries(
        Object.entries(value)
          .map(([key, one]) => [key, reversed(one)] as const)
          .reverse(),
      );
    };
    fc.assert(
      fc.property(request, (asked) => {
        const again = read(reversed(asked) as object);

        expect(generationIdOf('/a', again)).toBe(generationIdOf('/a', read(asked)));
      }),
    );
  });

  test('does not depend on the corrections', () => {
    expect(generationIdOf('', read({}, { corrections: ['x'] }))).toBe(generationIdOf('', read({})));
  });

  test('differs between different requests', () => {
    fc.assert(
      fc.property(request, request, (one, other) => {
        const [a, b] = [read(one), read(other)];
        const isSame = JSON.stringify(sorted(a.request)) === JSON.stringify(sorted(b.request));

        expect(generationIdOf('', a) === generationIdOf('', b)).toBe(isSame);
      }),
    );
    const names = [
      generationIdOf('', read({})),
      generationIdOf('', read({}, { nth: 2 })),
      generationIdOf('/a', read({})),
      generationIdOf('/a\n1', read({})),
      generationIdOf('/1', read({})),
      generationIdOf('', read({ prompt: 'hello\n' })),
      generationIdOf('', read({ maxTurns: 1 })),
    ];
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[\w-]{22}$/);
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return Object.is(value, -0) ? 0 : value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sorted(one)]),
  );
}
