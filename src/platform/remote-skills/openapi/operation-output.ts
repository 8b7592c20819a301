/**
 * The output schema of an operation's skill: `{status, headers, body}`. It follows the document without limits and
 * formats: the service may have changed, and its response is passed on unchanged.
 */
import { isObject, type Json } from '../../../kernel/json.ts';
import { mapSubschemas } from '../../../kernel/schema-rules.ts';
import { DocumentError } from './operation.ts';
import { isJsonType } from './operation-input.ts';
import { resolveObject } from './references.ts';
import { SchemaBundle } from './schemas.ts';

/** Answers of one operation that are described. */
const answersMax = 10;

export interface OperationOutput {
  readonly schema: Json;
  /** What the request says that it takes. */
  readonly accept: string;
}

export function outputOf(document: Json, operation: Json): OperationOutput {
  const bundle = new SchemaBundle(document, 'response');
  const bodies: Json[] = [];
  const types = new Set<string>();
  for (const response of successes(document, operation['responses'])) {
    const content = isObject(response['content']) ? response['content'] : {};
    for (const type of Object.keys(content)) types.add(type);
    bodies.push(bodySchema(document, bundle, response, content));
  }
  const distinct = [...new Map(bodies.map((one) => [JSON.stringify(one), one])).values()];
  const [only] = distinct;
  const body =
    distinct.length === 1 && only ? only : distinct.length > 1 ? { anyOf: distinct } : {};
  const definitions = relaxedAll(bundle.definitions());
  const schema = {
    type: 'object',
    properties: {
      status: { type: 'integer', description: 'The HTTP status.' },
      headers: {
        type: 'object',
        description: 'A few headers of the answer, such as location and link.',
        additionalProperties: { type: 'string' },
      },
      body,
    },
    required: ['status', 'headers', 'body'],
    ...(Object.keys(definitions).length > 0 && { $defs: definitions }),
  };
  return { schema, accept: acceptOf(types) };
}

/** The answers that are no failures, the documented default only where there is no other. */
function successes(document: Json, responses: unknown): Json[] {
  if (!isObject(responses)) return [];
  const entries = Object.entries(responses);
  const twos = entries.filter(([status]) => /^2(\d\d|XX)$/i.test(status));
  const chosen = twos.length > 0 ? twos : entries.filter(([status]) => status === 'default');
  return chosen.slice(0, answersMax).flatMap(([, one]) => objectIn(document, one));
}

function objectIn(document: Json, value: unknown): Json[] {
  try {
    const resolved = resolveObject(document, value);
    return resolved === null ? [] : [resolved];
  } catch (error) {
    if (error instanceof DocumentError) return [];
    throw error;
  }
}

function bodySchema(document: Json, bundle: SchemaBundle, response: Json, content: Json): Json {
  const { description } = response;
  const text = typeof description === 'string' ? description.trim().slice(0, 500) : '';
  const about = text === '' ? {} : { description: text };
  const types = Object.keys(content);
  if (types.length === 0) return { type: 'null', ...about };
  const json = types.find((type) => isJsonType(type) || type === '*/*');
  if (json === undefined) {
    const isText = types.every((type) => /^text\/|[/+]xml/i.test(type));
    return isText ? { type: 'string', ...about } : about;
  }
  try {
    const [media] = objectIn(document, content[json]);
    const schema = relaxed(bundle.convert(media?.['schema'] ?? {}));
    return { ...(isObject(schema) ? schema : {}), ...about };
  } catch (error) {
    // The reference leads out of the document, so any answer is valid.
    if (error instanceof DocumentError) return about;
    throw error;
  }
}

/** Keywords that combine schemas without a type of their own. */
const strictKeywords = new Set([
  ...[
    'additionalProperties',
    'unevaluatedProperties',
    'propertyNames',
    'not',
    'if',
    'then',
    'else',
  ],
  ...['format', 'pattern', 'patternProperties', 'multipleOf', 'uniqueItems', 'examples', 'default'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties', 'contains', 'minContains'],
  ...['maxContains', 'dependentRequired', 'dependentSchemas'],
]);

function relaxed(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(
    ([keyword, value]) =>
      !strictKeywords.has(keyword) || (keyword === 'additionalProperties' && isObject(value)),
  );
  // Members of a oneOf often overlap, and then none of them fits alone.
  const { oneOf, ...rest } = Object.fromEntries(kept) as Json;
  const loose = oneOf === undefined || 'anyOf' in rest ? rest : { ...rest, anyOf: oneOf };
  return mapSubschemas(loose, relaxed);
}

function relaxedAll(definitions: Json): Json {
  return Object.fromEntries(Object.entries(definitions).map(([name, one]) => [name, relaxed(one)]));
}

/** JSON first, and anything else in case the document is wrong. */
function acceptOf(types: ReadonlySet<string>): string {
  const listed = [...types].filter((type) => /^[\w.+*-]+\/[\w.+*-]+$/.test(type)).slice(0, 5);
  const json = listed.filter(isJsonType);
  const others = listed.filter((type) => !isJsonType(type) && type !== '*/*');
  if (json.length === 0 && others.length > 0) return `${others.join(', ')}, */*;q=0.1`;
  return `${json.length > 0 ? json.join(', ') : 'application/json'}, */*;q=0.1`;
}
