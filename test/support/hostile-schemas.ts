/** Schemas that strangers could send to make a validator work long, each with a value that it is meant for. */

export interface HostileCase {
  readonly schema: Record<string, unknown>;
  readonly value: unknown;
}

const times = <T>(count: number, make: (i: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));

/** Definitions each of which refers to the next one more than once: two to the power of `levels` steps. */
export function doubling(
  of: (next: object) => object,
  levels = 50,
  keyword = '$ref',
): Record<string, unknown> {
  const definitions = times(levels, (i) => [`d${i}`, of({ [keyword]: `#/$defs/d${i + 1}` })]);
  return {
    $defs: Object.fromEntries([...definitions, [`d${levels}`, { type: 'string' }]]),
    $ref: '#/$defs/d0',
  };
}

/** A schema that refers to itself, twice for each step into the value. */
function forking(of: (again: object) => object): Record<string, unknown> {
  return { $defs: { x: of({ $ref: '#/$defs/x' }) }, $ref: '#/$defs/x' };
}

function nested(of: (inner: unknown) => unknown, levels = 60): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = of(value);
  return value;
}

const nestedObject = () => nested((a) => ({ a }));
const nestedArray = () => nested((inner) => [inner]);
const letters = (count: number) => times(count, (i) => ((i * i) % 7 < 3 ? 'a' : 'b')).join('');

/** No version of these may be accepted: one value alone would take too many steps, or would never end. */
export const refusedSchemas: Record<string, Record<string, unknown>> = {
  'allOf of the next twice': doubling((next) => ({ allOf: [next, next] })),
  'anyOf of the next twice': doubling((next) => ({ anyOf: [next, next] })),
  'oneOf of the next twice': doubling((next) => ({ oneOf: [next, next] })),
  'not of the next twice': doubling((next) => ({ not: { anyOf: [next, next] } })),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  'if, then and else of the next': doubling((next) => ({ if: next, then: next, else: next })),
  'dependentSchemas of the next': doubling((next) => ({ dependentSchemas: { a: next, b: next } })),
  'dependencies of the next': doubling((next) => ({ dependencies: { a: next, b: next } })),
  '$dynamicRef of the next': doubling((next) => ({ allOf: [next, next] }), 50, '$dynamicRef'),
  'a reference to itself': { $ref: '#' },
  'a circle of references': {
    $ref: '#/$defs/a',
    $defs: { a: { $ref: '#/$defs/b' }, b: { not: { $ref: '#/$defs/a' } } },
  },
  'a chain of 2,000 references': doubling((next) => next, 2_000),
  'a pattern of a million parts': { pattern: '(?:(?:a{100}){100}){100}' },
  'a pattern of more parts than a number can count': {
    pattern: `${'('.repeat(104)}a${'){1000}'.repeat(104)}`,
  },
  'a pattern of text that RE2 alone takes as plain': {
    pattern: `\\Q${'('.repeat(104)}a${'){1000}'.repeat(104)}\\E`,
  },
  'a pattern that hides repetitions in plain text': {
    pattern: `\\Q[\\E${'a{1000}'.repeat(300)}]`,
  },
  'a pattern that hides repetitions in escapes': { pattern: '\\x{a{1000}'.repeat(300) },
  'a pattern that repeats a piece before its flags': {
    pattern: `(?:${'ab'.repeat(250)})(?i){400}`,
  },
  'a pattern of wide ranges without regard to case': {
    pattern: `(?i)${'[B-\\x{1e900}]'.repeat(300)}`,
  },
  'a pattern of openings without an end': { pattern: '\\u{'.repeat(16_000) },
  'a list of one type, nine thousand times': {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...{ items: { $ref: '#/$defs/x' }, $defs: { x: { type: times(9_000, () => 'null') } } },
  },
  'references from a long address': {
    $id: `http://a/${'b'.repeat(30_000)}`,
    allOf: times(1_500, () => ({ $ref: 'c' })),
  },
  'patterns of many parts': {
    patternProperties: Object.fromEntries(times(100, (i) => [`^${i}[a-z]{900}$`, true])),
  },
};

