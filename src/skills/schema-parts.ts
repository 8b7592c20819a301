/** Parts of a JSON Schema that a comparison of two schemas looks at. */
import type { JsonSchema } from '../kernel/json-schema.ts';
import { canonicalJson } from '../kernel/text.ts';

export type Schema = JsonSchema | boolean;

/** Pairs of schemas that one comparison looks at. */
const pairsMax = 5_000;

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
  left: number;
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
    left: pairsMax,
    compare,
  };
}

/** False when the comparison has looked at too many pairs. */
export function spend(comparison: Comparison): boolean {
  comparison.left -= 1;
  return comparison.left >= 0;
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
