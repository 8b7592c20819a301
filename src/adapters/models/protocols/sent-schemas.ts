/** The schemas that providers accept. Pure. Each answer and each call is validated against the whole schema later. */
import { isObject, type Json } from '../../../kernel/json.ts';
import { mapSubschemas } from '../../../kernel/schema-rules.ts';

/** The keywords that the strict mode of OpenAI's structured output supports. */
const keywords = new Set([
  'type',
  'title',
  'description',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'anyOf',
]);

/** Keywords with which providers do not accept a schema as that of an object. */
const combinators = ['$ref', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'enum', 'const'];

/** Whether a schema can be sent to a provider, which accepts only the schema of an object. */
export function isObjectSchema(schema: Readonly<Record<string, unknown>>): boolean {
  return schema['type'] === 'object' && combinators.every((name) => !Object.hasOwn(schema, name));
}

/**
 * Whether a schema fits strict mode: every property is required, and no others are allowed. Providers
 * reject other schemas in strict mode, and treat them as a hint without it. Servers that do not know the
 * mode ignore it.
 */
export function isStrictSchema(schema: unknown, isRoot = true): boolean {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return false;
  const {
    type,
    properties = {},
    required = [],
    additionalProperties,
    items,
    anyOf = [],
  } = schema as Record<string, unknown>;
  if (!Object.keys(schema).every((name) => keywords.has(name))) return false;
  if (isRoot && type !== 'object') return false;
  if (type === 'object') {
    const names = Object.keys(properties as object);
    if (additionalProperties !== false || !Array.isArray(required)) return false;
    const certain = new Set<unknown>(required);
    if (!names.every((name) => certain.has(name))) return false;
  }
  return (
    Array.isArray(anyOf) &&
    [...Object.values(properties as object), ...anyOf].every((one) => isStrictSchema(one, false)) &&
    (items === undefined || isStrictSchema(items, false))
  );
}

/** Properties of a schema that Anthropic compiles in time, of those that may be left out. */
const optionalMax = 10;

/**
 * The schema of an object as Anthropic's structured output takes it: every object closed, and only the keywords of strict
 * mode. Null for a schema that would lose its meaning so, or that is too large for it.
 */
export function closedSchema(schema: Json): Json | null {
  const optional = { count: 0 };
  const closed = closedPart(schema, optional);
  return optional.count > optionalMax ? null : closed;
}

function closedPart(schema: unknown, optional: { count: number }): Json | null {
  if (!isObject(schema)) return null;
  const closed: Json = {};
  for (const [name, value] of Object.entries(schema)) {
    if (openKeywords.has(name)) return null;
    if (keywords.has(name)) closed[name] = value;
  }
  const { type, properties, required, items, anyOf, additionalProperties: others } = schema;
  if (type === 'object') {
    if (!isObject(properties) || others === true || isObject(others)) return null;
    const certain = new Set(Array.isArray(required) ? required : []);
    const parts: Json = {};
    for (const [name, property] of Object.entries(properties)) {
      if (!certain.has(name)) optional.count += 1;
      parts[name] = closedPart(property, optional);
      if (parts[name] === null) return null;
    }
    closed['properties'] = parts;
    closed['additionalProperties'] = false;
  }
  if (items !== undefined) closed['items'] = closedPart(items, optional);
  if (anyOf !== undefined) {
    if (!Array.isArray(anyOf)) return null;
    const choices = anyOf.map((one) => closedPart(one, optional));
    if (choices.includes(null)) return null;
    closed['anyOf'] = choices;
  }
  return closed['items'] === null ? null : closed;
}

/** Keywords without which a schema says something else; other unknown ones only bound its values. */
const openKeywords = new Set(['$ref', 'allOf', 'oneOf', 'not', 'if', 'patternProperties']);

const openAiSchemas = new WeakMap<object, Json>();

/**
 * The parameters of a tool as OpenAI takes them: without `propertyNames` and patterns that look ahead or behind, and with
 * the `items` of each array and the `properties` of the object. Kept for each schema, because the tools of a run do not
 * change.
 */
export function openAiSchema(schema: Json): Json {
  let own = openAiSchemas.get(schema);
  if (own === undefined) {
    own = { properties: {}, ...acceptedPart(schema) };
    openAiSchemas.set(schema, own);
  }
  return own;
}

const accepted = (schema: unknown): unknown => (isObject(schema) ? acceptedPart(schema) : schema);

function acceptedPart(schema: Json): Json {
  const { propertyNames: _, pattern, ...rest } = schema;
  const part = mapSubschemas(rest, accepted);
  if (pattern !== undefined && !/\(\?<?[=!]/.test(String(pattern))) part['pattern'] = pattern;
  const { type, items } = part;
  const mayBeList = type === 'array' || (Array.isArray(type) && type.includes('array'));
  if (mayBeList && items === undefined) part['items'] = {};
  return part;
}
