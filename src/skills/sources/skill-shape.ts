/**
 * Validates the default export of a skill module, field by field. Every fault is the end of a sentence
 * that begins with the file's name. Unknown fields are refused, so that a misspelt `timeoutMS` is not
 * ignored.
 */
import { isObject } from '../../kernel/json.ts';
import { isCleanText, jsonTextFault } from '../../kernel/text.ts';
import type { SkillDefinition } from '../definition.ts';
import { mcpFault } from './mcp-shape.ts';
import { settingsFault } from './settings-shape.ts';

/** First path segments of the platform's own endpoints; no skill may have such a category. */
export const reservedCategories: ReadonlySet<string> = new Set([
  'admin',
  'agent-triggers',
  'agent-webhooks',
  'agents',
  'approvals',
  'console',
  'conversations',
  'docs',
  'events',
  'health',
  'jobs',
  'mcp',
  'memories',
  'metrics',
  'openapi',
  'scheduled-jobs',
  'skills',
  'statistics',
  'webhooks',
]);

const slugPattern = /^[a-z0-9][a-z0-9-]{0,62}$/;
const kebabPattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** The pattern of the Agent Skills standard. */
const nameCharsMax = 64;
const versionPattern = /^v(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/;
const versionCharsMax = 32;
const displayNameCharsMax = 200;
const descriptionBytesMax = 65_536;
const scopesMax = 200;
const timeoutMsMax = 3_600_000;
const attemptsMax = 20;
const examplesBytesMax = 262_144;

/** Undefined for a valid value, else the end of the sentence: `must be …`. */
type Check = (value: unknown, skill: Record<string, unknown>) => string | undefined;

const checks: Record<keyof SkillDefinition, Check> = {
  category: (value) => {
    if (!isMatch(value, slugPattern)) return mustBe('a slug such as text or web-search', value);
    return reservedCategories.has(value)
      ? `must not be ${show(value)}, a reserved word`
      : undefined;
  },
  name: (value) =>
    isMatch(value, kebabPattern) && value.length <= nameCharsMax
      ? undefined
      : mustBe(`kebab-case of at most ${nameCharsMax} characters, such as word-count`, value),
  version: (value) =>
    isMatch(value, versionPattern) && value.length <= versionCharsMax
      ? undefined
      : `must look like v1.0, got ${show(value)}`,
  displayName: (value) => checkText(value, displayNameCharsMax, 'characters', (t) => t.length),
  description: (value) => checkText(value, descriptionBytesMax, 'bytes', Buffer.byteLength),
  parameters: checkObject,
  output: checkObject,
  requiredScopes: optional((value) => {
    if (!Array.isArray(value)) return mustBe('an array of categories', value);
    if (value.length === 0 || value.length > scopesMax) return `must have 1 to ${scopesMax} items`;
    const bad = value.find((scope) => !isMatch(scope, slugPattern));
    return bad === undefined ? undefined : `must hold categories, got ${show(bad)}`;
  }),
  timeoutMs: optional((value) => checkInteger(value, timeoutMsMax)),
  maxAttempts: optional((value) => checkInteger(value, attemptsMax)),
  continuesConversations: optional((value) =>
    typeof value === 'boolean' ? undefined : mustBe('true or false', value),
  ),
  taskField: optional((value, { parameters }) => checkTextField(value, 'parameters', parameters)),
  answerField: optional((value, { output }) => checkTextField(value, 'output', output)),
  examples: optional(checkExamples),
  config: optional(settingsFault),
  mcp: optional(mcpFault),
  run: (value) => (typeof value === 'function' ? undefined : mustBe('a function', value)),
};

/** The fault of the value as a skill, or undefined. */
export function skillFault(value: unknown): string | undefined {
  if (value === undefined)
    return 'has no default export; a skill is the default export, and the name of a file that is none begins with _';
  if (!isObject(value)) return `its default export ${mustBe('a skill object', value)}`;
  for (const [field, check] of Object.entries(checks)) {
    const fault = check(value[field], value);
    if (fault !== undefined) return `${field} ${fault}`;
  }
  const unknown = Object.keys(value).find((field) => !Object.hasOwn(checks, field));
  return unknown === undefined ? undefined : `has the unknown field ${show(unknown)}`;
}

function optional(check: Check): Check {
  return (value, skill) => (value === undefined ? undefined : check(value, skill));
}

function checkText(
  value: unknown,
  max: number,
  unit: string,
  measure: (text: string) => number,
): string | undefined {
  if (typeof value !== 'string' || value.trim() === '') return mustBe('a text', value);
  if (measure(value) > max) return `must have at most ${max} ${unit}, has ${measure(value)}`;
  return isCleanText(value) ? undefined : 'must be well-formed Unicode without NUL';
}

function checkObject(value: unknown): string | undefined {
  return isObject(value) ? undefined : mustBe('a JSON Schema object', value);
}

function checkTextField(value: unknown, of: string, schema: unknown): string | undefined {
  if (value === null) return undefined;
  const properties = (schema as { properties?: Record<string, unknown> }).properties;
  const isField = typeof value === 'string' && Object.hasOwn(properties ?? {}, value);
  const property = isField ? (properties?.[value] as { type?: unknown }) : undefined;
  return property?.type === 'string'
    ? undefined
    : mustBe(`the name of a property of ${of} with the type string`, value);
}

function checkInteger(value: unknown, max: number): string | undefined {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max
    ? undefined
    : mustBe(`an integer from 1 to ${max}`, value);
}

function checkExamples(value: unknown): string | undefined {
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

function mustBe(what: string, value: unknown): string {
  return `must be ${what}, got ${show(value)}`;
}

/** A value for a sentence: strings as JSON, long values by their kind. */
function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (value === null || typeof value !== 'object') return String(value).slice(0, 80);
  return Array.isArray(value) ? 'an array' : 'an object';
}
