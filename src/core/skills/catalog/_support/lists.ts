/** Schemas of lists only: their answers for the parts of a text can be joined. */

import type { JsonSchema } from '../../definition.ts';

const aboutObjects = new Set(['type', 'properties', 'required', 'additionalProperties']);
const aboutLists = new Set(['type', 'items', 'uniqueItems']);
/** Keywords that do not constrain the value. */
const remarks = new Set([
  'title',
  'description',
  '$schema',
  '$id',
  '$comment',
  '$defs',
  'definitions',
]);

/**
 * Whether the schema asks for a list, or for an object of nothing but lists, and sets no rule on a
 * list as a whole (such as `minItems`) that a part or the joined lists might break.
 */
export function listsOnly(schema: JsonSchema): boolean {
  if (isList(schema)) return true;
  const lists = Object.values(listsOf(schema));
  return (
    schema['type'] === 'object' &&
    schema['additionalProperties'] === false &&
    knowsOnly(schema, aboutObjects) &&
    lists.length > 0 &&
    lists.every(isList)
  );
}

/** Joins the answers: each entry once, in the order of the parts. `schema` must ask for lists only. */
export function joinLists(schema: JsonSchema, parts: readonly unknown[]): unknown {
  if (isList(schema)) return distinct(parts.flatMap(entriesOf));
  const lists = Object.keys(listsOf(schema)).flatMap((name) => {
    const given = parts.flatMap((part) =>
      isObject(part) && Object.hasOwn(part, name) ? [part[name]] : [],
    );
    return given.length === 0 ? [] : [[name, distinct(given.flatMap(entriesOf))]];
  });
  return Object.fromEntries(lists);
}

function listsOf(schema: JsonSchema): Readonly<Record<string, unknown>> {
  const properties = schema['properties'];
  return isObject(properties) ? properties : {};
}

function isList(schema: unknown): boolean {
  return isObject(schema) && schema['type'] === 'array' && knowsOnly(schema, aboutLists);
}

function knowsOnly(schema: JsonSchema, keywords: ReadonlySet<string>): boolean {
  return Object.keys(schema).every((keyword) => keywords.has(keyword) || remarks.has(keyword));
}

function entriesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Keeps one of equal JSON values. */
function distinct(entries: readonly unknown[]): unknown[] {
  const seen = new Set<string>();
  return entries.filter((entry) => {
    const written = JSON.stringify(entry, sorted);
    return !seen.has(written) && seen.add(written);
  });
}

/** Sorts members by name, because their order has no meaning in JSON. */
function sorted(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
