/**
 * Compares two schemas keyword by keyword. Every keyword of the later schema is one more condition on a value,
 * so each must follow from the earlier schema. What the earlier schema demands beyond that is ignored, which
 * only makes the comparison stricter.
 */
import type { JsonSchema } from '../../kernel/json-schema.ts';
import {
  type Comparison,
  canonicalOf,
  fieldIn,
  isAnything,
  membersOf,
  namesOf,
  rulesOf,
  type Schema,
  typesOf,
} from './schema-parts.ts';

/** One keyword of the later schema. */
interface Asked {
  readonly comparison: Comparison;
  readonly before: JsonSchema;
  readonly next: JsonSchema;
  readonly path: string;
  readonly keyword: string;
  /** Its value in the later schema. */
  readonly value: unknown;
}

type Rule = (asked: Asked) => string[];

/** Lower and upper bounds, with the types that they concern. */
const bounds: Record<string, readonly [kind: 'least' | 'most', types: readonly string[]]> = {
  minimum: ['least', ['number', 'integer']],
  exclusiveMinimum: ['least', ['number', 'integer']],
  maximum: ['most', ['number', 'integer']],
  exclusiveMaximum: ['most', ['number', 'integer']],
  minLength: ['least', ['string']],
  maxLength: ['most', ['string']],
  minItems: ['least', ['array']],
  maxItems: ['most', ['array']],
  minProperties: ['least', ['object']],
  maxProperties: ['most', ['object']],
};

const rules: Readonly<Record<string, Rule>> = {
  type: typeRule,
  enum: ({ path, value }) => [`${path} now takes only ${listed(value as unknown[])}`],
  const: ({ path, value }) => [`${path} now takes only ${listed([value])}`],
  required: requiredRule,
  properties: propertiesRule,
  additionalProperties: additionalRule,
  items: itemsRule,
  multipleOf: multipleRule,
  uniqueItems: ({ path, value, before }) =>
    value === false || !mayBe(before, ['array']) ? [] : [`${path} now refuses repeated items`],
  pattern: textRule,
  format: textRule,
  allOf: ({ comparison, before, path, value }) =>
    (value as Schema[]).flatMap((part) => comparison.compare(comparison, before, part, path)),
  anyOf: anyOfRule,
};

export function keywordDifferences(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
  path: string,
): string[] {
  return Object.entries(rulesOf(comparison, next)).flatMap(([keyword, value]) => {
    const asked = { comparison, before, next, path, keyword, value };
    const rule = rules[keyword];
    if (keyword in bounds) return boundRule(asked);
    return rule === undefined ? unknownRule(asked) : rule(asked);
  });
}

function mayBe(schema: JsonSchema, types: readonly string[]): boolean {
  return typesOf(schema).some((type) => types.includes(type));
}

function typeRule({ before, next, path }: Asked): string[] {
  const now = typesOf(next);
  return typesOf(before)
    .filter((type) => !now.includes(type) && !(type === 'integer' && now.includes('number')))
    .map((type) => `${path} no longer takes ${nameOf(type)}`);
}

function nameOf(type: string): string {
  if (type === 'null') return 'null';
  return `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`;
}

function requiredRule({ comparison, before, path, value }: Asked): string[] {
  if (!mayBe(before, ['object'])) return [];
  const was = new Set(namesOf(comparison, before['required']));
  return namesOf(comparison, value)
    .filter((name) => !was.has(name))
    .map((name) => `${fieldIn(path, name)} is now required`);
}

/** A field that the earlier schema did not name may be added, whatever values it takes. */
function propertiesRule({ comparison, before, path, value }: Asked): string[] {
  if (!mayBe(before, ['object'])) return [];
  const was = (before['properties'] as Record<string, Schema> | undefined) ?? {};
  return membersOf<Schema>(comparison, value).flatMap(([name, schema]) => {
    const isNew = !Object.hasOwn(was, name);
    if (isNew && 'patternProperties' in before && !isAnything(comparison, schema)) {
      return [cannotTell(fieldIn(path, name), 'patternProperties')];
    }
    const earlier = isNew ? describedRest(comparison, before) : was[name];
    if (earlier === undefined) return [];
    return comparison.compare(comparison, earlier, schema, fieldIn(path, name));
  });
}

/** What fields without a name of their own may hold, where the schema describes them. */
function describedRest(comparison: Comparison, before: JsonSchema): Schema | undefined {
  const { additionalProperties: rest } = before as { additionalProperties?: Schema };
  return rest === undefined || isAnything(comparison, rest) ? undefined : rest;
}

