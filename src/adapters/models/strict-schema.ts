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
