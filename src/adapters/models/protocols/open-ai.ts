/** What both of OpenAI's protocols have. */
import type { Json } from '../../../kernel/json.ts';
import { isObjectSchema, isStrictSchema } from './sent-schemas.ts';

export function bearerOf(apiKey: string | null): Record<string, string> {
  return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
}

/** The form of an answer; undefined for a schema that is in the system text alone. */
export function outputFormat(schema: Json | undefined): Json | undefined {
  if (schema === undefined || !isObjectSchema(schema)) return undefined;
  return { name: 'answer', schema, strict: isStrictSchema(schema) };
}
