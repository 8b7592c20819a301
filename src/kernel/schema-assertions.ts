/** The keywords of JSON Schema that judge a value itself, as rules of a stranger's schema. */
import { isObject } from './json.ts';
import { linearFormats } from './schema-formats.ts';
import type { ReadKeyword, Rule } from './schema-nodes.ts';
import { matchesPattern } from './schema-patterns.ts';
import { SchemaError } from './schema-rules.ts';
import type { StepMeter } from './schema-run.ts';
import { isLongerThan } from './step-bounds.ts';
import { areUnique, canonicalJson } from './text.ts';
import { scalarNodes } from './value-size.ts';

export function malformed(keyword: string, form: string): SchemaError {
  return new SchemaError(`has the keyword ${keyword}, which must be ${form}`);
}

/** As JSON has them: infinity is no number. */
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  number: isNumber,
  integer: (value) => Number.isInteger(value),
  string: (value) => typeof value === 'string',
  array: Array.isArray,
  object: isObject,
};

const readType: ReadKeyword = (_reading, { nullable }, value) => {
  const named: unknown[] = Array.isArray(value) ? value : [value];
  // As the dialects have it; otherwise one type could be tested thousands of times.
  if (new Set(named).size < named.length) throw malformed('type', 'a list of different types');
  // A keyword of OpenAPI 3.0, which many tools still write.
  const all = nullable === true && !named.includes('null') ? [...named, 'null'] : named;
  const tests = all.map((name) => {
    const test = typeof name === 'string' && Object.hasOwn(types, name) ? types[name] : undefined;
    if (test === undefined) throw malformed('type', 'the name of a type, or a list of them');
    return test;
  });
  const params = { type: all.length === 1 ? all[0] : all };
  return (run, one, place) =>
    tests.some((test) => test(one)) || run.fail(place, 'type', params, 'must be of another type');
};

/** The values that are listed: scalars by identity, others by their canonical texts. */
function listRule(
  values: readonly unknown[],
  fault: readonly [keyword: string, params: object, message: string],
): Rule {
  const scalars = new Set<unknown>();
  const texts = new Set<string>();
  for (const value of values) {
    if (typeof value === 'object' && value !== null) texts.add(canonicalJson(value));
    else scalars.add(value);
  }
  return (run, value, place) => {
    run.meter.spend(scalarNodes(value));
    const isListed =
      typeof value === 'object' && value !== null
        ? texts.size > 0 && texts.has(run.canonical(value))
        : scalars.has(value);
    return isListed || run.fail(place, ...fault);
  };
}

const readEnum: ReadKeyword = (_reading, _schema, values) => {
  if (!Array.isArray(values)) throw malformed('enum', 'a list');
  const params = { allowedValues: values };
  return listRule(values, ['enum', params, 'must be equal to one of the allowed values']);
};

const readConst: ReadKeyword = (_reading, _schema, value) =>
  listRule([value], ['const', { allowedValue: value }, 'must be equal to constant']);

/** A rule of numbers, strings, arrays or objects with a number as its bound. */
const bound = (
  keyword: string,
  words: string,
  measure: (value: unknown, bound: number) => boolean | null,
) =>
  [
    keyword,
    ((_reading, _schema, limit) => {
      if (!isNumber(limit)) throw malformed(keyword, 'a number');
      const message = `must ${words.replace('#', String(limit))}`;
      // Null is for values that the keyword says nothing of.
      return (run, value, place) =>
        measure(value, limit) !== false || run.fail(place, keyword, { limit }, message);
    }) satisfies ReadKeyword,
  ] as const;

const numberIs =
  (test: (value: number, bound: number) => boolean) => (value: unknown, limit: number) =>
    isNumber(value) ? test(value, limit) : null;
const itemsAre =
  (test: (count: number, bound: number) => boolean) => (value: unknown, limit: number) =>
    Array.isArray(value) ? test(value.length, limit) : null;

const isAtLeast = (a: number, b: number) => a >= b;
const isAtMost = (a: number, b: number) => a <= b;

const membersRule =
  (keyword: string, words: string, test: typeof isAtLeast): ReadKeyword =>
  (_reading, _schema, limit) => {
    if (!isNumber(limit)) throw malformed(keyword, 'a number');
    return (run, value, place) => {
      if (!isObject(value)) return true;
      const { length } = run.members(value);
      const message = `must NOT have ${words} than ${limit} properties`;
      return test(length, limit) || run.fail(place, keyword, { limit }, message);
    };
  };

