/** Parts of a JSON Schema that a comparison of two schemas looks at. */
import type { JsonSchema } from '../kernel/json-schema.ts';
import { SchemaError } from '../kernel/schema-rules.ts';
import { OutOfSteps, StepMeter } from '../kernel/schema-run.ts';
import { canonicalJson } from '../kernel/text.ts';

export type Schema = JsonSchema | boolean;

/** Steps of one comparison: a pair of schemas costs some for each of their characters. */
const stepsMax = 20_000_000;
const stepsPerChar = 4;
const stepsPerPair = 1_000;
/** Pairs of schemas within one another. */
const depthMax = 100;
/** Characters of a field's name in a sentence. */
const nameCharsMax = 100;

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
  /** Shared with the validation of values that a schema lists. */
  readonly meter: StepMeter;
  /** Canonical texts of what schemas refuse. */
  readonly texts: Map<JsonSchema, string>;
  /** Compares two schemas within these. */
  compare(comparison: Comparison, before: Schema, next: Schema, path: string): string[];
}

export function beginComparison(
  before: JsonSchema,
  next: JsonSchema,
  compare: Comparison['compare'],
): Comparison {
  const definitions = ({ $defs, definitions: more }: JsonSchema) => canonicalJson({ $defs, more });
  const hasOnlyDefinitions = [before, next].every((schema) => onlyRefersToDefinitions(schema));
  return {
    before,
    next,
    sameDefinitions: hasOnlyDefinitions && definitions(before) === definitions(next),
    open: new Set(),
    meter: new StepMeter(stepsMax),
    texts: new Map(),
    compare,
  };
}

/**
 * The texts of what two schemas refuse, equal for equal rules. Throws OutOfSteps when the comparison has become too large:
 * references may lead to the same pair along very many ways.
 */
export function textsOf(
  comparison: Comparison,
  before: JsonSchema,
  next: JsonSchema,
): readonly [before: string, next: string] {
  const [a, b] = [textOf(comparison, before), textOf(comparison, next)];
  comparison.meter.spend(stepsPerPair + stepsPerChar * (a.length + b.length));
  if (comparison.open.size >= depthMax) throw new OutOfSteps();
  return [a, b];
}

function textOf({ meter, texts }: Comparison, schema: JsonSchema): string {
  const known = texts.get(schema);
  if (known !== undefined) return known;
  const text = canonicalJson(rulesOf(schema));
  meter.spend(stepsPerChar * text.length);
  texts.set(schema, text);
  return text;
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
  return `${path}.${name.length <= nameCharsMax ? name : `${name.slice(0, nameCharsMax)}…`}`;
}

/** Whether a schema takes every value. */
export function isAnything(schema: Schema): boolean {
  return schema === true || (schema !== false && Object.keys(rulesOf(schema)).length === 0);
}

/** The schema without what only describes. */
export function rulesOf(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !annotations.has(key)));
}

/** Whether there is a reference in it. */
export function refers(schema: JsonSchema): boolean {
  return /"\$(?:ref|dynamicRef|recursiveRef)":/.test(JSON.stringify(schema));
}

function onlyRefersToDefinitions(schema: JsonSchema): boolean {
  const all = JSON.stringify(schema).match(/"\$(?:ref|dynamicRef|recursiveRef)":"[^"]*"/g) ?? [];
  return all.every((one) => /^"\$ref":"#\/(?:\$defs|definitions)\//.test(one));
}

/** What a schema that is nothing but references to definitions leads to; undefined where that is nothing. */
export function resolved(root: JsonSchema, schema: JsonSchema): JsonSchema | undefined {
  let found: unknown = schema;
  for (let hops = 0; hops < 20; hops++) {
    if (found === true) return {};
    if (found === null || typeof found !== 'object') return undefined;
    const rules = rulesOf(found as JsonSchema);
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
