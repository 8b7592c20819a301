/**
 * Adapts a skill's schema for a form: values of any or several types and free objects become JSON fields,
 * defaults are shown as hints, and rules that belong to no field are left to the platform.
 */
import type { RJSFSchema, UiSchema } from '@rjsf/utils';
import {
  hasShape,
  isSchema,
  type JsonSchema,
  resolved,
  schemasOf,
  typesOf,
  typeText,
} from '../skills/schema.ts';

/** Deeper schemas, such as recursive ones, are edited as JSON. */
const depthMax = 6;
/** Schemas of one form. One that leads to itself many times at each level would have millions: its form has fewer levels. */
const schemasMax = 400;
/** Texts that may be longer have room for it. */
const longText = 10_000;

export interface FormSchema {
  readonly schema: RJSFSchema;
  readonly uiSchema: UiSchema;
}

interface Forming {
  readonly root: JsonSchema;
  readonly depth: number;
  /** Schemas that the form may still have. */
  left: number;
}

export function formSchema(root: JsonSchema): FormSchema {
  const { schema, uiSchema } = formedWithin(root, depthMax);
  // Parts that are not rewritten, such as the branches of an `if`, may still refer to it.
  const { $defs, definitions } = root;
  return {
    schema: { ...schema, ...($defs ? { $defs } : {}), ...(definitions ? { definitions } : {}) },
    uiSchema: { ...uiSchema, 'ui:submitButtonOptions': { norender: true } },
  } as FormSchema;
}

/** As deep a form as has not too many schemas. */
function formedWithin(root: JsonSchema, depth: number): ReturnType<typeof formed> {
  const forming: Forming = { root, depth, left: schemasMax };
  const whole = formed(root, forming, 0, true);
  return forming.left > 0 || depth === 0 ? whole : formedWithin(root, depth - 1);
}

function formed(given: JsonSchema, forming: Forming, depth: number, isRequired: boolean) {
  const { root } = forming;
  forming.left -= 1;
  const { default: standard, ...whole } = withoutNull(resolved(given, root), root);
  const options: Record<string, unknown> = { isRequired };
  if (standard !== undefined) options['standard'] = standard;
  if (isFree(whole) || depth > forming.depth || forming.left <= 0) {
    const { title, description = 'Any JSON value.' } = whole;
    const schema = { ...(title === undefined ? {} : { title }), description };
    return { schema, uiSchema: { 'ui:field': 'json', 'ui:options': options } };
  }
  const schema: Record<string, unknown> = { ...whole };
  const uiSchema: Record<string, unknown> = { 'ui:options': options };
  const types = typesOf(whole);
  if (types.includes('boolean') && !whole['enum']) {
    uiSchema['ui:widget'] = standard === undefined ? 'choice' : 'switch';
  }
  if (types.includes('string') && !whole['enum'] && !whole['format'] && !areNamed(whole['oneOf'])) {
    uiSchema['ui:widget'] = 'textarea';
    options['isLong'] = Number(whole['maxLength'] ?? longText) >= longText;
  }
  if (isSchema(whole['properties'])) {
    const required = Array.isArray(whole['required']) ? whole['required'] : [];
    const properties: Record<string, unknown> = {};
    for (const [name, property] of Object.entries(whole['properties'])) {
      const one = formed(asSchema(property), forming, depth + 1, required.includes(name));
      properties[name] = one.schema;
      uiSchema[name] = one.uiSchema;
    }
    schema['properties'] = properties;
  }
  delete schema['patternProperties'];
  const { additionalProperties, items } = whole;
  if (isSchema(additionalProperties) && Object.keys(additionalProperties).length > 0) {
    const other = formed(additionalProperties, forming, depth + 1, false);
    schema['additionalProperties'] = other.schema;
    uiSchema['additionalProperties'] = other.uiSchema;
  } else delete schema['additionalProperties'];
  if (isSchema(items)) {
    const item = formed(items, forming, depth + 1, true);
    schema['items'] = item.schema;
    uiSchema['items'] = withoutLabel(item.uiSchema);
  }
  for (const keyword of ['oneOf', 'anyOf']) {
    const choices = schemasOf(whole[keyword]);
    if (choices.length === 0) continue;
    delete schema[keyword];
    if (!choices.every(hasShape)) continue;
    const all = choices.map((choice) => formed(choice, forming, depth + 1, isRequired));
    schema[keyword] = all.map((one) => one.schema);
    if (choices.every((choice) => 'const' in choice)) continue;
    uiSchema[keyword] = all.map((one, i) => {
      const choice = resolved(choices[i] ?? {}, root);
      const title = choice['title'] ?? typeText(choice, root);
      return { ...withoutLabel(one.uiSchema), 'ui:title': title };
    });
  }
  return { schema, uiSchema };
}

/** Whether these are values with titles, to be chosen from. */
const areNamed = (choices: unknown): boolean => {
  const all = schemasOf(choices);
  return all.length > 0 && all.every((choice) => 'const' in choice);
};

const asSchema = (value: unknown): JsonSchema => (isSchema(value) ? value : {});

const withoutLabel = (uiSchema: object): object => ({ ...uiSchema, 'ui:label': false });

/** `X or null` is X that may be left out: null itself is for JSON. */
function withoutNull(schema: JsonSchema, root: JsonSchema): JsonSchema {
  for (const keyword of ['anyOf', 'oneOf']) {
    const choices = schemasOf(schema[keyword]);
    const rest = choices.filter((choice) => choice['type'] !== 'null');
    const [only] = rest;
    if (only === undefined || rest.length !== 1 || choices.length === 1) continue;
    const { [keyword]: _, ...beside } = schema;
    return { ...resolved(only, root), ...beside };
  }
  const { type } = schema;
  if (!Array.isArray(type)) return schema;
  const types = type.filter((one) => one !== 'null');
  return types.length === 1 ? { ...schema, type: types[0] } : schema;
}

/** Whether it is for JSON: its values have no one shape. */
function isFree(schema: JsonSchema): boolean {
  const types = typesOf(schema);
  if (types.length > 1) return true;
  if ('enum' in schema || 'const' in schema) return false;
  const shaped = ['oneOf', 'anyOf', 'allOf'].some((keyword) =>
    schemasOf(schema[keyword]).some(hasShape),
  );
  const { properties, additionalProperties, items } = schema;
  const named = isSchema(properties) && Object.keys(properties).length > 0;
  switch (types[0]) {
    case undefined:
      return !(shaped || named);
    case 'object':
      return !(shaped || named || isMap(additionalProperties));
    case 'array':
      return !isSchema(items) || Object.keys(items).length === 0;
    case 'null':
      return true;
    default:
      return false;
  }
}

const isMap = (additional: unknown): boolean =>
  isSchema(additional) && Object.keys(additional).length > 0;
