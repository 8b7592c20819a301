/**
 * Makes schemas of a document self-contained: referenced schemas become `$defs`. Malformed keywords, and definitions
 * beyond the platform's size limit, are left out; this is safe because the service validates its requests itself.
 */
import { isObject, type Json } from '../../../kernel/json.ts';
import { schemaRegExp } from '../../../kernel/schema-regexp.ts';
import { mapSubschemas } from '../../../kernel/schema-rules.ts';
import { DocumentError } from './operation.ts';
import { resolveObject, targetOf } from './references.ts';

/** Characters of the JSON of all definitions together. */
const definitionsCharsMax = 40_000;
/** Levels of schemas inside one, without those that it refers to. */
const levelsMax = 11;
const textCharsMax = 1_000;

export type Direction = 'request' | 'response';

/** Converted schemas, and the definitions that they refer to. */
export class SchemaBundle {
  readonly #document: Json;
  readonly #direction: Direction;
  /** Names of the definitions, by their references. */
  readonly #names = new Map<string, string>();
  readonly #references: string[] = [];

  constructor(document: Json, direction: Direction) {
    this.#document = document;
    this.#direction = direction;
  }

  /** The schema with its references changed to those of the bundle. */
  convert(schema: unknown, level = 0): unknown {
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) return {};
    if (level > levelsMax) return {};
    const cleaned = withoutUnusable(schema);
    const { $ref, ...rest } = cleaned;
    const pruned = withoutHidden(this.#document, this.#direction, rest);
    const inner = mapSubschemas(pruned, (one) => this.convert(one, level + 1));
    if ($ref === undefined) return inner;
    return { $ref: `#/$defs/${this.#nameFor($ref)}`, ...inner };
  }

