/**
 * Checks the schemas of a definition that the operator loads. Beside what a schema breaks it finds misspelt keywords, which
 * JSON Schema takes for annotations: `requird` would require nothing. Imported schemas may have keywords of their own, so
 * they are not checked here.
 */
import { isObject, type Json } from '../../kernel/json.ts';
import { checkSchema, type JsonSchema } from '../../kernel/json-schema.ts';
import { nearestName } from '../../kernel/misspelt.ts';
import { eachSubschemaAt, SchemaError } from '../../kernel/schema-rules.ts';
import type { DefinitionFault } from './fields.ts';

/** Keywords that change what a schema means or shows; short ones resemble words of an author's own. */
const keywords = (
  'type enum const required properties patternProperties additionalProperties propertyNames minProperties ' +
  'maxProperties unevaluatedProperties items prefixItems additionalItems unevaluatedItems contains minContains ' +
  'maxContains minItems maxItems uniqueItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength ' +
  'maxLength pattern format allOf anyOf oneOf dependentRequired dependentSchemas dependencies $ref $defs definitions ' +
  'title description default deprecated examples readOnly writeOnly contentEncoding contentMediaType contentSchema'
).split(' ');
const lowerCase = new Map(keywords.map((name) => [name.toLowerCase(), name]));
/** Keywords that resemble those and mean something: of JSON Schema, of earlier drafts and of OpenAPI. */
const others: ReadonlySet<string> = new Set(['example', 'id']);
/** Characters of a path in a sentence. */
const pathCharsMax = 200;

/** The fault of the schemas of a definition, with the name to find its line by; undefined for valid ones. */
export function ownSchemasFault(definition: {
  readonly parameters: JsonSchema;
  readonly output: JsonSchema;
}): DefinitionFault | undefined {
  for (const field of ['parameters', 'output'] as const) {
    const schema = definition[field];
    try {
      checkSchema(schema);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      return { field, message: `${field} ${error.message}` };
    }
    const misspelt = misspeltKeyword(schema, []);
    if (misspelt !== undefined) {
      return { field: misspelt.name, message: `${field} ${misspelt.message}` };
    }
  }
  return undefined;
}

function misspeltKeyword(
  schema: Json,
  path: readonly string[],
): { name: string; message: string } | undefined {
  for (const name of Object.keys(schema)) {
    const meant = meantBy(name, schema);
    if (meant === undefined) continue;
    const at = path.length === 0 ? '' : ` at ${path.join('.').slice(0, pathCharsMax)}`;
    return {
      name,
      message: `has the unknown keyword ${JSON.stringify(name)}${at}: did you mean ${meant}?`,
    };
  }
  for (const [place, inner] of eachSubschemaAt(schema)) {
    const fault = isObject(inner) ? misspeltKeyword(inner, [...path, ...place]) : undefined;
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function meantBy(name: string, schema: Json): string | undefined {
  if (keywords.includes(name) || others.has(name)) return undefined;
  const missing = [...lowerCase].filter(([, keyword]) => !Object.hasOwn(schema, keyword));
  const near = nearestName(
    name.toLowerCase(),
    missing.map(([lower]) => lower),
  );
  return near === null ? undefined : lowerCase.get(near);
}
