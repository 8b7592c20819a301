/** Strict parsers of query parameters: one value each, clean text, numbers in plain decimal. */
import type { FastifyRequest } from 'fastify';
import { invalid, invalidIn, type PlatformError } from '../kernel/errors.ts';
import { momentIssue, momentOf } from '../kernel/moment.ts';
import { isCleanText } from '../kernel/text.ts';
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
  // The parser of a parameter refuses a list `name[]` of it.
  const isKnown = (name: string) => Object.hasOwn(properties, name.replace(/\[\]$/, ''));
  const unknown = Object.keys(query as Query).filter((name) => !isKnown(name));
  if (unknown.length === 0) return undefined;
  const names = unknown.slice(0, issuesMax).map((name) => name.slice(0, nameMax).toWellFormed());
  return invalidIn(names.map((field) => ({ field, issue: 'is no query parameter of this path' })));
}

/** The text of a parameter, undefined when it is absent. */
export function textParameter(query: Query, name: string, max = 200): string | undefined {
  const value = given(query, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw invalid(name, 'must be given once');
  if (!isCleanText(value)) throw invalid(name, 'must be well-formed text without NUL');
  // As in bodies, characters are code points.
  if (value.length > max && [...value].length > max) {
    throw invalid(name, `must be at most ${max} characters`);
  }
  return value;
}

/** Like `textParameter`, for one of a few words. */
export function wordParameter<W extends string>(
  query: Query,
  name: string,
  words: readonly W[],
): W | undefined {
  const value = textParameter(query, name);
  if (value === undefined || words.includes(value as W)) return value as W | undefined;
  throw invalid(name, `must be one of ${words.join(', ')}`);
}

/** Like `textParameter`, for a timestamp, in milliseconds. */
export function momentParameter(query: Query, name: string): number | undefined {
  const value = textParameter(query, name);
  if (value === undefined) return undefined;
  const ms = momentOf(value);
  if (ms === null) throw invalid(name, momentIssue);
  return ms;
}

/** The requested page. */
export function pageParameters(
  query: Query,
  limits: { default: number; max: number } = { default: 50, max: 200 },
): { limit: number; offset: number } {
  return {
    limit: integerParameter(query, 'limit', limits.default, 1, limits.max),
    offset: offsetParameter(query),
  };
}

/** How many entries of a list are skipped. */
export function offsetParameter(query: Query): number {
  return integerParameter(query, 'offset', 0, 0, 2_147_483_647);
}

/** An integer from `min` to `max`, `absent` when it is not there. Plain decimal digits only. */
export function integerParameter(
  query: Query,
  name: string,
  absent: number,
  min: number,
  max: number,
): number {
  const text = given(query, name);
  if (text === undefined) return absent;
  const value = typeof text === 'string' && /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw invalid(name, `must be an integer from ${min} to ${max}`);
}

/** The raw value; a list for `name[]`, which some clients send for a list. */
function given(query: Query, name: string): unknown {
  return query[name] === undefined && `${name}[]` in query ? [] : query[name];
}
