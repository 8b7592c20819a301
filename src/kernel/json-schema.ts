/**
 * Judges JSON values by schemas (JSON Schema 2020-12, or draft-07 when `$schema`
 * says so). Promises that the time a value takes is bounded by its size: patterns run on RE2, the
 * uniqueness of items and the formats are linear. Never fetches a schema, never
 * changes the value, never logs. Ajv is loaded at the first use, so importing this file is free.
 */
import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, Format, Options, ValidateFunction } from 'ajv';
import type { Issue } from './errors.ts';
import { schemaRegExp } from './schema-regexp.ts';
import { inspectSchema, SchemaError } from './schema-rules.ts';
import { canonicalJson } from './text.ts';

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

type Dialect = '2020-12' | 'draft-07';

/** Issues reported for one value. */
const issuesMax = 50;
/** Errors of Ajv that are looked at: the branches of an `anyOf` may have many for one issue. */
const errorsMax = 1_000;
/** Members and items of a value all of whose faults are looked for; a larger one has its first one named. */
const nodesMax = 2_000;
/** Characters of a field's name, of one allowed value, and of their whole list, in an issue. */
const allowedTextMax = 200;
/** Characters of a string that the format `url` looks at; longer ones do not match it. */
const urlLengthMax = 2_048;

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
      if (hasMoreNodes(value, nodesMax)) return describeErrors(validate.errors ?? []);
      inspect ??= compile(schema, true);
      inspect(value);
    } catch (error) {
      if (error instanceof RangeError) return [{ field: 'body', issue: 'is nested too deeply' }];
      throw error;
    }
    return describeErrors(inspect.errors ?? validate.errors ?? []);
  };
}

/** Whether a value has more than `max` members and items; looks at few more than that. */
function hasMoreNodes(value: unknown, max: number): boolean {
  const open: unknown[] = [value];
  let count = 0;
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node === null || typeof node !== 'object') continue;
    const members = Object.values(node);
    count += members.length;
    if (count > max) return true;
    for (const member of members) open.push(member);
  }
  return false;
}

/**
 * Throws SchemaError, one sentence, when `schema` breaks the caps (64 KiB, 32 levels), its
 * dialect's rules, has a pattern that RE2 cannot express or a reference that leads nowhere. Compiles
 * only schemas with references; costs about 0.1 ms for the others.
 */
export function checkSchema(schema: JsonSchema): void {
  const dialect = dialectOf(schema);
  const { hasReferences } = inspectSchema(schema);
  const metaValidator = metaValidators[dialect]();
  if (metaValidator.validateSchema(schema) !== true) {
    const [first] = describeErrors(metaValidator.errors ?? []) ?? [];
    throw new SchemaError(
      first === undefined || first.field === 'body'
        ? `is no valid JSON Schema: ${first?.issue ?? 'it breaks the rules of its dialect'}`
        : `is no valid JSON Schema: ${first.field} ${first.issue}`,
    );
  }
  if (hasReferences) compile(schema);
}

