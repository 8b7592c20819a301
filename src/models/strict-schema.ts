/** What the strict mode of OpenAI's structured output knows. */
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

/** What makes of an object's schema something that providers do not take for one. */
const combinators = ['$ref', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'enum', 'const'];

/** Whether an answer can be asked for with a schema: providers refuse one of anything but an object. */
export function isObjectSchema(schema: Readonly<Record<string, unknown>>): boolean {
  return schema['type'] === 'object' && combinators.every((name) => !Object.hasOwn(schema, name));
}

/**
 * Whether a schema may be asked for strictly. In strict mode every property has to be required and
 * nothing else allowed, and a schema that says otherwise is refused; without it the schema is a wish.
 * Servers that do not know the mode ignore it.
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
    if (!names.every((name) => required.includes(name))) return false;
  }
  return (
    Array.isArray(anyOf) &&
    [...Object.values(properties as object), ...anyOf].every((one) => isStrictSchema(one, false)) &&
    (items === undefined || isStrictSchema(items, false))
  );
}
