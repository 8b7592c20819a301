/**
 * Validates data by a JSON Schema in a sandboxed process. The schema is untrusted, and Ajv compiles it to
 * JavaScript and expects trusted schemas, so Ajv runs in a realm.
 */

import type { AnySchemaObject, ErrorObject, Options, ValidateFunction } from 'ajv';
import { bundleCommonJs } from '../../../../adapters/sandbox/commonjs-bundle.ts';
import { createRealms } from '../../../../adapters/sandbox/realms.ts';
import type { ValidationRequest, ValidationResult } from './validating.ts';

type Issue = ValidationResult['errors'][number];

const limits = {
  /** Of one text of an error; a path is as long as the names in it. */
  textChars: 2_000,
  /** Of all texts of all errors: an output may have 1 MiB. */
  errorsChars: 250_000,
};

/** Defined in the realm by `bundleCommonJs`. */
declare function bundled(name: 'ajv'): typeof import('ajv');
declare function bundled(name: 'ajv/dist/2019.js'): typeof import('ajv/dist/2019.js');
declare function bundled(name: 'ajv/dist/2020.js'): typeof import('ajv/dist/2020.js');
declare function bundled(name: 'ajv-formats'): typeof import('ajv-formats');

const libraries = ['ajv', 'ajv/dist/2019.js', 'ajv/dist/2020.js', 'ajv-formats'];
const inRealm = createRealms({
  source: [
    bundleCommonJs(libraries, import.meta.url),
    `const limits = ${JSON.stringify(limits)};`,
    ...[main, compiled, ajvFor, listed, messageOf].map(String),
  ].join('\n'),
  codeGeneration: true,
});

/** Validates the data. Throws an Error that says why the schema cannot be used. */
export function validateData(request: ValidationRequest): ValidationResult {
  const answer = inRealm(JSON.stringify(request));
  if ('error' in answer) throw new Error(answer.error);
  return JSON.parse(answer.value ?? 'null') as ValidationResult;
}

// The code below runs in the realm, and may use only itself and the libraries.

async function main(input: string): Promise<string> {
  const { schema, data, errorsMax }: ValidationRequest = JSON.parse(input);
  try {
    const validate = compiled(schema);
    const valid = validate(data) === true;
    const errors = validate.errors ?? [];
    return JSON.stringify({
      valid,
      errors: listed(errors.slice(0, errorsMax)),
      error_count: errors.length,
    });
  } catch (error) {
    return Promise.reject(messageOf(error));
  }
}

function compiled(schema: boolean | AnySchemaObject): ValidateFunction {
  if (typeof schema === 'object' && schema['$async'] !== undefined) {
    throw new Error('The schema must not use $async');
  }
  const ajv = ajvFor(schema);
  bundled('ajv-formats').default(ajv);
  try {
    return ajv.compile(schema);
  } catch (error) {
    throw new Error(`The schema cannot be used: ${messageOf(error)}`);
  }
}

function ajvFor(schema: boolean | AnySchemaObject) {
  const named = typeof schema === 'object' ? schema['$schema'] : undefined;
  const dialect = String(named ?? '2020-12');
  const options: Options = { strict: false, allErrors: true, logger: false };
  if (dialect.includes('2020-12')) return new (bundled('ajv/dist/2020.js').Ajv2020)(options);
  if (dialect.includes('2019-09')) return new (bundled('ajv/dist/2019.js').Ajv2019)(options);
  if (dialect.includes('draft-07')) return new (bundled('ajv').Ajv)(options);
  throw new Error(`The schema names ${dialect}; 2020-12, 2019-09 and draft-07 are known`);
}

/** The first errors, as many as an output can hold. */
function listed(errors: readonly ErrorObject[]): Issue[] {
  const cut = (text: string) => text.slice(0, limits.textChars).toWellFormed();
  let chars = 0;
  const issues: Issue[] = [];
  for (const { instancePath, message, keyword, schemaPath } of errors) {
    const issue = {
      path: cut(instancePath),
      message: cut(message ?? 'is not allowed'),
      keyword: cut(keyword),
      schema_path: cut(schemaPath),
    };
    chars += issue.path.length + issue.message.length + issue.schema_path.length + 200;
    if (chars > limits.errorsChars) break;
    issues.push(issue);
  }
  return issues;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (message.includes('Maximum call stack size')) return 'The input is nested too deeply';
  return message.slice(0, limits.textChars);
}
