import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../../../test/support/cpu-time.ts';
import { doubling } from '../../../test/support/hostile-schemas.ts';
import { patient } from '../../../test/support/wait-for.ts';
import { compileSchema, type JsonSchema } from '../../kernel/json-schema.ts';
import { incompatibilities } from './compatibility.ts';

const text = { type: 'string' };
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

const ofInput = (before: JsonSchema, next: JsonSchema) =>
  incompatibilities({ parameters: before, output: {} }, { parameters: next, output: {} });
const ofOutput = (before: JsonSchema, next: JsonSchema) =>
  incompatibilities({ parameters: {}, output: before }, { parameters: {}, output: next });

describe('an input may', () => {
  test.each<[what: string, before: JsonSchema, next: JsonSchema]>([
    ['get an optional field', object({ a: text }), object({ a: text, b: { type: 'number' } })],
    [
      'get an optional field where others are refused',
      object({ a: text }, { additionalProperties: false }),
      object({ a: text, b: text }, { additionalProperties: false }),
    ],
    ['lose a requirement', object({ a: text }, { required: ['a'] }), object({ a: text })],
    ['take another type too', object({ a: text }), object({ a: { type: ['string', 'null'] } })],
    ['take numbers instead of integers', { type: 'integer' }, { type: 'number' }],
    ['take more values', { enum: ['a', 'b'] }, { enum: ['b', 'a', 'c'] }],
    ['take any text instead of some', { enum: ['a', 'b'] }, { type: 'string', maxLength: 1 }],
    ['get wider bounds', { type: 'integer', minimum: 3 }, { type: 'integer', minimum: 1 }],
    [
      'get an including bound for an excluding one',
      { type: 'number', exclusiveMaximum: 3 },
      { type: 'number', maximum: 3 },
    ],
    ['lose a pattern', { type: 'string', pattern: '^a' }, text],
    ['be described otherwise', { ...text, description: 'a' }, { ...text, description: 'b' }],
    ['become a union', text, { anyOf: [text, { type: 'null' }] }],
    ['get a branch', { anyOf: [text] }, { anyOf: [{ type: 'null' }, text] }],
    ['lose a union', { anyOf: [text, { type: 'null' }] }, { type: ['null', 'string'] }],
    ['split its types', { type: ['string', 'null'] }, { anyOf: [text, { type: 'null' }] }],
    [
      'drop a closed list of fields',
      object({ a: text }, { additionalProperties: false }),
      object({}),
    ],
    ['take wider items', { type: 'array', items: text }, { type: 'array', items: {} }],
    [
      'name a definition',
      object({ a: text }),
      object({ a: { $ref: '#/$defs/t' } }, { $defs: { t: text } }),
    ],
    [
      'be recursive',
      { $ref: '#/$defs/t', $defs: { t: object({ child: { $ref: '#/$defs/t' }, a: text }) } },
      { $ref: '#/$defs/u', $defs: { u: object({ child: { $ref: '#/$defs/u' }, b: text, a: {} }) } },
    ],
    ['drop a condition', { allOf: [text, { maxLength: 3 }] }, text],
    [
      'keep a condition that is not understood',
      { not: { const: 1 } },
      { not: { const: 1 }, title: 'x' },
    ],
  ])('%s', (_, before, next) => {
    expect(ofInput(before, next)).toEqual([]);
  });
});

