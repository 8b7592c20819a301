import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, test } from 'vitest';
import { BoundedTests, boundedValidator, checkBoundedSchema } from './bounded-schema.ts';
import { compileSchema } from './json-schema.ts';
import { patternSize } from './pattern-size.ts';
import { OutOfSteps, StepMeter } from './schema-run.ts';

type Schema = Record<string, unknown>;

const draft07 = 'http://json-schema.org/draft-07/schema#';

/** What is wrong with a value, or with the schema. */
function issuesOf(schema: Schema, value: unknown): string[] | string {
  try {
    const issues = boundedValidator(schema)(value) ?? [];
    return issues.map(({ field, issue }) => `${field}: ${issue}`);
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Undefined where the code that Ajv made is wrong: for some branches with `unevaluatedProperties` or `unevaluatedItems` it
 * fails, with `unevaluatedItems` beside a branch with `prefixItems` that does not hold it takes every array, and it refuses
 * elements that a branch with `items` takes whatever they are. It takes what a branch leaves over that does not hold, where both
 * the branch and the schema around it have one of these keywords.
 */
function takenByAjv(schema: Schema, value: unknown): boolean | undefined {
  try {
    const isTaken = compileSchema(schema)(value) === null;
    const text = JSON.stringify(schema);
    const unsureBeside = isTaken ? '"prefixItems"' : '"items"';
    const isUnsure = text.includes('"unevaluatedItems"') && text.includes(unsureBeside);
    const isNested = /"(unevaluated\w+)".*"\1"/.test(text);
    return isUnsure || (isTaken && isNested) ? undefined : isTaken;
  } catch (error) {
    expect((error as Error).message).toMatch(
      /^Cannot set properties of undefined|^(?:props|items)\d+ is not defined$/,
    );
    return undefined;
  }
}

const name = fc.constantFrom('a', 'b', 'ab', 'c');
const scalar = fc.constantFrom(null, true, 0, 1, 1.5, -2, 4, '', 'a', 'ab', 'abc', '2020-01-01');
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

const typeName = fc.constantFrom(
  'null',
  'boolean',
  'integer',
  'number',
  'string',
  'array',
  'object',
);
const small = fc.integer({ min: 0, max: 3 });
const number = fc.integer({ min: -2, max: 4 });
const names = fc.uniqueArray(name, { maxLength: 2 });

/** All keywords but `contains`, which Ajv takes to fit an empty array where its schema takes everything. */
function keywordsOf(schema: fc.Arbitrary<unknown>, isDraft07: boolean) {
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const byName = fc.dictionary(name, schema, { maxKeys: 3, noNullPrototype: true });
  const byPattern = fc.constantFrom('^a', 'b', 'c$');
  return {
    ...{ type: fc.oneof(typeName, fc.uniqueArray(typeName, { minLength: 1, maxLength: 3 })) },
    ...{ enum: fc.array(anyValue, { minLength: 1, maxLength: 4 }), const: anyValue },
    ...{ minimum: number, maximum: number, exclusiveMinimum: number, exclusiveMaximum: number },
    ...{ multipleOf: fc.constantFrom(1, 2, 0.5), minLength: small, maxLength: small },
    pattern: fc.constantFrom('^a', 'b$', 'a|b', '^[a-z]{2}$'),
    format: fc.constantFrom('date', 'email', 'unknown'),
    ...{ minItems: small, maxItems: small, uniqueItems: fc.boolean() },
    ...{ minProperties: small, maxProperties: small, required: names, propertyNames: schema },
    ...{ properties: byName, additionalProperties: schema },
    patternProperties: fc.dictionary(byPattern, schema, { maxKeys: 2, noNullPrototype: true }),
    dependencies: fc.dictionary(name, fc.oneof(schema, names), { maxKeys: 2 }),
    ...{ allOf: list, anyOf: list, oneOf: list, not: schema, if: schema },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    ...{ then: schema, else: schema, $ref: fc.constantFrom('#/$defs/x', '#/$defs/y') },
    ...(isDraft07
      ? { items: fc.oneof(schema, list), additionalItems: schema }
      : {
          ...{ items: schema, prefixItems: list, dependentSchemas: byName },
          dependentRequired: fc.dictionary(name, names, { maxKeys: 2, noNullPrototype: true }),
          ...{ unevaluatedItems: schema, unevaluatedProperties: schema },
        }),
  };
}

/** Schemas of one to three keywords, with definitions to refer to. */
function schemasOf(isDraft07: boolean): fc.Arbitrary<Schema> {
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
    const keywords = Object.entries(keywordsOf(tie('schema'), isDraft07));
    const entry = fc
      .constantFrom(...keywords)
      .chain(([keyword, of]) =>
        (of as fc.Arbitrary<unknown>).map((one) => [keyword, one] as const),
      );
    const object = fc.tuple(entry, entry).map((entries) => Object.fromEntries(entries));
    return {
      schema: fc.oneof(
        { depthSize: 'small' },
        { weight: 1, arbitrary: fc.boolean() },
        { weight: 8, arbitrary: object },
      ),
    };
  });
  return fc.record({ s: schema, x: schema, y: schema }).map(({ s, x, y }) =>
    JSON.parse(
      JSON.stringify({
        ...(isDraft07 && { $schema: draft07 }),
        ...(typeof s === 'boolean' ? { allOf: [s] } : (s as object)),
        $defs: { x, y },
      }),
    ),
  );
}

