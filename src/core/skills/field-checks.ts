/**
 * Checks of the fields of a skill's definition. Every fault is the end of a sentence that begins with the
 * field's name.
 */
import { reservedScopes } from '../../kernel/caller.ts';
import { isObject } from '../../kernel/json.ts';
import { isCleanText, jsonTextFault } from '../../kernel/text.ts';

/** First path segments of the platform's own endpoints; they are no skills' paths. */
export const reservedCategories: ReadonlySet<string> = new Set([
  'accounts',
  'admin',
  'agent-triggers',
  'agent-webhooks',
  'agents',
  'approvals',
  'batches',
  'console',
  'conversations',
  'docs',
  'events',
  'files',
  'health',
  'jobs',
  'mcp',
  'memories',
  'metrics',
  'openapi',
  'queue',
  'scheduled-jobs',
  'skills',
  'statistics',
  'users',
  'webhooks',
]);

/** A skill of such a category would be run by every key that has the scope for something else. */
const reservedWords: ReadonlySet<string> = new Set(reservedScopes);

const slugPattern = /^[a-z0-9][a-z0-9-]{0,62}$/;
const kebabPattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** The pattern of the Agent Skills standard. */
const nameCharsMax = 64;
const versionPattern = /^v(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/;
const versionCharsMax = 32;
const scopesMax = 200;
const examplesBytesMax = 262_144;

export function checkCategory(value: unknown): string | undefined {
  if (!isMatch(value, slugPattern)) return mustBe('a slug such as text or web-search', value);
  const isReserved = reservedCategories.has(value) || reservedWords.has(value);
  return isReserved ? `must not be ${show(value)}, a reserved word` : undefined;
}

export function checkName(value: unknown): string | undefined {
  return isMatch(value, kebabPattern) && value.length <= nameCharsMax
    ? undefined
    : mustBe(`kebab-case of at most ${nameCharsMax} characters, such as word-count`, value);
}

export function checkVersion(value: unknown): string | undefined {
  return isMatch(value, versionPattern) && value.length <= versionCharsMax
    ? undefined
    : `must look like v1.0, got ${show(value)}`;
}

export function checkScopes(value: unknown): string | undefined {
  if (!Array.isArray(value)) return mustBe('an array of categories', value);
  if (value.length === 0 || value.length > scopesMax) return `must have 1 to ${scopesMax} items`;
  const bad = value.find((scope) => !isMatch(scope, slugPattern));
  return bad === undefined ? undefined : `must hold categories, got ${show(bad)}`;
}

export function checkFlag(value: unknown): string | undefined {
  return typeof value === 'boolean' ? undefined : mustBe('true or false', value);
}

export function checkText(
  value: unknown,
  max: number,
  unit: string,
  measure: (text: string) => number,
): string | undefined {
  if (typeof value !== 'string' || value.trim() === '') return mustBe('a text', value);
  if (measure(value) > max) return `must have at most ${max} ${unit}, has ${measure(value)}`;
  return isCleanText(value) ? undefined : 'must be well-formed Unicode without NUL';
}

export function checkObject(value: unknown): string | undefined {
  return isObject(value) ? undefined : mustBe('a JSON Schema object', value);
}

export function checkTextField(value: unknown, of: string, schema: unknown): string | undefined {
  if (value === null) return undefined;
  const properties = (schema as { properties?: Record<string, unknown> }).properties;
  const isField = typeof value === 'string' && Object.hasOwn(properties ?? {}, value);
  const property = isField ? (properties?.[value] as { type?: unknown }) : undefined;
  return property?.type === 'string'
    ? undefined
    : mustBe(`the name of a property of ${of} with the type string`, value);
}

export function checkInteger(value: unknown, max: number): string | undefined {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max
    ? undefined
    : mustBe(`an integer from 1 to ${max}`, value);
}

export function checkExamples(value: unknown): string | undefined {
  if (!Array.isArray(value) || !value.every((item) => isObject(item) && 'input' in item)) {
    return mustBe('an array of { input, output? }', value);
  }
  try {
    const json = JSON.stringify(value);
    const fault = jsonTextFault(json);
    if (fault !== null) return fault;
    const bytes = Buffer.byteLength(json);
    return bytes <= examplesBytesMax ? undefined : `must have at most ${examplesBytesMax} bytes`;
  } catch (error) {
    return `must be JSON: ${(error as Error).message}`;
  }
}

function isMatch(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

export function mustBe(what: string, value: unknown): string {
  return `must be ${what}, got ${show(value)}`;
}

/** A value for a sentence: strings as JSON, long values by their kind. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (value === null || typeof value !== 'object') return String(value).slice(0, 80);
  return Array.isArray(value) ? 'an array' : 'an object';
}