describe('an input is narrowed when it', () => {
  test.each<[what: string, before: JsonSchema, next: JsonSchema, difference: string]>([
    [
      'requires a field',
      object({ a: text }),
      object({ a: text }, { required: ['a'] }),
      'input.a is now required',
    ],
    [
      'requires a field of a field',
      object({ o: object({ a: text }) }),
      object({ o: object({ a: text }, { required: ['a'] }) }),
      'input.o.a is now required',
    ],
    ['takes no null', { type: ['string', 'null'] }, text, 'input no longer takes null'],
    [
      'takes integers only',
      { type: 'number' },
      { type: 'integer' },
      'input no longer takes a number',
    ],
    [
      'takes another type',
      object({ a: text }),
      object({ a: { type: 'array' } }),
      'input.a no longer takes a string',
    ],
    ['misses a value', { enum: ['a', 'b'] }, { enum: ['a'] }, 'input no longer takes "b"'],
    ['gets a list of values', text, { enum: ['a'] }, 'input now takes only "a"'],
    [
      'gets a bound',
      { type: 'integer' },
      { type: 'integer', minimum: 1 },
      'input: minimum is now 1',
    ],
    [
      'gets a tighter bound',
      { type: 'string', maxLength: 9 },
      { type: 'string', maxLength: 5 },
      'input: maxLength is now 5, was 9',
    ],
    [
      'excludes a bound',
      { type: 'number', minimum: 3 },
      { type: 'number', exclusiveMinimum: 3 },
      'input: exclusiveMinimum is now 3',
    ],
    ['gets a pattern', text, { type: 'string', pattern: '^a' }, 'input now has the pattern "^a"'],
    [
      'refuses other fields',
      object({ a: text }),
      object({ a: text }, { additionalProperties: false }),
      'input no longer takes fields of any name',
    ],
    [
      'refuses a field',
      object({ a: text, b: text }, { additionalProperties: false }),
      object({ a: text }, { additionalProperties: false }),
      'input.b is no longer taken',
    ],
    [
      'refuses repeated items',
      { type: 'array' },
      { type: 'array', uniqueItems: true },
      'input now refuses repeated items',
    ],
    [
      'has narrower items',
      { type: 'array', items: { type: ['string', 'null'] } },
      { type: 'array', items: text },
      'input[] no longer takes null',
    ],
    [
      'loses a branch',
      { anyOf: [text, { type: 'null' }] },
      { anyOf: [text] },
      'input no longer takes null',
    ],
    [
      'narrows a definition',
      object({ a: { $ref: '#/$defs/t' } }, { $defs: { t: text } }),
      object({ a: { $ref: '#/$defs/t' } }, { $defs: { t: { type: 'null' } } }),
      'input.a no longer takes a string',
    ],
    ['gets a condition', text, { allOf: [text, { maxLength: 3 }] }, 'input: maxLength is now 3'],
  ])('%s', (_, before, next, difference) => {
    expect(ofInput(before, next)).toContain(difference);
  });

  test.each<[what: string, before: JsonSchema, next: JsonSchema]>([
    ['another pattern', { type: 'string', pattern: 'a' }, { type: 'string', pattern: 'a|b' }],
    ['another oneOf', { oneOf: [text] }, { oneOf: [text, { type: 'null' }] }],
    ['another not', { not: { const: 1 } }, { not: { const: 2 } }],
    [
      'other dependencies',
      { dependentRequired: { a: ['b'] } },
      { dependentRequired: { a: ['c'] } },
    ],
  ])('%s is refused, because it cannot be told', (_, before, next) => {
    expect(ofInput(before, next).join()).toContain('cannot be told');
  });
});

describe('an output may', () => {
  test.each<[what: string, before: JsonSchema, next: JsonSchema]>([
    ['get a field', object({ a: text }), object({ a: text, b: text })],
    ['promise a field', object({ a: text }), object({ a: text }, { required: ['a'] })],
    ['have a narrower type', object({ a: { type: ['string', 'null'] } }), object({ a: text })],
    ['have another value', object({ a: { enum: ['x'] } }), object({ a: { enum: ['x', 'y'] } })],
    ['be described for the first time', {}, object({ a: text })],
  ])('%s', (_, before, next) => {
    expect(ofOutput(before, next)).toEqual([]);
  });

  test.each<[what: string, before: JsonSchema, next: JsonSchema, difference: string]>([
    ['drop a field', object({ a: text }), object({}), 'output.a is gone'],
    [
      'drop a nested field',
      object({ o: object({ a: text }) }),
      object({ o: object({}) }),
      'output.o.a is gone',
    ],
    [
      'drop a field of items',
      { type: 'array', items: object({ a: text }) },
      { type: 'array' },
      'output[] was object and may now be null or boolean or number or string or array',
    ],
    [
      'no longer promise a field',
      object({ a: text }, { required: ['a'] }),
      object({ a: text }),
      'output.a is no longer always there',
    ],
    [
      'change a type',
      object({ a: text }),
      object({ a: { type: 'number' } }),
      'output.a was string and may now be number',
    ],
    ['become null', text, { type: ['string', 'null'] }, 'output was string and may now be null'],
  ])('not %s', (_, before, next, difference) => {
    expect(ofOutput(before, next)).toContain(difference);
  });
});

test('schemas without a reported difference take all inputs that the earlier one described', () => {
  const leaf = fc.constantFrom<JsonSchema>(
    {},
    text,
    { type: ['string', 'null'] },
    { type: 'integer', minimum: 1 },
    { type: 'number', exclusiveMinimum: 0 },
    { type: 'number', maximum: 3 },
    { enum: ['a', 1, null] },
    { const: 'a' },
    { type: 'string', minLength: 2 },
    { type: 'array', items: text, maxItems: 2 },
  );
  const schema = fc.letrec<{ node: JsonSchema }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.record({
        type: fc.constant('object'),
        // All fields are described, because a new optional field may narrow what was not.
        properties: fc.record({ a: tie('node'), b: tie('node') }),
        required: fc.subarray(['a', 'b']),
        additionalProperties: fc.constantFrom<boolean | JsonSchema>(false, true, text),
      }),
      fc.record({ anyOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }) }),
      fc.record({ allOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }) }),
    ),
  })).node;
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('a', 'ab', '', 0, 1, 2.5, 4, null, true),
      fc.record({ a: tie('node'), b: tie('node'), c: tie('node') }, { requiredKeys: [] }),
      fc.array(tie('node'), { maxLength: 3 }),
    ),
  })).node;
  fc.assert(
    fc.property(schema, schema, fc.array(value, { minLength: 5 }), (before, next, values) => {
      if (ofInput(before, next).length > 0) return;
      const [was, now] = [compileSchema(before), compileSchema(next)];
      for (const one of values) if (was(one) === null) expect(now(one)).toBe(null);
    }),
    { numRuns: 500 },
  );
});