describe('boundedValidator', () => {
  test.each([
    ['2020-12', false],
    ['draft-07', true],
  ])('takes and refuses what Ajv does, in %s', (_dialect, isDraft07) => {
    fc.assert(
      fc.property(schemasOf(isDraft07), anyValue, (schema, given) => {
        const value: unknown = JSON.parse(JSON.stringify(given));
        const found = issuesOf(schema, value);
        if (typeof found === 'string') {
          // For a circle of references, Ajv runs out of stack.
          expect(found).toMatch(/^(?:refers to itself without a step|takes too many steps)/);
          return;
        }
        const isTaken = takenByAjv(schema, value);
        if (isTaken !== undefined) expect(found.length === 0).toBe(isTaken);
      }),
      { numRuns: 500 },
    );
  });

  test('reads no more of a value than it has steps for, whatever the schema', () => {
    const stepsMax = 500;
    fc.assert(
      fc.property(schemasOf(false), anyValue, (schema, given) => {
        const value: unknown = JSON.parse(JSON.stringify(given));
        const counted = countingReads(value);
        const meter = new StepMeter(stepsMax);
        try {
          new BoundedTests(meter, '2020-12').fits(schema, counted.value);
        } catch (error) {
          expect((error as Error).name).toBe('SchemaError');
        }
        const spent = stepsMax - Math.max(meter.left, 0);
        // The step that goes beyond the bound reads one object at most.
        expect(counted.reads()).toBeLessThanOrEqual(10 * spent + 50);
      }),
      { numRuns: 500 },
    );
  });

  test('ends a schema that forks at each level of the value after its steps', () => {
    const fork = { allOf: [{ items: { $ref: '#' } }, { items: { $ref: '#' } }] };
    let value: unknown[] = [];
    for (let i = 0; i < 30; i++) value = [value];

    const meter = new StepMeter(10_000);

    expect(() => new BoundedTests(meter, '2020-12').fits(fork, value)).toThrow(OutOfSteps);
    expect(meter.left).toBeGreaterThan(-100);
    expect(issuesOf(fork, value)).toMatch(/^takes too many steps to check this value: simplify/);
  });

  test.each([
    [{ required: ['a'] }, {}, ['a: is required']],
    [{ additionalProperties: false }, { zip: 1 }, ['zip: is not allowed']],
    [
      { properties: { a: { type: 'array', items: { type: ['string', 'null'] } } } },
      { a: [1] },
      ['a.0: must be string or null'],
    ],
    [
      { minLength: 2, pattern: '^[a-z]+$' },
      'A',
      ['body: must not have fewer than 2 characters', 'body: must match pattern "^[a-z]+$"'],
    ],
    [
      { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] },
      'a',
      ['body: must be integer or null'],
    ],
    [{ enum: ['a', { b: [1] }] }, { b: [2] }, ['body: must be one of "a", {"b":[1]}']],
    [{ const: { a: 1, b: 2 } }, { b: 2, a: 1 }, []],
    [{ type: 'string', nullable: true }, null, []],
    [{ contains: { type: 'string' } }, [1], ['body: must contain at least 1 valid item(s)']],
    [{ contains: {} }, [], ['body: must contain at least 1 valid item(s)']],
    [
      { unevaluatedProperties: false, allOf: [{ properties: { a: true } }] },
      { a: 1, b: 2 },
      ['b: is not allowed'],
    ],
    [{ $schema: draft07, items: [{ type: 'string' }] }, [1], ['0: must be string']],
    [{ $defs: { a: { $id: 'T0', items: { $ref: 'T0' } } }, $ref: 'T0' }, [[1]], []],
    [{ $defs: { a: { $anchor: 'x', type: 'null' } }, $ref: '#x' }, 1, ['body: must be null']],
    [{ 'x-other': { a: { type: 'null' } }, $ref: '#/x-other/a' }, 1, ['body: must be null']],
  ])('%j and %j: %j', (schema, value, issues) => {
    expect(issuesOf(schema, value)).toEqual(issues);
  });

  test('a value that is nested too deeply is refused', () => {
    let deep: unknown[] = [];
    for (let i = 0; i < 20_000; i++) deep = [deep];
    expect(issuesOf({ type: 'array', items: { $ref: '#' } }, deep)).toEqual([
      'body: is nested too deeply',
    ]);
  });
});

