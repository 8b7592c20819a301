/**
 * Compares the keywords of two schemas. Every keyword of the later schema is one more condition on a value, so each must
 * follow from the earlier schema. What the earlier schema demands beyond that is ignored, which only makes the comparison
 * stricter. Keywords with schemas within them are in `compatibility.ts`.
 */
import type { JsonSchema } from '../../kernel/json-schema.ts';
import { type Comparison, canonicalOf, fieldIn, namesOf, typesOf } from './schema-parts.ts';

/** One keyword of the later schema. */
export interface KeywordChange {
  readonly comparison: Comparison;
  readonly before: JsonSchema;
  readonly next: JsonSchema;
  readonly path: string;
  readonly keyword: string;
  /** Its value in the later schema. */
  readonly value: unknown;
}

type Rule = (change: KeywordChange) => string[];

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
  multipleOf: multipleRule,
  uniqueItems: ({ path, value, before }) =>
    value === false || !mayBe(before, ['array']) ? [] : [`${path} now refuses repeated items`],
  pattern: textRule,
  format: textRule,
};

/** Of a keyword that names no schemas within this one. */
export function keywordDifferences(change: KeywordChange): string[] {
  const { keyword } = change;
  if (keyword in bounds) return boundRule(change);
  return (rules[keyword] ?? unknownRule)(change);
}

export function mayBe(schema: JsonSchema, types: readonly string[]): boolean {
  return typesOf(schema).some((type) => types.includes(type));
}

function typeRule({ before, next, path }: KeywordChange): string[] {
  const now = typesOf(next);
  return typesOf(before)
    .filter((type) => !now.includes(type) && !(type === 'integer' && now.includes('number')))
    .map((type) => `${path} no longer takes ${nameOf(type)}`);
}

function nameOf(type: string): string {
  if (type === 'null') return 'null';
  return `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`;
}

function requiredRule({ comparison, before, path, value }: KeywordChange): string[] {
  if (!mayBe(before, ['object'])) return [];
  const was = new Set(namesOf(comparison, before['required']));
  return namesOf(comparison, value)
    .filter((name) => !was.has(name))
    .map((name) => `${fieldIn(path, name)} is now required`);
}

function boundRule({ before, path, keyword, value }: KeywordChange): string[] {
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

function multipleRule({ before, path, value }: KeywordChange): string[] {
  const step = value as number;
  if (!mayBe(before, ['number', 'integer'])) return [];
  const was = boundOf(before, 'multipleOf') ?? (before['type'] === 'integer' ? 1 : undefined);
  if (was !== undefined && Number.isInteger(was / step)) return [];
  return [`${path} now takes only multiples of ${step}`];
}

function textRule({ before, path, keyword, value }: KeywordChange): string[] {
  const was = before[keyword];
  if (was === value || !mayBe(before, ['string'])) return [];
  return was === undefined
    ? [`${path} now has the ${keyword} ${listed([value])}`]
    : [cannotTell(path, keyword)];
}

/** Conditions that only follow where they have not changed. */
export function unknownRule({ comparison, before, next, path, keyword }: KeywordChange): string[] {
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

export function cannotTell(path: string, keyword: string): string {
  return `${path}: ${keyword} has changed, and it cannot be told whether all earlier inputs are still taken`;
}

function listed(values: readonly unknown[]): string {
  const text = values.map((value) => JSON.stringify(value)).join(', ');
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
