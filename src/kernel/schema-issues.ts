/** Writes the errors of a validation as issues for callers: dotted paths, few and short texts. */
import type { ErrorObject } from 'ajv';
import type { Issue } from './errors.ts';

/** Issues reported for one value. */
const issuesMax = 50;
/**
 * Errors that are read: the branches of an `anyOf` may have many for one issue. Each `anyOf` is compared with all of
 * them.
 */
const errorsMax = 400;
/** Characters of a field's name, of one allowed value, and of their whole list, in an issue. */
const allowedTextMax = 200;

/** At most 50 issues, for the errors in the form of Ajv. */
export function describeErrors(all: readonly ErrorObject[]): Issue[] {
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
    const [path, place] = [`${whole.schemaPath}/`, `${whole.instancePath}/`];
    const branches = errors.filter(
      ({ schemaPath, instancePath }) =>
        schemaPath.startsWith(path) &&
        (instancePath === whole.instancePath || instancePath.startsWith(place)),
    );
    const isOfType = ({ keyword, instancePath }: ErrorObject) =>
      keyword === 'type' && instancePath === whole.instancePath;
    const types = branches.filter(isOfType);
    const noNull = types.filter(({ params }) => params['type'] === 'null');
    // Of a union with null alone, nothing would be left of the refusal.
    if (noNull.length !== 1 || branches.length === 1) continue;
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
  let text = '';
  for (const value of Array.isArray(values) ? values : []) {
    text += `${text === '' ? '' : ', '}${JSON.stringify(value)}`;
    // There may be thousands, and each of many errors lists them.
    if (text.length > allowedTextMax) break;
  }
  return cut(text);
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
