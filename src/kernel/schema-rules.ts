/**
 * What the platform asks of a skill's schema beyond its dialect: 64 KiB of JSON, 32 levels, and
 * patterns that RE2 can express. Walks the schema as a schema (a property that is called `pattern`
 * is no pattern), and compiles nothing but the patterns.
 */
import { isObject, type Json } from './json.ts';
import { schemaRegExp } from './schema-regexp.ts';

/** What is wrong with a schema, as the predicate of a sentence: "is larger than 64 KiB". */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

/** UTF-8 bytes of a schema's JSON text. */
export const schemaBytesMax = 65_536;
/** Levels of objects and arrays in a schema. */
export const schemaDepthMax = 32;

const schemaKeywords = new Set([
  'additionalItems',
  'additionalProperties',
  'contains',
  'contentSchema',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
]);
const listKeywords = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const mapKeywords = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);
const referenceKeywords = new Set(['$dynamicRef', '$recursiveRef', '$ref']);

/** Throws SchemaError; says whether anything refers to another place. */
export function inspectSchema(schema: unknown): { hasReferences: boolean } {
  checkSchemaSize(schema);
  const found = { hasReferences: false };
  visitSchema(schema, found);
  return found;
}

/** Throws SchemaError for what is no object, or beyond the caps of bytes and levels. */
export function checkSchemaSize(schema: unknown): asserts schema is Json {
  if (!isObject(schema)) throw new SchemaError('must be an object');
  checkDepth(schema, 1);
  checkSize(schema);
}

/** Calls `visit` with each schema that is directly inside another one. */
export function eachSubschema(schema: Json, visit: (inner: unknown) => void): void {
  for (const [, inner] of eachSubschemaAt(schema)) visit(inner);
}

/** Each schema that is directly inside another one, with the names that lead to it. */
export function* eachSubschemaAt(
  schema: Json,
): Generator<readonly [place: readonly string[], inner: unknown]> {
  for (const [keyword, value] of Object.entries(schema)) {
    const isMap = mapKeywords.has(keyword) && isObject(value);
    if (isMap || (listKeywords.has(keyword) && Array.isArray(value))) {
      for (const [name, inner] of Object.entries(value as object)) yield [[keyword, name], inner];
    } else if (schemaKeywords.has(keyword)) yield [[keyword], value];
  }
}

/** The schema with `change` made to each schema directly inside it. */
export function mapSubschemas(schema: Json, change: (inner: unknown) => unknown): Json {
  const entries = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    if (mapKeywords.has(keyword) && isObject(value)) {
      const members = Object.entries(value).map(([name, inner]) => [name, change(inner)]);
      return [keyword, Object.fromEntries(members)];
    }
    if (listKeywords.has(keyword) && Array.isArray(value)) return [keyword, value.map(change)];
    return [keyword, schemaKeywords.has(keyword) ? change(value) : value];
  });
  return Object.fromEntries(entries);
}

function checkDepth(value: unknown, level: number): void {
  if (value === null || typeof value !== 'object') return;
  if (level > schemaDepthMax) {
    throw new SchemaError(`is nested more than ${schemaDepthMax} levels deep`);
  }
  for (const member of Object.values(value)) checkDepth(member, level + 1);
}

function checkSize(schema: object): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(schema);
  } catch (error) {
    throw new SchemaError(`cannot be written as JSON: ${(error as Error).message}`);
  }
  if (text === undefined || Buffer.byteLength(text) > schemaBytesMax) {
    throw new SchemaError(`is larger than ${schemaBytesMax / 1024} KiB of JSON`);
  }
}

function visitSchema(schema: unknown, found: { hasReferences: boolean }): void {
  if (!isObject(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    // Ajv would answer with a promise, which is truthy for every value.
    if (keyword === '$async') throw new SchemaError('must not use $async');
    if (keyword === 'pattern') checkPattern(value);
    if (keyword === 'patternProperties' && isObject(value)) {
      for (const pattern of Object.keys(value)) checkPattern(pattern);
    }
    if (referenceKeywords.has(keyword)) found.hasReferences = true;
  }
  eachSubschema(schema, (inner) => visitSchema(inner, found));
}

function checkPattern(pattern: unknown): void {
  if (typeof pattern !== 'string') return;
  try {
    schemaRegExp(pattern);
  } catch (error) {
    throw new SchemaError((error as Error).message);
  }
}
