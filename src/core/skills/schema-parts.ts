/**
 * Parts of a JSON Schema that a comparison of two schemas reads. What reads a whole schema spends steps of the comparison
 * for it: a schema may have thousands of keywords, and be read for each branch of a union.
 */
import { BoundedTests } from '../../kernel/bounded-schema.ts';
import { dialectOf, type JsonSchema } from '../../kernel/json-schema.ts';
import { SchemaError } from '../../kernel/schema-rules.ts';
import { OutOfSteps, StepMeter } from '../../kernel/schema-run.ts';
import { canonicalJson } from '../../kernel/text.ts';

export type Schema = JsonSchema | boolean;

/** Steps of one comparison: a pair of schemas costs some for each of their characters. */
const stepsMax = 20_000_000;
const stepsPerChar = 4;
const stepsPerPair = 1_000;
const stepsPerKey = 32;
/** Pairs of schemas within one another. */
const depthMax = 100;
/** Sentences that a report names of one skill. */
export const differencesMax = 20;
/** Characters of a field's name in a sentence, and of the path to it. */
const nameCharsMax = 100;
const pathCharsMax = 1_000;

/** Keywords that refuse nothing. */
const annotations = new Set(
  (
    '$schema $id $comment $anchor $defs definitions title description default examples deprecated ' +
    'readOnly writeOnly contentEncoding contentMediaType contentSchema'
  ).split(' '),
);
const allTypes = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];

/** One comparison of two whole schemas. */
export interface Comparison {
  readonly before: JsonSchema;
  readonly next: JsonSchema;
  /** Whether equal references lead to equal schemas. */
  readonly sameDefinitions: boolean;
  /** The pairs that are being compared. */
  readonly open: Set<string>;
  readonly meter: StepMeter;
  /** For the values that a schema lists. */
  readonly tests: BoundedTests;
  /** Canonical texts of what schemas refuse. */
  readonly texts: Map<JsonSchema, string>;
}

export function beginComparison(before: JsonSchema, next: JsonSchema): Comparison {
  const meter = new StepMeter(stepsMax);
  const definitions = ({ $defs, definitions: more }: JsonSchema) => canonicalJson({ $defs, more });
  const hasOnlyDefinitions = [before, next].every((schema) => onlyRefersToDefinitions(schema));
  return {
    before,
    next,
    sameDefinitions: hasOnlyDefinitions && definitions(before) === definitions(next),
    open: new Set(),
    meter,
    tests: new BoundedTests(meter, dialectOf(before)),
    texts: new Map(),
  };
}

/** Begins with a pair of schemas. Throws OutOfSteps when the comparison has become too large. */
export function beginPair({ meter, open }: Comparison): void {
  meter.spend(stepsPerPair);
  if (open.size >= depthMax) throw new OutOfSteps();
}

/**
 * The texts of what two schemas refuse, equal for equal rules. They are spent each time, for all that is read of a pair:
 * references may lead to the same pair along very many ways.
 */
export function textsOf(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
): readonly [before: string, next: string] {
  const [a, b] = [textOf(comparison, before), textOf(comparison, next)];
  comparison.meter.spend(stepsPerChar * (a.length + b.length));
  return [a, b];
}

function textOf(comparison: Comparison, schema: JsonSchema): string {
  const known = comparison.texts.get(schema);
  if (known !== undefined) return known;
  const text = canonicalOf(comparison, rulesOf(comparison, schema));
  comparison.texts.set(schema, text);
  return text;
}

/** Equal for equal values. */
export function canonicalOf({ meter }: Comparison, value: unknown): string {
  const text = canonicalJson(value);
  meter.spend(stepsPerKey + stepsPerChar * text.length);
  return text;
}

/** The members of an object, such as `properties`; none where there is none. */
export function membersOf<T>({ meter }: Comparison, value: unknown): [name: string, member: T][] {
  const members = Object.entries((value ?? {}) as Record<string, T>);
  meter.spend(stepsPerKey * members.length);
  return members;
}

/** The names in a list, such as `required`; none where there is none. */
export function namesOf({ meter }: Comparison, value: unknown): readonly string[] {
  const names = (value ?? []) as readonly string[];
  meter.spend(stepsPerKey * names.length);
  return names;
}

/** The sentences of a comparison, or one that says why there are none. */
export function compared(path: string, compare: () => string[]): string[] {
  try {
    return compare();
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return [
      error instanceof OutOfSteps
        ? `${path}: the schemas are too large to compare`
        : `${path}: cannot tell, because a schema ${error.message}`,
    ];
  }
}

/** The path of a field. */
export function fieldIn(path: string, name: string): string {
  // References may lead a hundred times deeper.
  const parent = path.length <= pathCharsMax ? path : `${path.slice(0, pathCharsMax)}…`;
  return `${parent}.${name.length <= nameCharsMax ? name : `${name.slice(0, nameCharsMax)}…`}`;
}

/** Whether a schema takes every value. */
export function isAnything(comparison: Comparison, schema: Schema): boolean {
  if (typeof schema === 'boolean') return schema;
  return Object.keys(rulesOf(comparison, schema)).length === 0;
}

/** The schema without what only describes. */
export function rulesOf(comparison: Comparison, schema: JsonSchema): JsonSchema {
  const keywords = membersOf<unknown>(comparison, schema);
  return Object.fromEntries(keywords.filter(([key]) => !annotations.has(key)));
}

/** Whether there is a reference in it. */
export function refers(comparison: Comparison, schema: JsonSchema): boolean {
  const text = textOf(comparison, schema);
  comparison.meter.spend(text.length);
  return /"\$(?:ref|dynamicRef|recursiveRef)":/.test(text);
}

function onlyRefersToDefinitions(schema: JsonSchema): boolean {
  const all = JSON.stringify(schema).match(/"\$(?:ref|dynamicRef|recursiveRef)":"[^"]*"/g) ?? [];
  return all.every((one) => /^"\$ref":"#\/(?:\$defs|definitions)\//.test(one));
}

/** What a schema that is nothing but references to definitions leads to; undefined where that is nothing. */
export function resolved(
  comparison: Comparison,
  root: JsonSchema,
  schema: JsonSchema,
): JsonSchema | undefined {
  let found: unknown = schema;
  for (let hops = 0; hops < 20; hops++) {
    if (found === true) return {};
    if (found === null || typeof found !== 'object') return undefined;
    const rules = rulesOf(comparison, found as JsonSchema);
    const { $ref: reference } = rules;
    if (typeof reference !== 'string' || Object.keys(rules).length > 1) return found as JsonSchema;
    const [, place, name] = /^#\/(\$defs|definitions)\/([^/~%]+)$/.exec(reference) ?? [];
    if (place === undefined || name === undefined) return undefined;
    found = (root[place] as JsonSchema | undefined)?.[name];
  }
  return undefined;
}

/** The types that a schema allows; `integer` beside `number` is left out. */
export function typesOf(schema: JsonSchema): string[] {
  const named = [schema['type'] ?? allTypes].flat() as string[];
  return named.includes('number') ? named.filter((type) => type !== 'integer') : named;
}

/** All values that a schema may take, when it lists them. */
export function finiteValues(schema: JsonSchema): readonly unknown[] | undefined {
  if ('const' in schema) return [schema['const']];
  if (Array.isArray(schema['enum'])) return schema['enum'] as unknown[];
  if (schema['type'] === 'null') return [null];
  return schema['type'] === 'boolean' ? [true, false] : undefined;
}
