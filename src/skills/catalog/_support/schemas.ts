/** Schemas that the catalog's skills have in common. */
import type { JsonSchema } from '../../definition.ts';

/** An object with these members and no others. */
export function objectWith(
  required: 'all' | readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return {
    type: 'object',
    required: required === 'all' ? Object.keys(properties) : required,
    additionalProperties: false,
    properties,
  };
}

/** A text with at least one character that is no white space. */
export function textWith(maxLength: number, description: string): JsonSchema {
  return { type: 'string', maxLength, pattern: '\\S', description };
}

/** The address of something that a skill fetches. */
export function urlWith(description: string): JsonSchema {
  return { type: 'string', minLength: 1, maxLength: 2048, description };
}

/** The mark of an answer of a model that is cut. */
export const isCutMark: JsonSchema = {
  const: true,
  description: 'There when the answer breaks off, because it had reached MODEL_OUTPUT_TOKENS.',
};
