/**
 * Reads the parameters of a query by the schema of their route: one value each, clean text, integers in
 * plain decimal. The schema alone says which parameters there are, what they may be, and their defaults.
 */
import type { FastifyRequest } from 'fastify';
import type { TObject, TSchema } from 'typebox';
import { invalid, invalidIn, PlatformError } from '../kernel/errors.ts';
import { dayIssue, isDay, momentIssue, momentOf } from '../kernel/moment.ts';
import { isCleanText } from '../kernel/text.ts';
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
/** Characters of a text whose schema has no `maxLength`. */
const textMax = 200;
/** The largest integer where the schema has no `maximum`: that of a column of 32 bits. */
const integerMax = 2_147_483_647;

export type Query = Readonly<Record<string, unknown>>;

/**
 * The refusal of a query with an unreadable parameter or with parameters that the schema of the route
 * does not have. Undocumented routes accept any query.
 */
export function refuseQuery({
  originalUrl,
  query,
  routeOptions,
}: FastifyRequest): PlatformError | undefined {
  const { schema, config } = routeOptions;
  if (config.anyQuery === true || schema?.hide === true || !originalUrl.includes('?'))
    return undefined;
  const unreadable = unreadableParameter(originalUrl);
  if (unreadable !== null) return invalid(unreadable, 'must be percent-encoded UTF-8 without NUL');
  const { properties = {} } = (schema?.querystring ?? {}) as { properties?: object };
  // The reader of a parameter refuses a list `name[]` of it.
  const isKnown = (name: string) => Object.hasOwn(properties, name.replace(/\[\]$/, ''));
  const unknown = Object.keys(query as Query).filter((name) => !isKnown(name));
  if (unknown.length === 0) return undefined;
  const names = unknown.slice(0, issuesMax).map((name) => name.slice(0, nameMax).toWellFormed());
  return invalidIn(names.map((field) => ({ field, issue: 'is no query parameter of this path' })));
}

/**
 * A function that reads a query: the values of the parameters in `schema`, with their defaults, or the
 * refusal of the first invalid one. Other parameters are left out.
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
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Reads one parameter; throws `400 validation_error`. */
type Read = (given: unknown) => string | number;

function readerOf(name: string, schema: TSchema): Read {
  const { type, format, pattern, enum: words, maxLength = textMax, ...bounds } = schema as Rules;
  if (type === 'integer') return integerReader(name, bounds);
  if (type !== 'string') throw new TypeError(`No query can be read for the schema of ${name}`);
  const text = (given: unknown) => textOf(name, given, maxLength);
  if (words !== undefined) {
    return ruled(name, text, (word) => words.includes(word), `must be one of ${words.join(', ')}`);
  }
  if (format === 'date-time') {
    return (given) => {
      const ms = momentOf(text(given));
      if (ms === null) throw invalid(name, momentIssue);
      return ms;
    };
  }
  if (format === 'date') return ruled(name, text, isDay, dayIssue);
  if (pattern === slugPattern) {
    const slug = new RegExp(pattern);
    return ruled(name, text, (id) => slug.test(id), 'must be a slug such as acme-labs');
  }
  // The format of an id is for documentation: a text that is no id finds nothing.
  return text;
}

function ruled(
  name: string,
  text: (given: unknown) => string,
  passes: (text: string) => boolean,
  issue: string,
): Read {
  return (given) => {
    const value = text(given);
    if (passes(value)) return value;
    throw invalid(name, issue);
  };
}

function textOf(name: string, given: unknown, max: number): string {
  if (typeof given !== 'string') throw invalid(name, 'must be given once');
  if (!isCleanText(given)) throw invalid(name, 'must be well-formed text without NUL');
  // As in bodies, characters are code points.
  if (given.length > max && [...given].length > max) {
    throw invalid(name, `must be at most ${max} characters`);
  }
  return given;
}

function integerReader(name: string, { minimum: min = 0, maximum: max = integerMax }: Rules): Read {
  return (given) => {
    const isPlain = typeof given === 'string' && /^(0|[1-9]\d{0,9})$/.test(given);
    const value = isPlain ? Number(given) : NaN;
    if (value >= min && value <= max) return value;
    throw invalid(name, `must be an integer from ${min} to ${max}`);
  };
}
