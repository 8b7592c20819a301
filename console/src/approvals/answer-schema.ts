/** Adapts the schema of an approval's form for the console: choices with titles, defaults filled in. */
import { isSchema, type JsonSchema, schemasOf } from '../skills/schema.ts';

/** What the person begins with: the defaults of the fields. */
export function defaultsOf(fields: JsonSchema): Record<string, unknown> {
  const entries = Object.entries(propertiesOf(fields)).map(([name, field]) => [
    name,
    field['default'],
  ]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** The schema without its defaults, which are filled in; a field that is emptied stays empty. */
export function answerSchema(fields: JsonSchema): JsonSchema {
  const shown = Object.entries(propertiesOf(fields)).map(([name, field]) => {
    const { default: _, ...rest } = withTitledChoices(field);
    const { items } = rest;
    return [name, isSchema(items) ? { ...rest, items: withTitledChoices(items) } : rest];
  });
  return { ...fields, properties: Object.fromEntries(shown) };
}

/** The names of fields as people read them. */
export function fieldNames(fields: JsonSchema): string[] {
  return Object.entries(propertiesOf(fields)).map(([name, { title }]) =>
    typeof title === 'string' && title !== '' ? title : name,
  );
}

function propertiesOf({ properties }: JsonSchema): Record<string, JsonSchema> {
  return isSchema(properties) ? (properties as Record<string, JsonSchema>) : {};
}

/** Converts two older forms of titled choices to `oneOf` with titles. */
function withTitledChoices(field: JsonSchema): JsonSchema {
  const { enum: values, enumNames, anyOf, ...rest } = field;
  if (Array.isArray(values) && Array.isArray(enumNames)) {
    const choices = values.map((value, i) => ({
      const: value,
      title: String(enumNames[i] ?? value),
    }));
    return { ...rest, oneOf: choices };
  }
  const choices = schemasOf(anyOf);
  return choices.length > 0 ? { ...rest, type: 'string', oneOf: choices } : field;
}
