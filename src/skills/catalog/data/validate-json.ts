/**
 * Validates JSON by a JSON Schema. The schema is untrusted and compiled to JavaScript, and a pattern or
 * nested references can take any time. The validation therefore runs in a sandboxed process.
 */

import { defineSkill, type JsonSchema } from '../../definition.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import type { ValidationRequest, ValidationResult } from '../_support/schema-validation.ts';
import { objectWith } from '../_support/schemas.ts';

interface Input {
  readonly schema: boolean | JsonSchema;
  readonly data: unknown;
  readonly max_errors?: number;
}

const timeoutMs = 5_000;

export default defineSkill<Input, ValidationResult>({
  category: 'data',
  name: 'validate-json',
  version: 'v1.0',
  displayName: 'Validate JSON',
  description:
    'Judges JSON data by a JSON Schema (draft 2020-12, or 2019-09 or draft-07 when `$schema` says ' +
    'so) and lists what is wrong where. References to other documents are never fetched.',
  parameters: objectWith(['schema', 'data'], {
    schema: { type: ['object', 'boolean'], description: 'JSON Schema.' },
    data: { description: 'Any JSON value to judge.' },
    max_errors: {
      type: 'integer',
      minimum: 1,
      maximum: 500,
      default: 50,
      description: 'Errors to list; all are counted.',
    },
  }),
  output: objectWith('all', {
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
  }),
  examples: [
    {
      input: {
        schema: { type: 'object', required: ['name'], properties: { age: { minimum: 0 } } },
        data: { age: -1 },
      },
      output: {
        valid: false,
        errors: [
          {
            path: '',
            message: "must have required property 'name'",
            keyword: 'required',
            schema_path: '#/required',
          },
          {
            path: '/age',
            message: 'must be >= 0',
            keyword: 'minimum',
            schema_path: '#/properties/age/minimum',
          },
        ],
        error_count: 2,
      },
    },
  ],

  run({ schema, data, max_errors: errorsMax = 50 }, ctx) {
    const request: ValidationRequest = { schema, data, errorsMax };
    return inSandbox<ValidationResult>({
      module: new URL('../_support/schema-validation.ts', import.meta.url).href,
      function: 'validateData',
      input: request,
      signal: ctx.signal,
      timeoutMs,
      reusable: true,
    });
  },
});
