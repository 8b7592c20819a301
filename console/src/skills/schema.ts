/** Reads a JSON Schema to show it and to make a form. It does not validate. */

export type JsonSchema = { readonly [keyword: string]: unknown };

/** `$ref`s are followed so far; a schema may contain itself. */
const depthMax = 8;

export const isSchema = (value: unknown): value is JsonSchema =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

export const schemasOf = (value: unknown): readonly JsonSchema[] =>
  Array.isArray(value) ? value.filter(isSchema) : [];

/** The target of a `$ref` within the document, merged with its sibling keywords. */
export function resolved(schema: JsonSchema, root: JsonSchema, depth = 0): JsonSchema {
  const { $ref, ...beside } = schema;
  if (typeof $ref !== 'string' || !$ref.startsWith('#') || depth > depthMax) return schema;
  let found: unknown = root;
  for (const part of $ref.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    found = isSchema(found) || Array.isArray(found) ? (found as JsonSchema)[name] : undefined;
  }
  return isSchema(found) ? { ...resolved(found, root, depth + 1), ...beside } : schema;
}

export const typesOf = ({ type }: JsonSchema): readonly string[] =>
  (Array.isArray(type) ? type : [type]).filter((one): one is string => typeof one === 'string');

/**
 * Options that the text of a type names, and levels of it. Options may have options, so more of them, or more levels,
 * would be very many: these are 216.
 */
const optionsMax = 6;
const textLevelsMax = 3;

/** Its type in a word or two: `text`, `list of numbers`, `one of 3`. */
export function typeText(schema: JsonSchema, root: JsonSchema, depth = 0): string {
  const whole = resolved(schema, root);
  if ('const' in whole) return JSON.stringify(whole['const']);
  if (Array.isArray(whole['enum'])) return 'one of';
  const options = [...schemasOf(whole['oneOf']), ...schemasOf(whole['anyOf'])].filter(hasShape);
  if (options.length > 0 && typesOf(whole).length === 0 && depth < textLevelsMax) {
    const named = options.slice(0, optionsMax).map((one) => typeText(one, root, depth + 1));
    return [...new Set(named), ...(options.length > optionsMax ? ['more'] : [])].join(' or ');
  }
  const types = typesOf(whole);
  if (types.length === 0) return isSchema(whole['properties']) ? 'object' : 'any';
  return types
    .map((type) =>
      type === 'array' && isSchema(whole['items']) && depth < textLevelsMax
        ? `array of ${typeText(whole['items'], root, depth + 1)}`
        : type,
    )
    .join(' or ');
}

/** Says more than which properties are required: an option of a form, and not a rule alone. */
export const hasShape = (schema: JsonSchema): boolean =>
  ['type', 'properties', 'items', 'enum', 'const', '$ref', 'oneOf', 'anyOf', 'allOf'].some(
    (keyword) => keyword in schema,
  );

const count = new Intl.NumberFormat('en');

/** `1 to 100`, `at least 2`, `at most 5`; undefined without bounds. */
function boundsText(from: unknown, to: unknown, unit: string): string | undefined {
  const [min, max] = [from, to].map((bound) => typeof bound === 'number' && count.format(bound));
  const unitText = unit === '' ? '' : ` ${unit}`;
  if (min && max) return min === max ? `exactly ${min}${unitText}` : `${min} to ${max}${unitText}`;
  if (min) return `at least ${min}${unitText}`;
  return max ? `at most ${max}${unitText}` : undefined;
}

/** The rules of a value in words, without its type. */
export function rulesOf(schema: JsonSchema): readonly string[] {
  const values = schema['enum'];
  return [
    Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(', ') : undefined,
    boundsText(schema['minimum'], schema['maximum'], ''),
    boundsText(schema['minLength'], schema['maxLength'], 'characters'),
    boundsText(schema['minItems'], schema['maxItems'], 'items'),
    boundsText(schema['minProperties'], schema['maxProperties'], 'properties'),
    typeof schema['exclusiveMinimum'] === 'number'
      ? `more than ${count.format(schema['exclusiveMinimum'])}`
      : undefined,
    typeof schema['exclusiveMaximum'] === 'number'
      ? `less than ${count.format(schema['exclusiveMaximum'])}`
      : undefined,
    typeof schema['multipleOf'] === 'number' ? `multiple of ${schema['multipleOf']}` : undefined,
    schema['uniqueItems'] === true ? 'all different' : undefined,
    typeof schema['format'] === 'string' ? `format ${schema['format']}` : undefined,
    typeof schema['pattern'] === 'string' ? `matches ${schema['pattern']}` : undefined,
    'default' in schema ? `default ${JSON.stringify(schema['default'])}` : undefined,
  ].filter((rule) => rule !== undefined);
}

/** `Either url or base64`, where that is all that the options of an object say. */
export function eitherText(schema: JsonSchema): string | undefined {
  for (const [keyword, words] of [
    ['oneOf', 'Exactly one of'],
    ['anyOf', 'At least one of'],
  ] as const) {
    const options = schemasOf(schema[keyword]);
    if (options.length === 0 || options.some(hasShape)) continue;
    const names = options.map(({ required }) => required);
    if (!names.every((one): one is string[] => Array.isArray(one) && one.length > 0)) continue;
    return `${words}: ${names.map((one) => one.join(' with ')).join(', ')}.`;
  }
  return undefined;
}
