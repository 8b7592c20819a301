/**
 * Forms for people: a JSON Schema of an object with few named fields, each a text, a number, a choice or yes and no, so
 * that every client can show it with its own controls. It is the subset of the Model Context Protocol's elicitation.
 */
import { boundedValidator, checkBoundedSchema } from './bounded-schema.ts';
import type { Issue } from './errors.ts';
import { isObject, type Json } from './json.ts';
import type { JsonSchema } from './json-schema.ts';
import { SchemaError } from './schema-rules.ts';
import { isLongerThan } from './step-bounds.ts';
import { jsonTextFault } from './text.ts';

/** A form: its fields by name, in their order. */
export interface Form {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

const fieldsMax = 50;
const nameCharsMax = 100;
/** Bytes of JSON: of a form, and of its values. */
const formBytesMax = 32 * 1024;
const answerBytesMax = 64 * 1024;

const common = ['type', 'title', 'description', 'default', 'examples'];
const choices = ['enum', 'enumNames', 'oneOf', 'const'];
const numeric = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'];
const keywords: Readonly<Record<string, ReadonlySet<unknown>>> = {
  string: new Set([...common, ...choices, 'minLength', 'maxLength', 'pattern', 'format']),
  number: new Set([...common, ...numeric]),
  integer: new Set([...common, ...numeric]),
  boolean: new Set(common),
  array: new Set([...common, 'items', 'minItems', 'maxItems', 'uniqueItems']),
};
const formKeywords = new Set([
  ...['$schema', 'type', 'title', 'description', 'properties', 'required', 'additionalProperties'],
]);
const formats = new Set(['email', 'uri', 'date', 'date-time']);

/** The form in a value, or the reason why it is no form, as the predicate of a sentence. */
export function readForm(value: unknown): { readonly form: Form } | { readonly fault: string } {
  if (!isObject(value)) return { fault: 'must be a JSON Schema of an object' };
  const json = JSON.stringify(value);
  if (Buffer.byteLength(json) > formBytesMax) {
    return { fault: `must be at most ${formBytesMax / 1024} KiB of JSON` };
  }
  const fault = jsonTextFault(json) ?? formFault(value) ?? schemaFault(value);
  if (fault !== null) return { fault };
  const { properties, required } = value as unknown as Form;
  return { form: { type: 'object', properties, ...(required && { required }) } };
}

function formFault(form: Json): string | null {
  const { type, properties, required = [] } = form;
  if (type !== 'object') return 'must have the type object';
  const unknown = Object.keys(form).find((name) => !formKeywords.has(name));
  if (unknown !== undefined) return `has ${JSON.stringify(unknown)}, which no form can show`;
  if (!isObject(properties)) return 'must have properties';
  const fields = Object.entries(properties);
  if (fields.length > fieldsMax) return `has more than ${fieldsMax} fields`;
  for (const [name, field] of fields) {
    if (name === '' || isLongerThan(name, nameCharsMax)) {
      return `has a field whose name does not have 1 to ${nameCharsMax} characters`;
    }
    const fault = fieldFault(field);
    if (fault !== null) return `has the field ${JSON.stringify(name)}, which ${fault}`;
  }
  const isKnown = (name: unknown) => typeof name === 'string' && Object.hasOwn(properties, name);
  if (!Array.isArray(required) || !required.every(isKnown)) {
    return 'requires what is none of its fields';
  }
  return null;
}

function fieldFault(field: unknown): string | null {
  const { type } = isObject(field) ? field : {};
  const known = typeof type === 'string' && Object.hasOwn(keywords, type) && keywords[type];
  if (!isObject(field) || !known) {
    return `must have one of the types ${Object.keys(keywords).join(', ')}`;
  }
  const unknown = Object.keys(field).find((name) => !known.has(name));
  if (unknown !== undefined) return `has ${JSON.stringify(unknown)}, which no form can show`;
  const { format, items, oneOf } = field;
  if (format !== undefined && !formats.has(String(format))) {
    return `has another format than ${[...formats].join(', ')}`;
  }
  if (oneOf !== undefined && !areChoices(oneOf)) return 'has a oneOf that is no list of choices';
  return type === 'array' && !isChoice(items) ? 'has items that are no choice of texts' : null;
}

/** Whether the items of a list are texts out of those that are named. */
function isChoice(items: unknown): boolean {
  if (!isObject(items)) return false;
  const { enum: values, anyOf, oneOf } = items;
  const isOther = Object.keys(items).some(
    (name) => !['type', 'enum', 'anyOf', 'oneOf'].includes(name),
  );
  const areTexts = Array.isArray(values) && values.every((one) => typeof one === 'string');
  return !isOther && (areTexts || areChoices(anyOf ?? oneOf));
}

function areChoices(value: unknown): boolean {
  const names = new Set(['const', 'title', 'description']);
  return (
    Array.isArray(value) &&
    value.every(
      (one) =>
        isObject(one) &&
        typeof one['const'] === 'string' &&
        Object.keys(one).every((name) => names.has(name)),
    )
  );
}

function schemaFault(schema: JsonSchema): string | null {
  try {
    checkBoundedSchema(schema);
    return null;
  } catch (error) {
    if (error instanceof SchemaError) return error.message;
    throw error;
  }
}

/** The fault of values for a form; null for valid ones. Values of other names are refused. */
export function answerIssues(form: Form, answer: Json): readonly Issue[] | null {
  const json = JSON.stringify(answer);
  if (Buffer.byteLength(json) > answerBytesMax) {
    return [{ field: 'body', issue: `must be at most ${answerBytesMax / 1024} KiB of JSON` }];
  }
  const fault = jsonTextFault(json);
  if (fault !== null) return [{ field: 'body', issue: fault }];
  try {
    return boundedValidator({ ...form, additionalProperties: false })(answer);
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return [{ field: 'body', issue: `cannot be checked: the form ${error.message}` }];
  }
}
