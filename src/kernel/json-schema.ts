/**
 * Validates JSON values by schemas of the operator and of the platform (JSON Schema 2020-12, or draft-07 when
 * `$schema` says so), compiled by Ajv. Patterns run on RE2, the uniqueness of items and the formats are linear; but
 * references and unions may multiply the time, so schemas that others wrote belong to `bounded-schema.ts`. Never
 * fetches a schema, never changes the value, never logs. Ajv is loaded at the first use.
 */
import { createRequire } from 'node:module';
import type { Ajv, Options, ValidateFunction } from 'ajv';
import type { Issue } from './errors.ts';
import { once } from './once.ts';
import { linearFormats } from './schema-formats.ts';
import { describeErrors } from './schema-issues.ts';
import { schemaRegExp } from './schema-regexp.ts';
import { inspectSchema, SchemaError } from './schema-rules.ts';
import { areUnique } from './text.ts';
import { allFaultsNodesMax, hasMoreMembers } from './value-size.ts';

/** A JSON Schema (draft 2020-12, or draft-07 when `$schema` says so). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * Returns null for a value that the schema allows, else what is wrong where (dotted path, `body` for
 * the whole value). Throws SchemaError for a broken schema.
 */
export type Validate = (value: unknown) => Issue[] | null;

/** The faults as one text. */
export function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');
}

export type Dialect = '2020-12' | 'draft-07';

/**
 * A validator for `schema`, compiled when it is first called. What is wrong with the schema itself
 * is thrown then, as SchemaError; `checkSchema` says it earlier.
 */
export function compileSchema(schema: JsonSchema): Validate {
  let validate: ValidateFunction | undefined;
  /** Finds all faults; made for the first value that has one. */
  let inspect: ValidateFunction | undefined;
  return (value) => {
    validate ??= compile(schema);
    try {
      if (validate(value)) return null;
      // A larger value has its first fault named, by the errors of `validate`.
      if (hasMoreMembers(value, allFaultsNodesMax)) return describeErrors(validate.errors ?? []);
      inspect ??= compile(schema, true);
      inspect(value);
    } catch (error) {
      if (error instanceof RangeError) return [{ field: 'body', issue: 'is nested too deeply' }];
      throw error;
    }
    return describeErrors(inspect.errors ?? validate.errors ?? []);
  };
}

/**
 * Throws SchemaError, one sentence, when `schema` breaks the caps (64 KiB, 32 levels), its
 * dialect's rules, has a pattern that RE2 cannot express or a reference that leads nowhere. Compiles
 * only schemas with references; costs about 0.1 ms for the others.
 */
export function checkSchema(schema: JsonSchema): void {
  const { hasReferences } = inspectSchema(schema);
  checkDialect(schema);
  if (hasReferences) compile(schema);
}

/** Throws SchemaError when a schema within the caps breaks its dialect's rules. */
export function checkDialect(schema: JsonSchema): void {
  const metaValidator = metaValidators[dialectOf(schema)]();
  if (metaValidator.validateSchema(schema) !== true) {
    const [first] = describeErrors(metaValidator.errors ?? []) ?? [];
    throw new SchemaError(
      first === undefined || first.field === 'body'
        ? `is no valid JSON Schema: ${first?.issue ?? 'it breaks the rules of its dialect'}`
        : `is no valid JSON Schema: ${first.field} ${first.issue}`,
    );
  }
}

/** Throws SchemaError for a dialect that is not supported. */
export function dialectOf(schema: JsonSchema): Dialect {
  const { $schema: named } = schema;
  if (named === undefined) return '2020-12';
  if (typeof named === 'string' && named.includes('/draft/2020-12/')) return '2020-12';
  if (typeof named === 'string' && named.includes('/draft-07/')) return 'draft-07';
  throw new SchemaError(
    `names the dialect ${JSON.stringify(named)}; 2020-12 and draft-07 are supported`,
  );
}

function compile(schema: JsonSchema, allErrors = false): ValidateFunction {
  const dialect = dialectOf(schema);
  inspectSchema(schema);
  // One instance for each schema: Ajv keeps what it compiled for ever, and refuses a repeated $id.
  const ajv = newAjv(dialect, { meta: false, validateSchema: false, allErrors });
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    error: { message: 'must not have duplicate items' },
    validate: (wanted: boolean, items: unknown[]) => !wanted || areUnique(items),
  });
  const { $schema: _, ...rules } = schema;
  try {
    return ajv.compile(rules);
  } catch (error) {
    throw asSchemaError(error);
  }
}

function asSchemaError(error: unknown): SchemaError {
  if (error instanceof SchemaError) return error;
  const missing = (error as { missingRef?: unknown }).missingRef;
  if (typeof missing === 'string') {
    return new SchemaError(
      missing.startsWith('#')
        ? `refers to ${JSON.stringify(missing)}, which it does not define`
        : `refers to ${JSON.stringify(missing)}; schemas from elsewhere are never fetched`,
    );
  }
  const text = error instanceof RangeError ? 'it is too large' : String((error as Error).message);
  return new SchemaError(`cannot be compiled: ${text}`);
}

const ajvOptions: Options = {
  strict: false,
  strictNumbers: true,
  allErrors: false,
  ownProperties: true,
  logger: false,
  code: { regExp: schemaRegExp },
};

/** For schemas that are not a caller's. */
const asItIs: Options = { code: { optimize: false } };

// createRequire instead of import: Ajv takes 30 ms, which a process that validates nothing saves.
const load = createRequire(import.meta.url);

function newAjv(dialect: Dialect, more: Options): Ajv {
  const options = { ...ajvOptions, formats: linearFormats(), ...more };
  if (dialect === 'draft-07') {
    const { Ajv: Ajv07 } = load('ajv') as typeof import('ajv');
    return new Ajv07(options);
  }
  const { Ajv2020 } = load('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
  return new Ajv2020(options);
}

/**
 * Kept, because compiling a dialect's own schema takes most of the time in which a process loads its first skills. It is
 * compiled as it is: Ajv takes longer to optimize it than it saves, and its expressions are linear without RE2.
 */
const metaValidators = {
  '2020-12': once(() => newAjv('2020-12', asItIs)),
  'draft-07': once(() => newAjv('draft-07', asItIs)),
};
