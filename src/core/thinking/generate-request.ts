/**
 * Reads a run's request to its agent's model, which comes from skill code and is treated as hostile. Also
 * computes the id of the generation, which is the same for the same request in every attempt.
 */

import { type Effort, efforts } from '../../adapters/models/model.ts';
import { digestOf } from '../../kernel/digest.ts';
import { isObject } from '../../kernel/json.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { settingBounds } from '../agents/setting-bounds.ts';

const promptBytesMax = 1_000_000;
const systemBytesMax = 262_144;
const schemaBytesMax = 65_536;
const patternsMax = 200;
const turnsLimit = 1_000;
const outputTokensLimit = 1_000_000;
const correctionsMax = 10;
const correctionCharsMax = 4_096;
const attachmentsMax = 20;
const attachmentBytesMax = 8_192;

/** The options of a valid request. */
export interface GenerateOptions {
  readonly prompt: string;
  readonly system: string;
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly tools: boolean | readonly string[];
  readonly files?: string;
  readonly attachments?: readonly string[];
  readonly continues: boolean;
  readonly maxOutputTokens?: number;
  readonly maxTurns?: number;
  readonly temperature?: number;
  readonly effort?: Effort;
  readonly timeoutMs?: number;
  readonly firstByteTimeoutMs?: number;
}

/** A request, its number among equal ones in the run, and the corrections to its answers so far. */
export interface GenerateRequest {
  readonly request: GenerateOptions;
  readonly nth: number;
  readonly corrections: readonly string[];
}

/** Throws an error with a sentence for the author of the skill. */
export function readGenerateRequest(payload: unknown): GenerateRequest {
  const { request, nth, corrections } = objectOf('a request', payload);
  if (!isIntegerIn(nth, 1, Number.MAX_SAFE_INTEGER)) throw permanentError('nth must be a count');
  if (!isListOf(corrections, correctionsMax, text(correctionCharsMax * 3))) {
    throw permanentError(`corrections must be up to ${correctionsMax} texts`);
  }
  return { request: readRequest(request), nth, corrections };
}

/** A check of one option, with a sentence for a value that fails it. */
type OptionRule = readonly [isValid: (value: unknown) => boolean, requirement: string];

const integer = (max: number, min = 1): OptionRule => [
  (value) => isIntegerIn(value, min, max),
  `must be an integer from ${min} to ${max}`,
];
const milliseconds = ({ minimum, maximum }: { minimum: number; maximum: number }) =>
  integer(maximum, minimum);
const text = (bytesMax: number) => (value: unknown) => isText(value, bytesMax);

const rules: Readonly<Record<keyof GenerateOptions, OptionRule>> = {
  prompt: [
    (value) => isText(value, promptBytesMax) && value !== '',
    `must be a text of 1 to ${promptBytesMax} bytes`,
  ],
  system: [text(systemBytesMax), `must be a text of at most ${systemBytesMax / 1024} KiB`],
  continues: [(value) => typeof value === 'boolean', 'must be true or false'],
  files: [text(300), 'must name a skill as category/version/name'],
  attachments: [
    (value) => isListOf(value, attachmentsMax, text(attachmentBytesMax)),
    `must be up to ${attachmentsMax} ids of files or urls`,
  ],
  schema: [
    (value) => isText(JSON.stringify(objectOf('schema', value)), schemaBytesMax),
    `must have at most ${schemaBytesMax / 1024} KiB of JSON`,
  ],
  tools: [
    (value) => typeof value === 'boolean' || isListOf(value, patternsMax, text(200)),
    'must be true, false or a list of patterns such as text/*',
  ],
  maxOutputTokens: integer(outputTokensLimit),
  maxTurns: integer(turnsLimit),
  temperature: [
    (value) => typeof value === 'number' && value >= 0 && value <= 2,
    'must be a number from 0 to 2',
  ],
  effort: [
    (value) => (efforts as readonly unknown[]).includes(value),
    `must be one of ${efforts.join(', ')}`,
  ],
  timeoutMs: milliseconds(settingBounds.timeout_ms),
  firstByteTimeoutMs: milliseconds(settingBounds.first_byte_timeout_ms),
};

function readRequest(payload: unknown): GenerateOptions {
  const fields = objectOf('what is asked of generate', payload);
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(rules, name));
  if (unknown !== undefined) throw permanentError(`generate knows no ${unknown.slice(0, 200)}`);
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const request = {
    prompt: undefined,
    system: '',
    tools: false,
    continues: false,
    ...Object.fromEntries(given),
  };
  for (const [name, value] of Object.entries(request)) {
    const [isValid, requirement] = rules[name as keyof GenerateOptions];
    if (!isValid(value)) throw permanentError(`${name} ${requirement}`);
  }
  return request as unknown as GenerateOptions;
}

/** `path` is that of the part of the run that asks: empty for the run itself. */
export function generationIdOf(path: string, { request, nth }: GenerateRequest): string {
  return digestOf(`${path}\n${nth}\n${canonicalJson(request)}`);
}

function objectOf(what: string, value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw permanentError(`${what} must be an object`);
}

function isText(value: unknown, bytesMax: number): value is string {
  return typeof value === 'string' && Buffer.byteLength(value) <= bytesMax;
}

function isListOf(
  value: unknown,
  max: number,
  isValid: (one: unknown) => boolean,
): value is string[] {
  return Array.isArray(value) && value.length <= max && value.every(isValid);
}

function isIntegerIn(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