function additionalRule({ comparison, before, next, path, value }: Asked): string[] {
  if (!mayBe(before, ['object']) || isAnything(comparison, value as Schema)) return [];
  const named = (next['properties'] as Record<string, Schema> | undefined) ?? {};
  const was = membersOf<Schema>(comparison, before['properties']);
  const gone = was.filter(([name]) => !Object.hasOwn(named, name));
  const rest = (before['additionalProperties'] as Schema | undefined) ?? true;
  const others = isAnything(comparison, rest)
    ? [`${path} no longer takes fields of any name`]
    : comparison.compare(comparison, rest, value as Schema, `${path}.*`);
  const patterns = canonicalOf(comparison, [before['patternProperties'] ?? {}]);
  return [
    ...gone.flatMap(([name, schema]) =>
      comparison.compare(comparison, schema, value as Schema, fieldIn(path, name)),
    ),
    ...others,
    ...(patterns === canonicalOf(comparison, [next['patternProperties'] ?? {}])
      ? []
      : [cannotTell(path, 'patternProperties')]),
  ];
}

function itemsRule({ comparison, before, next, path, value }: Asked): string[] {
  if (!mayBe(before, ['array'])) return [];
  const isTuple = (schema: JsonSchema) => Array.isArray(schema['items']) || 'prefixItems' in schema;
  if (isTuple(before) || isTuple(next)) {
    const places = ({ items, prefixItems, additionalItems }: JsonSchema) =>
      canonicalOf(comparison, { items, prefixItems, additionalItems });
    return places(before) === places(next) ? [] : [cannotTell(path, 'items')];
  }
  const earlier = (before['items'] as Schema | undefined) ?? true;
  return comparison.compare(comparison, earlier, value as Schema, `${path}[]`);
}

function boundRule({ before, path, keyword, value }: Asked): string[] {
  const [kind, types] = bounds[keyword] ?? ['least', []];
  if (!mayBe(before, types)) return [];
  const limit = value as number;
  const twin = twinOf(keyword);
  const was = boundOf(before, keyword);
  const wasTwin = twin === undefined ? undefined : boundOf(before, twin);
  const follows = (earlier: number | undefined, isTwin: boolean): boolean => {
    if (earlier === undefined) return false;
    if (earlier === limit) return !isTwin || !keyword.startsWith('exclusive');
    return kind === 'least' ? earlier > limit : earlier < limit;
  };
  if (follows(was, false) || follows(wasTwin, true)) return [];
  if (kind === 'least' && limit <= 0 && !types.includes('number')) return [];
  return [`${path}: ${keyword} is now ${limit}${was === undefined ? '' : `, was ${was}`}`];
}

function twinOf(keyword: string): string | undefined {
  const twins: Record<string, string> = {
    minimum: 'exclusiveMinimum',
    exclusiveMinimum: 'minimum',
    maximum: 'exclusiveMaximum',
    exclusiveMaximum: 'maximum',
  };
  return twins[keyword];
}

function boundOf(schema: JsonSchema, keyword: string): number | undefined {
  const value = schema[keyword];
  return typeof value === 'number' ? value : undefined;
}

function multipleRule({ before, path, value }: Asked): string[] {
  const step = value as number;
  if (!mayBe(before, ['number', 'integer'])) return [];
  const was = boundOf(before, 'multipleOf') ?? (before['type'] === 'integer' ? 1 : undefined);
  if (was !== undefined && Number.isInteger(was / step)) return [];
  return [`${path} now takes only multiples of ${step}`];
}

function textRule({ before, path, keyword, value }: Asked): string[] {
  const was = before[keyword];
  if (was === value || !mayBe(before, ['string'])) return [];
  return was === undefined
    ? [`${path} now has the ${keyword} ${listed([value])}`]
    : [cannotTell(path, keyword)];
}

function anyOfRule(asked: Asked): string[] {
  const { comparison, before, path, value } = asked;
  const branches = value as Schema[];
  if (canonicalOf(comparison, before['anyOf'] ?? null) === canonicalOf(comparison, value))
    return unknownRule(asked);
  const fits = (one: Schema) =>
    branches.some((branch) => comparison.compare(comparison, one, branch, path).length === 0);
  if (fits(before)) return [];
  return [`${path} may no longer match any branch of anyOf`];
}

/** Conditions that only follow where they have not changed. */
function unknownRule({ comparison, before, next, path, keyword }: Asked): string[] {
  const group = groups.find((one) => one.includes(keyword)) ?? [keyword];
  const of = (schema: JsonSchema) =>
    canonicalOf(
      comparison,
      group.map((name) => schema[name] ?? null),
    );
  const isDefined = comparison.sameDefinitions || !keyword.startsWith('$');
  const mayDepend = keyword.startsWith('unevaluated') || !isDefined;
  const text = of(next);
  const isFree = comparison.sameDefinitions || !/"\$(?:ref|dynamicRef)":/.test(text);
  return text === of(before) && isFree && !mayDepend ? [] : [cannotTell(path, keyword)];
}

/** Keywords that mean something only together. */
const groups: readonly (readonly string[])[] = [
  ['if', 'then', 'else'],
  ['contains', 'minContains', 'maxContains'],
  ['items', 'prefixItems', 'additionalItems'],
];

function cannotTell(path: string, keyword: string): string {
  return `${path}: ${keyword} has changed, and it cannot be told whether all earlier inputs are still taken`;
}

function listed(values: readonly unknown[]): string {
  const text = values.map((value) => JSON.stringify(value)).join(', ');
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
