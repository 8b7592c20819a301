/**
 * Validates JSON by a JSON Schema. The schema is untrusted and compiled to JavaScript, and a pattern or
 * nested references can take any time. The validation therefore runs in a sandboxed process.
 */

import { defineSkill } from '../../definition.ts';
import { integer, objectWith } from '../_support/schemas.ts';
import { validate, validationResult } from '../_support/validating.ts';

const parameters = objectWith(['schema', 'data'], {
  schema: { type: ['object', 'boolean'], description: 'JSON Schema.' },
  data: { description: 'Any JSON value to judge.' },
  max_errors: integer(
    { minimum: 1, maximum: 500, default: 50 },
    'Errors to list; all are counted.',
  ),
});

export default defineSkill({
  category: 'data',
  name: 'validate-json',
  version: 'v1.0',
  displayName: 'Validate JSON',
  description:
    'Judges JSON data by a JSON Schema (draft 2020-12, or 2019-09 or draft-07 when `$schema` says ' +
    'so) and lists what is wrong where. References to other documents are never fetched.',
  parameters,
  output: validationResult,
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

  run: ({ schema, data, max_errors: errorsMax = 50 }, { signal }) =>
    validate({ schema, data, errorsMax }, signal),
});