/** These are accepted, and the value is refused or takes too many steps. */
export const hostileCases: Record<string, () => HostileCase> = {
  'properties that fork': () => ({
    schema: forking((again) => ({
      anyOf: [
        { properties: { a: again }, required: ['y'] },
        { properties: { a: again }, required: ['z'] },
      ],
    })),
    value: nestedObject(),
  }),
  'patternProperties that fork': () => ({
    schema: forking((again) => ({ patternProperties: { a: again, '^a': again } })),
    value: nestedObject(),
  }),
  'additionalProperties that fork': () => ({
    schema: forking((again) => ({
      allOf: [{ additionalProperties: again }, { additionalProperties: again }],
    })),
    value: nestedObject(),
  }),
  'items that fork': () => ({
    schema: forking((again) => ({ allOf: [{ items: again }, { items: again }] })),
    value: nestedArray(),
  }),
  '$dynamicRef that forks': () => ({
    schema: {
      $dynamicAnchor: 'x',
      allOf: [{ items: { $dynamicRef: '#x' } }, { items: { $dynamicRef: '#x' } }],
    },
    value: nestedArray(),
  }),
  'an anyOf of 36 KB with a value of 15 KB': () => ({
    schema: {
      items: { anyOf: times(700, (i) => ({ properties: { a: { type: 'string', const: i } } })) },
    },
    value: times(1_500, (a) => ({ a })),
  }),
  'an enum of 4,000 long values': () => ({
    schema: { items: { enum: times(4_000, (i) => `value-${i}`) } },
    value: times(50_000, (i) => `value-${i % 4_001}`),
  }),
  'a thousand enums of objects': () => ({
    schema: { anyOf: times(1_000, (i) => ({ enum: [{ a: [i] }] })) },
    value: { a: times(100_000, (i) => i) },
  }),
  'a thousand unique arrays': () => ({
    schema: { allOf: times(1_000, () => ({ uniqueItems: true })) },
    value: times(50_000, (id) => ({ id })),
  }),
  'a thousand lengths of one long text': () => ({
    schema: { allOf: times(1_000, () => ({ minLength: 600_001 })) },
    value: '語'.repeat(1_000_000),
  }),
  'a thousand lists of the members of a large object': () => ({
    schema: { allOf: times(1_000, () => ({ minProperties: 1, propertyNames: true })) },
    value: Object.fromEntries(times(100_000, (i) => [`k${i}`, 1])),
  }),
  'a large object among a thousand enums of objects': () => ({
    schema: { items: { anyOf: times(1_000, () => ({ enum: [{}] })) } },
    value: [Object.fromEntries(times(100_000, (i) => [`k${i}`, 1]))],
  }),
  'a thousand branches that evaluate nothing': () => ({
    schema: { items: { unevaluatedProperties: false, anyOf: times(1_000, () => ({})) } },
    value: times(100_000, () => ({})),
  }),
  'contained items that are evaluated a thousand times': () => ({
    schema: { unevaluatedItems: false, allOf: times(1_000, () => ({ contains: true })) },
    value: times(50_000, () => 0),
  }),
  'patterns of a thousand parts for many texts': () => ({
    schema: { items: { allOf: times(7, (i) => ({ pattern: `^[ab]{${1_000 - i}}` })) } },
    value: times(500, () => letters(2_000)),
  }),
  'hundreds of patterns of many states': () => ({
    schema: { items: { allOf: times(500, (i) => ({ pattern: `[ab]*a[ab]{20}$|x${i}` })) } },
    value: times(500, (i) => letters(80 + i) + 'a'.repeat(22)),
  }),
  'a pattern of many states': () => ({
    schema: { items: { pattern: '[ab]*a[ab]{500}[^ab]' } },
    value: times(100, () => letters(5_000)),
  }),
  'many patterns for many names': () => ({
    schema: { patternProperties: Object.fromEntries(times(400, (i) => [`^[ab]*x${i}`, true])) },
    value: Object.fromEntries(times(20_000, (i) => [`a${i}`, 1])),
  }),
  'unevaluatedProperties behind many branches': () => ({
    schema: {
      unevaluatedProperties: false,
      anyOf: times(500, () => ({ patternProperties: { '^a': true } })),
    },
    value: Object.fromEntries(times(20_000, (i) => [`a${i}`, 1])),
  }),
  'a thousand formats for one long text': () => ({
    schema: { allOf: times(1_000, () => ({ format: 'uri' })) },
    value: `http://a${':'.repeat(500_000)}@`,
  }),
  'as many errors as members, under a long name': () => ({
    schema: { additionalProperties: { additionalProperties: false } },
    value: { ['k'.repeat(900_000)]: Object.fromEntries(times(1_900, (i) => [`a${i}`, 1])) },
  }),
  'errors in all branches of unions within unions': () => ({
    schema: forking((again) => ({
      anyOf: times(10, () => ({ type: 'array', items: again })).concat([
        { type: 'array', items: { type: 'string' } },
      ]),
    })),
    value: nested((inner) => [inner], 8),
  }),
};

/** The largest that may be sent, and nothing is wrong with it. */
export const largeCases: Record<string, () => HostileCase> = {
  'half a million numbers': () => ({
    schema: { type: 'array', items: { type: 'number', minimum: 0 } },
    value: times(500_000, (i) => i),
  }),
  'ten thousand records with patterns': () => ({
    schema: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id'],
        properties: {
          id: { pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$' },
          n: { minimum: 0 },
        },
      },
    },
    value: times(10_000, (n) => ({ id: '123e4567-e89b-426614174000', n })),
  }),
  'a thousand records out of a union of a hundred': () => ({
    schema: {
      items: {
        oneOf: times(100, (i) => ({
          required: ['kind'],
          properties: { kind: { const: `kind-${i}` }, text: { type: 'string' } },
        })),
      },
    },
    value: times(1_000, (i) => ({ kind: `kind-${i % 100}`, text: 'some text of a record' })),
  }),
};