test('a fault that is no depth is not called one', () => {
  const value = Object.defineProperty({}, 'a', {
    enumerable: true,
    get: () => 'a'.repeat(2 ** 30),
  });
  expect(() => boundedValidator({})(value)).toThrow(RangeError);
});

describe('checkBoundedSchema', () => {
  test.each([
    [{ type: 'text' }, /^is no valid JSON Schema: type must be one of "array", /],
    [{ $ref: '#/$defs/none' }, /^refers to "#\/\$defs\/none", which it does not define$/],
    [{ $ref: 'https://example.com/s' }, /schemas from elsewhere are never fetched$/],
    [{ pattern: '(?=a)' }, /lookaround cannot be matched/],
    [{ pattern: '[ab]{1000}{3}' }, /parts with its repetitions$/],
    [{ pattern: '\\Qa\\E' }, /\\Q has no meaning in JSON Schema$/],
    [{ pattern: '\\\\Q' }, /^none$/],
    [{ pattern: '(?i)^[а-яё]+$' }, /^none$/],
    [{ $ref: '#' }, /^refers to itself without a step into the value/],
    [{ items: { $ref: '#' } }, /^none$/],
    [{ properties: { pattern: { pattern: '(' } }, enum: [{ pattern: '(' }] }, /RE2 cannot read/],
  ])('%j: %s', (schema, fault) => {
    let message = 'none';
    try {
      checkBoundedSchema(schema);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(fault);
  });
});

describe('patternSize', () => {
  /** What RE2 reads as one, what it reads as several, and what it reads in another way in another place. */
  const pieces = [
    ...[
      'a',
      '.',
      '\n',
      '😀',
      '\\d',
      '\\w',
      '\\b',
      '\\p{L}',
      '\\pL',
      '\\P{Lu}',
      '\\0',
      '\\',
      '\\\\',
    ],
    ...['[', '[^', '[]', '[^]', '[ab]', '[^a-c]', ']', '\\[', '\\]', '[:', ':]', '[:alpha:]', '-'],
    ...['(', '(?:', '(?i)', '(?s-i:', '(?<n>', '(?P<m>', ')', '|', '^', '$', '\\A', '\\z', '/'],
    ...['*', '+', '?', '{', '}', '{3}', '{2,}', '{1,4}', '{0,2}', '{40}'],
    ...[
      '\\x',
      '\\x41',
      '\\x{',
      '\\x{41}',
      '\\x{a{30}',
      '\\u{',
      '\\u{61}',
      '\\u{a{30}',
      '\\u0061',
      '\\cA',
    ],
  ];
  const pattern = fc
    .array(fc.constantFrom(...pieces), { maxLength: 12 })
    .map((some) => some.join(''));

  test('is at least what RE2 makes of a pattern', () => {
    const readable = pattern.filter((text) => sizeInRe2(text) !== null);
    fc.assert(
      fc.property(readable, (text) => {
        expect(patternSize(text).parts).toBeGreaterThanOrEqual(sizeInRe2(text) ?? 0);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['a repetition of a piece before flags', '(?:aaaa)(?i){40}', 160],
    ['a repetition within an escape of no character', '\\x{a{40}', 43],
    ['an empty branch', '|x]a|', 9],
    ['groups of nothing', '(){40}', 122],
  ])('counts %s', (_, text, size) => {
    expect(patternSize(text).parts).toBeGreaterThanOrEqual(size);
  });

  test.each(['|{99999999999999999999}', `|{${'9'.repeat(400)}}`, '(a{1000}){1000}'.repeat(1_000)])(
    'of %# is a number',
    (text) => {
      expect(patternSize(text).parts).not.toBeNaN();
    },
  );

  test('is infinite beyond what can be counted', () => {
    const text = `${'('.repeat(200)}a${'){1000}'.repeat(200)}`;
    expect(patternSize(text)).toEqual({ parts: Infinity, width: Infinity });
  });
});

/** Instructions; null for a pattern that RE2 cannot read. */
function sizeInRe2(text: string): number | null {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(text)).programSize();
  } catch {
    return null;
  }
}

test('a step that is no number ends a validation', () => {
  expect(() => {
    new StepMeter(1_000).spend(Number.NaN);
  }).toThrow(OutOfSteps);
});

/** A value whose reads are counted. */
function countingReads(value: unknown): { value: unknown; reads: () => number } {
  let reads = 0;
  const counting = (one: unknown): unknown => {
    if (typeof one !== 'object' || one === null) return one;
    const inner: object = Array.isArray(one)
      ? one.map(counting)
      : Object.fromEntries(Object.entries(one).map(([key, member]) => [key, counting(member)]));
    return new Proxy(inner, {
      get(target, key) {
        reads += 1;
        return Reflect.get(target, key);
      },
      ownKeys(target) {
        reads += Reflect.ownKeys(target).length;
        return Reflect.ownKeys(target);
      },
      getOwnPropertyDescriptor(target, key) {
        reads += 1;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
    });
  };
  return { value: counting(value), reads: () => reads };
}
