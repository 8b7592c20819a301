/**
 * Schemas of the catalog's skills, and the types of what they allow. TypeBox gives the types alone: its code
 * would take 24 MB in every executor.
 */
import type { XStatic } from 'typebox/schema';
import type { JsonSchema } from '../../definition.ts';

/** The type of the values that a schema allows. */
export type Static<Schema> = XStatic<Schema>;

type LastOf<Union> = (Union extends unknown ? (make: () => Union) => void : never) extends (
  make: infer Make extends () => unknown,
) => void
  ? ReturnType<Make>
  : never;
type ListOf<Union, Last = LastOf<Union>> = [Union] extends [never]
  ? []
  : [...ListOf<Exclude<Union, Last>>, Last];

/** An object with these members and no others. */
export function objectWith<
  const Properties extends Readonly<Record<string, JsonSchema>>,
  const Required extends 'all' | readonly (keyof Properties)[],
>(required: Required, properties: Properties) {
  const names = required === 'all' ? Object.keys(properties) : required;
  return {
    type: 'object',
    required: names as Required extends 'all' ? ListOf<keyof Properties> : Required,
    additionalProperties: false,
    properties,
  } as const;
}

/** An object of any members. */
export function anyObject(
  description: string,
  more: { readonly default?: object; readonly contentMediaType?: string } = {},
) {
  const schema: unknown = { type: 'object', description, ...more };
  return schema as { readonly type: 'object'; readonly additionalProperties: true };
}

/** A JSON Schema of 2020-12, or draft-07 when `$schema` says so; an invalid one is refused before the skill runs. */
export function jsonSchema(description: string) {
  return anyObject(description, { contentMediaType: 'application/schema+json' });
}

/** A text with at least one character that is no white space. */
export function textWith(maxLength: number, description: string) {
  return { type: 'string', maxLength, pattern: '\\S', description } as const;
}

/** The address of something that a skill fetches. */
export function urlWith(description: string) {
  return { type: 'string', minLength: 1, maxLength: 2048, description } as const;
}

/** A whole number; the skill applies the default that the bounds state. */
export function integer(
  bounds: { readonly minimum: number; readonly maximum: number; readonly default?: number },
  description: string,
) {
  return { type: 'integer', ...bounds, description } as const;
}

/** A choice that is off when it is left out. */
export function flag(description: string) {
  return { type: 'boolean', default: false, description } as const;
}

/** The mark of an answer of a model that is cut. */
export const isCutMark = {
  const: true,
  description: 'There when the answer breaks off, because it had reached MODEL_OUTPUT_TOKENS.',
} as const;

/** The pictures that the model of a run has made. */
export const madeFiles = {
  type: 'array',
  items: {
    type: 'object',
    required: ['type', 'id', 'name', 'media_type', 'bytes', 'sha256'],
    properties: {
      type: { const: 'file', description: 'Tells it from other values.' },
      id: { type: 'string', description: 'Names it in GET /api/files/:fileId.' },
      name: { type: 'string', description: 'Its name, with an ending for its type.' },
      media_type: { type: 'string', description: 'What its bytes are, such as image/png.' },
      bytes: { type: 'integer', description: 'Its size.' },
      sha256: { type: 'string', description: 'The digest of its bytes, in hexadecimal digits.' },
    },
  },
  description: 'The pictures that the model has made, as files; absent without any.',
} as const;