describe("strangers' schemas are compared in bounded steps", () => {
  const values = (from: number) => Array.from({ length: 4_000 }, (_, i) => `value-${from + i}`);
  const twice = (next: object) => ({ allOf: [next, next], anyOf: [next, next] });
  const branches = (from: number) => ({
    anyOf: Array.from({ length: 800 }, (_, i) => ({ properties: { a: { const: from + i } } })),
  });
  const wide = (type: string) => ({
    properties: Object.fromEntries(
      Array.from({ length: 1_500 }, (_, i) => [`field${i}`, { type }]),
    ),
  });
  const times = <T>(count: number, make: (i: number) => T) =>
    Array.from({ length: count }, (_, i) => make(i));
  const unknown = Object.fromEntries(times(3_800, (i) => [`k${i}`, 1]));
  const hops = { $defs: doubling((next) => next, 25)['$defs'] };
  const minima = { anyOf: times(1_500, (minimum) => ({ minimum })) };
  const cases: Record<string, readonly [before: object, next: object]> = {
    'branches that repeat one of thousands of keywords': [
      { ...unknown, anyOf: times(2_700, () => ({ k0: 1 })) },
      text,
    ],
    'branches beside thousands of keywords': [
      { ...unknown, anyOf: times(2_700, () => ({ z: 1 })) },
      text,
    ],
    'constants by the thousand for patterns of many parts': [
      { anyOf: times(1_700, () => ({ const: 1, pattern: '[cd]{999}' })) },
      {
        type: 'string',
        properties: Object.fromEntries(
          [...'bcdefghijklmnopqrst'].map((char) => [char, { pattern: `[a${char}]{1000}` }]),
        ),
      },
    ],
    'branches that refer on and on': [
      minima,
      { ...hops, anyOf: times(2_500, () => ({ $ref: '#/$defs/d0' })) },
    ],
    'branches that are refused at once': [minima, { anyOf: times(9_000, () => false) }],
    'keywords that are unknown': [minima, { ...unknown, a: 2 }],
    'names at the end of a long path': [
      { $defs: { a: object({ ['n'.repeat(90)]: { $ref: '#/$defs/a' } }) }, $ref: '#/$defs/a' },
      {
        $defs: {
          a: object(
            { ['n'.repeat(90)]: { $ref: '#/$defs/b' } },
            { required: times(3_000, (i) => `r${i}`) },
          ),
          b: object({ ['n'.repeat(90)]: { $ref: '#/$defs/a' } }, { required: ['a'] }),
        },
        $ref: '#/$defs/a',
      },
    ],
    'an enum of 4,000 values': [{ enum: values(0) }, { enum: values(1) }],
    'an enum of 4,000 values in each branch': [
      { anyOf: Array.from({ length: 3 }, (_, i) => ({ enum: values(i).slice(0, 1_300) })) },
      { anyOf: Array.from({ length: 3 }, (_, i) => ({ enum: values(i + 9).slice(0, 1_300) })) },
    ],
    'definitions that refer twice': [doubling(twice, 40), doubling((next) => ({ not: next }), 40)],
    'two times 800 branches': [branches(0), branches(5_000)],
    'fields by the thousand': [wide('string'), wide('integer')],
    'a chain of definitions': [
      doubling((next) => ({ items: next }), 900),
      doubling((next) => ({ items: next, title: 'x' }), 899),
    ],
  };

  test.each(Object.entries(cases))('%s', async (_name, [before, next]) => {
    const schemas = (one: object) => ({ parameters: { ...one }, output: { ...one } });
    let found: string[] = [];
    const took = await cpuMsOf(() => {
      found = incompatibilities(schemas(before), schemas(next));
    });
    expect(found.length).toBeGreaterThan(0);
    expect(found.every((one) => one.length < 1_500)).toBe(true);
    // Half a second for the input, and for the output.
    expect(took).toBeLessThan(patient(1_000));
  });

  test('and one that is too large is a difference', () => {
    const before = doubling(twice, 40);
    const next = doubling((one) => ({ not: one }), 40);
    expect(
      incompatibilities({ parameters: before, output: {} }, { parameters: next, output: {} }),
    ).toEqual(['input: the schemas are too large to compare']);
  });
});
