/**
 * Reads a run's request to its agent's model, which comes from skill code and is treated as hostile. Also
 * computes the id of the generation, which is the same for the same request in every attempt.
 */
import { createHash } from 'node:crypto';
import { permanentError } from '../kernel/permanent-error.ts';
import { canonicalJson } from '../kernel/text.ts';

const promptBytesMax = 1_000_000;
const systemBytesMax = 262_144;
const schemaBytesMax = 65_536;
const patternsMax = 200;
const turnsLimit = 1_000;
const outputTokensLimit = 1_000_000;
const correctionsMax = 10;
const correctionCharsMax = 4_096;

/** The options of a valid request. */
export interface GenerateOptions {
  readonly prompt: string;
  readonly system: string;
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  readonly tools: boolean | readonly string[];
  readonly files: string | undefined;
  readonly continues: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly maxTurns: number | undefined;
  readonly temperature: number | undefined;
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
  const isList = Array.isArray(corrections) && corrections.length <= correctionsMax;
  if (!isList || !corrections.every((one) => isText(one, correctionCharsMax * 3))) {
    throw permanentError(`corrections must be up to ${correctionsMax} texts`);
  }
  return { request: readRequest(request), nth, corrections };
}

const known = new Set([
  'prompt',
  'system',
  'schema',
  'tools',
  'files',
  'continues',
  'maxOutputTokens',
  'maxTurns',
  'temperature',
]);

function readRequest(payload: unknown): GenerateOptions {
  const fields = objectOf('what is asked of generate', payload);
  const unknown = Object.keys(fields).find((name) => !known.has(name));
  if (unknown !== undefined) throw permanentError(`generate knows no ${unknown.slice(0, 200)}`);
  const { prompt, system = '', schema, tools = false, files, continues = false } = fields;
  const { maxOutputTokens, maxTurns, temperature } = fields;
  if (!isText(prompt, promptBytesMax) || prompt === '') {
    throw permanentError(`prompt must be a text of 1 to ${promptBytesMax} bytes`);
  }
  if (!isText(system, systemBytesMax)) {
    throw permanentError(`system must be a text of at most ${systemBytesMax / 1024} KiB`);
  }
  if (typeof continues !== 'boolean') throw permanentError('continues must be true or false');
  if (files !== undefined && !isText(files, 300)) {
    throw permanentError('files must name a skill as category/version/name');
  }
  return {
    prompt,
    system,
    schema: schema === undefined ? undefined : readSchema(schema),
    tools: readTools(tools),
    files,
    continues,
    maxOutputTokens: readInteger('maxOutputTokens', maxOutputTokens, outputTokensLimit),
    maxTurns: readInteger('maxTurns', maxTurns, turnsLimit),
    temperature: readTemperature(temperature),
  };
}

function readSchema(schema: unknown): Readonly<Record<string, unknown>> {
  const fields = objectOf('schema', schema);
  if (Buffer.byteLength(JSON.stringify(fields)) > schemaBytesMax) {
    throw permanentError(`schema must have at most ${schemaBytesMax / 1024} KiB of JSON`);
  }
  return fields;
}

function readTools(tools: unknown): boolean | readonly string[] {
  if (typeof tools === 'boolean') return tools;
  const isList = Array.isArray(tools) && tools.length <= patternsMax;
  if (isList && tools.every((pattern) => isText(pattern, 200))) return tools;
  throw permanentError('tools must be true, false or a list of patterns such as text/*');
}

function readInteger(name: string, value: unknown, max: number): number | undefined {
  if (value === undefined || isIntegerIn(value, 1, max)) return value;
  throw permanentError(`${name} must be an integer from 1 to ${max}`);
}

function readTemperature(value: unknown): number | undefined {
  if (value === undefined || (typeof value === 'number' && value >= 0 && value <= 2)) return value;
  throw permanentError('temperature must be a number from 0 to 2');
}

/** `path` is that of the part of the run that asks: empty for the run itself. */
export function generationIdOf(path: string, { request, nth }: GenerateRequest): string {
  return createHash('sha256')
    .update(`${path}\n${nth}\n${canonicalJson(withoutUndefined(request))}`)
    .digest('base64url')
    .slice(0, 22);
}

function withoutUndefined(request: GenerateOptions): Record<string, unknown> {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
}

function objectOf(what: string, value: unknown): Record<string, unknown> {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw permanentError(`${what} must be an object`);
}

function isText(value: unknown, bytesMax: number): value is string {
  return typeof value === 'string' && Buffer.byteLength(value) <= bytesMax;
}

function isIntegerIn(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