const lengthRule =
  (keyword: string, words: string, isTooLong: boolean): ReadKeyword =>
  (_reading, _schema, limit) => {
    if (!isNumber(limit)) throw malformed(keyword, 'a number');
    return (run, value, place) => {
      if (typeof value !== 'string') return true;
      const isLonger = exceeds(run.meter, value, isTooLong ? limit : limit - 1);
      const message = `must NOT have ${words} than ${limit} characters`;
      return isLonger !== isTooLong || run.fail(place, keyword, { limit }, message);
    };
  };

/** Whether a text has more characters than `max`; few texts have to be counted. */
function exceeds(meter: StepMeter, text: string, max: number): boolean {
  if (text.length > max && text.length <= 2 * max) meter.spend(text.length);
  return isLongerThan(text, max);
}

const readPattern: ReadKeyword = (reading, _schema, pattern) => {
  if (typeof pattern !== 'string') throw malformed('pattern', 'a text');
  const read = reading.pattern(pattern);
  return (run, value, place) =>
    typeof value !== 'string' ||
    matchesPattern(run.meter, read, value) ||
    run.fail(place, 'pattern', { pattern }, `must match pattern "${pattern}"`);
};

const readFormat: ReadKeyword = (_reading, _schema, format) => {
  const formats = linearFormats();
  if (typeof format !== 'string') throw malformed('format', 'a text');
  const found = Object.hasOwn(formats, format) ? formats[format] : undefined;
  const { type = 'string', validate = found } =
    typeof found === 'object' && 'validate' in found ? found : {};
  const test = validate instanceof RegExp ? (text: string) => validate.test(text) : validate;
  // An unknown format refuses nothing.
  if (typeof test !== 'function') return null;
  const passes = test as (value: unknown) => unknown;
  return (run, value, place) => {
    if (type === 'number' ? !isNumber(value) : typeof value !== 'string') return true;
    run.meter.spend(typeof value === 'string' ? value.length : 1);
    return (
      passes(value) === true ||
      run.fail(place, 'format', { format }, `must match format "${format}"`)
    );
  };
};

const readUnique: ReadKeyword = (_reading, _schema, isUnique) => {
  if (typeof isUnique !== 'boolean') throw malformed('uniqueItems', 'true or false');
  if (!isUnique) return null;
  return (run, value, place) => {
    if (!Array.isArray(value) || value.length < 2) return true;
    run.spendText(value);
    return areUnique(value) || run.fail(place, 'uniqueItems', {}, 'must not have duplicate items');
  };
};

const readRequired: ReadKeyword = (_reading, _schema, names) => {
  if (!isNames(names)) throw malformed('required', 'a list of names');
  return (run, value, place) => {
    if (!isObject(value)) return true;
    run.meter.spend(names.length);
    let fits = true;
    for (const name of names) {
      if (Object.hasOwn(value, name)) continue;
      fits = run.fail(place, 'required', { missingProperty: name }, 'is required');
      if (run.finding !== 'all') return fits;
    }
    return fits;
  };
};

export function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

const isMultiple = (value: number, step: number) => Number.isInteger(value / step);

/** In the order in which they are validated. */
export const assertions: readonly (readonly [keyword: string, read: ReadKeyword])[] = [
  ['type', readType],
  bound('maximum', 'be <= #', numberIs(isAtMost)),
  bound('minimum', 'be >= #', numberIs(isAtLeast)),
  bound(
    'exclusiveMaximum',
    'be < #',
    numberIs((a, b) => a < b),
  ),
  bound(
    'exclusiveMinimum',
    'be > #',
    numberIs((a, b) => a > b),
  ),
  bound('multipleOf', 'be multiple of #', numberIs(isMultiple)),
  ['maxLength', lengthRule('maxLength', 'more', true)],
  ['minLength', lengthRule('minLength', 'fewer', false)],
  ['pattern', readPattern],
  ['format', readFormat],
  ['const', readConst],
  ['enum', readEnum],
  bound('maxItems', 'NOT have more than # items', itemsAre(isAtMost)),
  bound('minItems', 'NOT have fewer than # items', itemsAre(isAtLeast)),
  ['uniqueItems', readUnique],
  ['maxProperties', membersRule('maxProperties', 'more', isAtMost)],
  ['minProperties', membersRule('minProperties', 'fewer', isAtLeast)],
  ['required', readRequired],
];