  /** What the converted schemas refer to, by the names in `$defs`: those nearest to the value come first. */
  definitions(): Json {
    const definitions: Json = {};
    let chars = 0;
    for (let i = 0; i < this.#references.length; i++) {
      const reference = this.#references[i] as string;
      const name = this.#names.get(reference) as string;
      const before = this.#references.length;
      const converted = this.convert(targetOf(this.#document, reference), 1);
      const length = JSON.stringify(converted).length;
      if (chars + length <= definitionsCharsMax) {
        chars += length;
        definitions[name] = converted;
        continue;
      }
      definitions[name] = { description: 'Not described here, because the whole is too large.' };
      for (const dropped of this.#references.splice(before)) this.#names.delete(dropped);
    }
    return definitions;
  }

  #nameFor(reference: unknown): string {
    targetOf(this.#document, reference);
    const text = reference as string;
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const last = text.split('/').at(-1) ?? '';
    const base = last.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 80) || 'schema';
    const taken = new Set(this.#names.values());
    let name = base;
    for (let n = 2; taken.has(name); n++) name = `${base}-${n}`;
    this.#names.set(text, name);
    this.#references.push(text);
    return name;
  }
}

const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number';
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0;
const isSchema = (value: unknown) => isObject(value) || typeof value === 'boolean';
const isSchemaList = (value: unknown) =>
  Array.isArray(value) && value.length > 0 && value.every(isSchema);
const isSchemaMap = isObject;
const isTextList = (value: unknown) => Array.isArray(value) && value.every(isText);

const types = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);

/** The keywords that are kept, and what each must be. */
const keywords: Readonly<Record<string, (value: unknown) => boolean>> = {
  $ref: isText,
  type: (value) =>
    types.has(value as string) ||
    (Array.isArray(value) && value.length > 0 && value.every((one) => types.has(one))),
  title: isText,
  description: isText,
  default: isShort,
  examples: Array.isArray,
  deprecated: (value) => value === true,
  format: isText,
  contentEncoding: isText,
  contentMediaType: isText,
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: () => true,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  ...{ minimum: isNumber, maximum: isNumber },
  ...{ exclusiveMinimum: isNumber, exclusiveMaximum: isNumber },
  ...{ minLength: isCount, maxLength: isCount, minItems: isCount, maxItems: isCount },
  ...{ minProperties: isCount, maxProperties: isCount, minContains: isCount, maxContains: isCount },
  pattern: isUsablePattern,
  uniqueItems: (value) => typeof value === 'boolean',
  required: isTextList,
  items: isSchema,
  prefixItems: isSchemaList,
  contains: isSchema,
  properties: isSchemaMap,
  patternProperties: (value) => isObject(value) && Object.keys(value).every(isUsablePattern),
  ...{ additionalProperties: isSchema, unevaluatedProperties: isSchema, propertyNames: isSchema },
  ...{ allOf: isSchemaList, anyOf: isSchemaList, oneOf: isSchemaList, not: isSchema },
  dependentSchemas: isSchemaMap,
  dependentRequired: (value) => isObject(value) && Object.values(value).every(isTextList),
};

const conditions = new Set(['if', 'then', 'else']);

function isUsable(keyword: string, value: unknown): boolean {
  if (conditions.has(keyword)) return isSchema(value);
  return Object.hasOwn(keywords, keyword) && keywords[keyword]?.(value) === true;
}

function isUsablePattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false;
  try {
    schemaRegExp(pattern);
    return true;
  } catch {
    return false;
  }
}

function withoutUnusable(schema: Json): Json {
  const kept = Object.entries(schema)
    .filter(([keyword, value]) => isUsable(keyword, value))
    .map(([keyword, value]) => [keyword, shortened(keyword, value)]);
  const cleaned: Json = Object.fromEntries(kept);
  const { type, enum: values } = cleaned;
  // `nullable: true` of 3.0 beside an enum that does not list null.
  if (Array.isArray(type) && type.includes('null') && Array.isArray(values)) {
    cleaned['enum'] = [...new Set([...values, null])];
  }
  if (Array.isArray(cleaned['enum'])) cleaned['enum'] = withoutRepeated(cleaned['enum']);
  if (Array.isArray(cleaned['type'])) cleaned['type'] = [...new Set(cleaned['type'])];
  if (Array.isArray(cleaned['required'])) cleaned['required'] = [...new Set(cleaned['required'])];
  return cleaned;
}

function withoutRepeated(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

function shortened(keyword: string, value: unknown): unknown {
  if (keyword === 'examples') return (value as unknown[]).filter(isShort).slice(0, 1);
  const isLong = (keyword === 'description' || keyword === 'title') && !isShort(value);
  return isLong ? `${(value as string).slice(0, textCharsMax)}…` : value;
}

/** Short enough to be shown, and too flat to count in the depth of a schema. */
function isShort(value: unknown): boolean {
  const text = JSON.stringify(value);
  return text.length <= textCharsMax && !/([[{][^\]}]*){4}/.test(text);
}

/** Without the properties that a request does not send (readOnly), or an answer does not have (writeOnly). */
function withoutHidden(document: Json, direction: Direction, schema: Json): Json {
  const { properties, required } = schema;
  if (!isObject(properties)) return schema;
  const flag = direction === 'request' ? 'readOnly' : 'writeOnly';
  const shown = Object.entries(properties).filter(([, one]) => !isFlagged(document, one, flag));
  const names = new Set(shown.map(([name]) => name));
  return {
    ...schema,
    properties: Object.fromEntries(shown),
    ...(Array.isArray(required) && {
      required: required.filter((name) => names.has(name) || !Object.hasOwn(properties, name)),
    }),
  };
}

function isFlagged(document: Json, schema: unknown, flag: string): boolean {
  if (!isObject(schema)) return false;
  if (schema[flag] === true) return true;
  if (schema['$ref'] === undefined) return false;
  try {
    return resolveObject(document, schema)?.[flag] === true;
  } catch (error) {
    if (error instanceof DocumentError) return false;
    throw error;
  }
}