function dialectOf(schema: JsonSchema): Dialect {
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

const linearFormats = once((): Record<string, Format> => {
  const { fullFormats } = load(
    'ajv-formats/dist/formats.js',
  ) as typeof import('ajv-formats/dist/formats.js');
  const url = fullFormats.url as RegExp;
  // The one format whose time grows with the square of the length.
  return { ...fullFormats, url: (text: string) => text.length <= urlLengthMax && url.test(text) };
});

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Linear in the size of the items: equal items have equal canonical texts. */
function areUnique(items: readonly unknown[]): boolean {
  return items.length < 2 || new Set(items.map(canonicalJson)).size === items.length;
}

function describeErrors(all: readonly ErrorObject[]): Issue[] {
  const issues = new Map<string, Issue>();
  for (const error of withoutNoise(all.slice(0, errorsMax))) {
    const issue = describeError(error);
    issues.set(`${issue.field}\n${issue.issue}`, issue);
    if (issues.size === issuesMax) break;
  }
  return [...issues.values()];
}

/**
 * Of `X or null`: for a value that is of X's type and breaks one of its rules, that rule alone, not that it is no null
 * either; for a value of another type one error that names the types, in place of one for each.
 */
function withoutNoise(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  /** What stands for an error; undefined for one that is left out. */
  const replaced = new Map<ErrorObject, ErrorObject | undefined>();
  for (const whole of errors.filter(({ keyword }) => keyword === 'anyOf')) {
    const branches = errors.filter(
      ({ schemaPath, instancePath }) =>
        schemaPath.startsWith(`${whole.schemaPath}/`) &&
        (instancePath === whole.instancePath || instancePath.startsWith(`${whole.instancePath}/`)),
    );
    const isOfType = ({ keyword, instancePath }: ErrorObject) =>
      keyword === 'type' && instancePath === whole.instancePath;
    const types = branches.filter(isOfType);
    const noNull = types.filter(({ params }) => params['type'] === 'null');
    if (noNull.length !== 1) continue;
    for (const error of [whole, ...noNull]) replaced.set(error, undefined);
    const rules = branches.filter((error) => !isOfType(error));
    for (const rule of rules) {
      const { keyword, instancePath, params } = rule;
      if (keyword !== 'enum' || instancePath !== whole.instancePath) continue;
      const allowedValues = [...params['allowedValues'], null];
      replaced.set(rule, { ...rule, params: { ...params, allowedValues } });
    }
    const others = types.filter((error) => !noNull.includes(error));
    // The allowed values say of what type they are.
    const isListed = rules.some(
      ({ keyword, instancePath }) => keyword === 'enum' && instancePath === whole.instancePath,
    );
    if (isListed) for (const error of others) replaced.set(error, undefined);
    const [first, ...rest] = others;
    if (rules.length > 0 || first === undefined) continue;
    const names = [...new Set(others.flatMap(({ params }) => params['type'] as string | string[]))];
    replaced.set(first, { ...first, params: { ...first.params, type: [...names, 'null'] } });
    for (const error of rest) replaced.set(error, undefined);
  }
  return errors.flatMap((error) => {
    const one = replaced.has(error) ? replaced.get(error) : error;
    return one === undefined ? [] : [one];
  });
}

function describeError(error: ErrorObject): Issue {
  const params = error.params as Record<string, unknown>;
  const extra = params.additionalProperty ?? params.unevaluatedProperty;
  if (typeof extra === 'string') {
    return { field: fieldName(error.instancePath, extra), issue: 'is not allowed' };
  }
  const missing = params.missingProperty;
  if (typeof missing === 'string') {
    return { field: fieldName(error.instancePath, missing), issue: 'is required' };
  }
  return { field: fieldName(error.instancePath), issue: issueText(error, params) };
}

function issueText(error: ErrorObject, params: Record<string, unknown>): string {
  if (error.keyword === 'enum') return `must be one of ${listed(params.allowedValues)}`;
  if (error.keyword === 'const') return `must be ${listed([params.allowedValue])}`;
  if (error.keyword === 'false schema') return 'is not allowed';
  if (error.keyword === 'type') return `must be ${[params.type].flat().join(' or ')}`;
  return cut((error.message ?? 'is not valid').replace('must NOT', 'must not'));
}

function listed(values: unknown): string {
  return cut((Array.isArray(values) ? values : []).map((v) => JSON.stringify(v)).join(', '));
}

function cut(text: string): string {
  return text.length <= allowedTextMax ? text : `${text.slice(0, allowedTextMax)}…`;
}

/** `/a/b~1c/0` and `d` become `a.b/c.0.d`. */
function fieldName(pointer: string, property?: string): string {
  const parts = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (property !== undefined) parts.push(property);
  return cut(parts.join('.')) || 'body';
}
