/** Validates JSON by a schema in a sandboxed process. */
import { extname } from 'node:path';
import { inSandbox } from './in-sandbox.ts';
import { objectWith, type Static } from './schemas.ts';

export interface ValidationRequest {
  readonly schema: boolean | object;
  readonly data: unknown;
  /** Errors to list. */
  readonly errorsMax: number;
}

export const validationResult = objectWith('all', {
  valid: { type: 'boolean', description: 'Whether the schema allows the data.' },
  errors: {
    type: 'array',
    description: 'What is wrong, in the order in which it was found.',
    items: objectWith('all', {
      path: {
        type: 'string',
        description: 'JSON Pointer into the data; empty for all of it.',
      },
      message: { type: 'string', description: 'What the schema asks for.' },
      keyword: { type: 'string', description: 'Keyword of the schema that is not met.' },
      schema_path: { type: 'string', description: 'JSON Pointer into the schema.' },
    }),
  },
  error_count: { type: 'integer', description: 'Errors found, listed or not.' },
});
export type ValidationResult = Static<typeof validationResult>;

/** Rejects with a SkillError that says why the schema cannot be used. */
export function validate(input: ValidationRequest, signal: AbortSignal): Promise<ValidationResult> {
  return inSandbox({
    module: new URL(`./schema-validation${extname(import.meta.url)}`, import.meta.url).href,
    function: 'validateData',
    input,
    signal,
    timeoutMs: 5_000,
    reusable: true,
  });
}
