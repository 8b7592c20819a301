/**
 * JSON Schema over JSON. The schema comes from outside, and Ajv's own documentation calls schemas
 * trusted code: a pattern or a web of references can take any time. Hence the thread.
 */

import type { AnySchemaObject, ErrorObject, Options } from 'ajv';
import { defineSkill } from '../../definition.ts';
import { inThread } from '../_support/in-thread.ts';

interface Input {
  readonly schema: boolean | AnySchemaObject;
  readonly data: unknown;
  readonly max_errors?: number;
}

interface Issue {
  readonly path: string;
  readonly message: string;
  readonly keyword: string;
  readonly schema_path: string;
}

interface Output {
  readonly valid: boolean;
  readonly errors: readonly Issue[];
  readonly error_count: number;
}

const timeoutMs = 5_000;

export default defineSkill<Input, Output>({
  category: 'data',
  name: 'validate-json',
  version: 'v1.0',
  displayName: 'Validate JSON',
  description:
    'Judges JSON data by a JSON Schema (draft 2020-12, or 2019-09 or draft-07 when `$schema` says ' +
    'so) and lists what is wrong where. References to other documents are never fetched.',
  parameters: {
    type: 'object',
    required: ['schema', 'data'],
    additionalProperties: false,
    properties: {
      schema: { type: ['object', 'boolean'], description: 'JSON Schema.' },
      data: { description: 'Any JSON value to judge.' },
      max_errors: {
        type: 'integer',
        minimum: 1,
        maximum: 500,
        default: 50,
        description: 'Errors to list; all are counted.',
      },
    },
  },
  output: {
    type: 'object',
    required: ['valid', 'errors', 'error_count'],
    additionalProperties: false,
    properties: {
      valid: { type: 'boolean', description: 'Whether the schema allows the data.' },
      errors: {
        type: 'array',
        description: 'What is wrong, in the order in which it was found.',
        items: {
          type: 'object',
          required: ['path', 'message', 'keyword', 'schema_path'],
          additionalProperties: false,
          properties: {
            path: {
              type: 'string',
              description: 'JSON Pointer into the data; empty for all of it.',
            },
            message: { type: 'string', description: 'What the schema asks for.' },
            keyword: { type: 'string', description: 'Keyword of the schema that is not met.' },
            schema_path: { type: 'string', description: 'JSON Pointer into the schema.' },
          },
        },
      },
      error_count: { type: 'integer', description: 'Errors found, listed or not.' },
    },
  },
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

  run: (input, ctx) =>
    inThread<Output>({
      module: import.meta.url,
      function: 'validate',
      input,
      signal: ctx.signal,
      timeoutMs,
    }),
});

/** Judges the data. Runs in the thread. */
export async function validate({ schema, data, max_errors: max = 50 }: Input): Promise<Output> {
  if (typeof schema === 'object' && schema['$async'] !== undefined) {
    throw new Error('The schema must not use $async');
  }
  const judge = await compiled(schema);
  const valid = judge(data) === true;
  const errors = judge.errors ?? [];
  return { valid, errors: errors.slice(0, max).map(issueOf), error_count: errors.length };
}

async function compiled(schema: boolean | AnySchemaObject) {
  const ajv = await ajvFor(schema);
  const { default: addFormats } = await import('ajv-formats');
  addFormats.default(ajv);
  try {
    return ajv.compile(schema);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`The schema cannot be used: ${message}`, { cause: error });
  }
}

async function ajvFor(schema: boolean | AnySchemaObject) {
  const named = typeof schema === 'object' ? schema['$schema'] : undefined;
  const dialect = String(named ?? '2020-12');
  const options: Options = { strict: false, allErrors: true, logger: false };
  if (dialect.includes('2020-12')) return new (await import('ajv/dist/2020.js')).Ajv2020(options);
  if (dialect.includes('2019-09')) return new (await import('ajv/dist/2019.js')).Ajv2019(options);
  if (dialect.includes('draft-07')) return new (await import('ajv')).Ajv(options);
  throw new Error(`The schema names ${dialect}; 2020-12, 2019-09 and draft-07 are known`);
}

function issueOf(error: ErrorObject): Issue {
  return {
    path: error.instancePath,
    message: error.message ?? 'is not allowed',
    keyword: error.keyword,
    schema_path: error.schemaPath,
  };
}
