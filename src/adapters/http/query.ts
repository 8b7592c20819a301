/**
 * Reads the parameters of a query by the schema of their route: one value each, clean text, integers in
 * plain decimal. The schema alone says which parameters there are, what they may be, and their defaults.
 */
import type { FastifyRequest, RouteOptions } from 'fastify';
import type { TObject, TSchema } from 'typebox';
import { invalid, invalidIn, PlatformError } from '../../kernel/errors.ts';
import { dayIssue, isDay, requireMoment } from '../../kernel/moment.ts';
import { isCleanText } from '../../kernel/text.ts';
import { slugPattern } from './schemas.ts';
import { unreadableParameter } from './url.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    anyQuery?: boolean;
  }
}

/** The `config` of a route that accepts any query parameters. */
export const takingAnyQuery = { anyQuery: true };

/** Unknown parameters that a refusal names, and characters of their names. */
const issuesMax = 50;
const nameMax = 200;
/** Characters of a text that words, a format or the pattern of a slug bound already. */
const boundedTextMax = 200;
/** The largest integer that a parameter can have: ten digits are read. */
const integerMax = 9_999_999_999;

export type Query = Readonly<Record<string, unknown>>;

/**
 * A hook that refuses a query with an unreadable parameter or with parameters that the schema of the route
 * does not have. Undefined for undocumented routes, which accept any query.
 */
export function queryHook({ schema, config }: RouteOptions) {
  if (config?.anyQuery === true || schema?.hide === true) return undefined;
  const { properties = {} } = (schema?.querystring ?? {}) as { properties?: object };
  return ({ originalUrl, query }: FastifyRequest, _reply: unknown, next: (error?: Error) => void) =>
    next(
      originalUrl.includes('?') ? refusalOf(originalUrl, query as Query, properties) : undefined,
    );
}

function refusalOf(url: string, query: Query, properties: object): PlatformError | undefined {
  const unreadable = unreadableParameter(url);
  if (unreadable !== null) return invalid(unreadable, 'must be percent-encoded UTF-8 without NUL');
  // The reader of a parameter refuses a list `name[]` of it.
  const isKnown = (name: string) => Object.hasOwn(properties, name.replace(/\[\]$/, ''));
  const unknown = Object.keys(query).filter((name) => !isKnown(name));
  if (unknown.length === 0) return undefined;
  const names = unknown.slice(0, issuesMax).map((name) => name.slice(0, nameMax).toWellFormed());
  return invalidIn(names.map((field) => ({ field, issue: 'is no query parameter of this path' })));
}

/**
 * A function that reads a query: the values of the parameters in `schema`, with their defaults, or the
 * refusal of the first invalid one. Other parameters are left out. Throws where the schema has a keyword
 * that is not read here, or a text or an integer without bounds.
 */
export function queryReader({ properties, ...schema }: TObject) {
  const required: readonly string[] = schema.required ?? [];
  const parameters = Object.entries(properties).map(([name, schema]) => ({
    name,
    list: `${name}[]`,
    read: readerOf(name, schema),
    absent: (schema as { default?: unknown }).default,
    isRequired: required.includes(name),
  }));
  return (query: Query): { value: Record<string, unknown> } | { error: Error } => {
    const value: Record<string, unknown> = {};
    try {
      for (const { name, list, read, absent, isRequired } of parameters) {
        // Some clients send `name[]` for a list.
        const given: unknown = query[name] === undefined && list in query ? [] : query[name];
        if (given !== undefined) value[name] = read(given);
        else if (absent !== undefined) value[name] = absent;
        else if (isRequired) throw invalid(name, 'is required');
      }
      return { value };
    } catch (error) {
      if (error instanceof PlatformError) return { error };
      throw error;
    }
  };
}

interface Rules {
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Keywords that do not restrict values. */
const annotations = ['type', 'title', 'description', 'examples', 'default', 'deprecated'];
const textKeywords = [...annotations, 'enum', 'format', 'pattern', 'minLength', 'maxLength'];
const integerKeywords = [...annotations, 'minimum', 'maximum'];
/** The format of an id is for documentation: a text that is no id finds nothing. */
const formats = ['date-time', 'date', 'uuid'];

/** Reads one parameter; throws `400 validation_error`. */
type ParameterReader = (given: unknown) => string | number;

function readerOf(name: string, schema: TSchema): ParameterReader {
  const rules = schema as Rules;
  const isInteger = rules.type === 'integer';
  if (!isInteger && rules.type !== 'string') throw unreadable(name, 'its type');
  const read = isInteger ? integerKeywords : textKeywords;
  const unread = Object.keys(schema).find((keyword) => !read.includes(keyword));
  if (unread !== undefined) throw unreadable(name, unread);
  return isInteger ? integerReader(name, rules) : textReader(name, rules);
}

/** The error for a schema that promises what this module does not check. */
const unreadable = (name: string, what: string) =>
  new TypeError(`No query can be read for the schema of ${name}: ${what}`);

/** The issue of a text; null for one that is allowed. */
type TextCheck = (text: string) => string | null;

function textReader(name: string, rules: Rules): ParameterReader {
  const { format, minLength: min = 0, maxLength } = rules;
  if (format !== undefined && !formats.includes(format)) throw unreadable(name, `format ${format}`);
  const isBounded =
    rules.enum !== undefined || format !== undefined || rules.pattern === slugPattern;
  if (maxLength === undefined && !isBounded) throw unreadable(name, 'it has no maxLength');
  const max = maxLength ?? boundedTextMax;
  const checks = checksOf(rules);
  return (given) => {
    const text = textOf(name, given, min, max);
    for (const check of checks) {
      const issue = check(text);
      if (issue !== null) throw invalid(name, issue);
    }
    return format === 'date-time' ? requireMoment(name, text) : text;
  };
}

function checksOf({ enum: words, format, pattern }: Rules): TextCheck[] {
  const checks: TextCheck[] = [];
  if (words !== undefined) {
    const issue = `must be one of ${words.join(', ')}`;
    checks.push((text) => (words.includes(text) ? null : issue));
  }
  if (format === 'date') checks.push((text) => (isDay(text) ? null : dayIssue));
  if (pattern !== undefined) {
    const compiled = new RegExp(pattern, 'u');
    const isSlug = pattern === slugPattern;
    const issue = isSlug ? 'must be a slug such as acme-labs' : `must match ${pattern}`;
    checks.push((text) => (compiled.test(text) ? null : issue));
  }
  return checks;
}

function textOf(name: string, given: unknown, min: number, max: number): string {
  if (typeof given !== 'string') throw invalid(name, 'must be given once');
  if (!isCleanText(given)) throw invalid(name, 'must be well-formed text without NUL');
  // As in bodies, characters are code points.
  if (given.length > max && [...given].length > max) {
    throw invalid(name, `must be at most ${max} characters`);
  }
  if (min > 0 && [...given].length < min) {
    throw invalid(name, `must be at least ${min} characters`);
  }
  return given;
}

function integerReader(name: string, { minimum: min, maximum: max }: Rules): ParameterReader {
  if (min === undefined || max === undefined || min < 0 || max > integerMax) {
    throw unreadable(name, `it needs a minimum and a maximum from 0 to ${integerMax}`);
  }
  return (given) => {
    const isPlain = typeof given === 'string' && /^(0|[1-9]\d{0,9})$/.test(given);
    const value = isPlain ? Number(given) : NaN;
    if (value >= min && value <= max) return value;
    throw invalid(name, `must be an integer from ${min} to ${max}`);
  };
}
