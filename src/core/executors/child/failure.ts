/**
 * Turns a value that a skill threw into the fields of a failed run. Takes any value: strings, objects
 * with getters that throw, errors with a chain of causes. Never throws.
 */
import { basename } from 'node:path';
import { cutToUnits } from '../../../kernel/cut-text.ts';
import { errorCharsMax } from '../limits.ts';
import type { FailureCode } from '../protocol.ts';
import { redacted } from '../redaction.ts';
import { callerFrame } from '../stack-frames.ts';
import type { Run } from './part.ts';

/** A failed run, as the child reports it. `stack` is for the operator's log only. */
export interface Failure {
  readonly code: FailureCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly stack: string | null;
  /** Milliseconds that the job is to wait before its next attempt; null for the usual delay. */
  readonly retryAfterMs: number | null;
}

/** Codes that a skill's errors may have; those of budgets and guards are the platform's, passed on. */
const ownCodes: readonly unknown[] = [
  'missing_credentials',
  'upstream_unavailable',
  'budget_exceeded',
  'model_refused',
  'guard_refused',
  'guard_failed',
];
/** `fetch failed` says nothing without its cause; three levels are enough for undici's. */
const causesMax = 3;
/** Codes of Node's errors that name the file which imports, and the one which is not there. */
const missingModule: ReadonlySet<unknown> = new Set([
  'ERR_MODULE_NOT_FOUND',
  'ERR_PACKAGE_PATH_NOT_EXPORTED',
  'ERR_UNSUPPORTED_DIR_IMPORT',
  'MODULE_NOT_FOUND',
]);
const validationErrors = /^(?:\$?Zod\w*Error|ValiError|SchemaError)$/;
/** Issues of such an error that its message names. */
const issuesShownMax = 5;
const noRun = { secrets: undefined };

const unexplained = { stack: null, retryAfterMs: null };

/** An invalid output; a retry would give the same. */
export function invalidOutput(message: string): Failure {
  return { code: 'output_invalid', message: cutError(message), retryable: false, ...unexplained };
}

/** A failure found by the platform itself; no stack is worth keeping. */
export function plainFailure(message: string, retryable: boolean): Failure {
  return { code: 'skill_execution_failed', message: cutError(message), retryable, ...unexplained };
}

/** The failure that a thrown value stands for, without the secrets of the run that threw it. */
export function describeFailure(thrown: unknown, run: Pick<Run, 'secrets'> = noRun): Failure {
  try {
    const { code, retryable, stack, retryAfterMs } = fieldsOf(thrown);
    const isOwn = ownCodes.includes(code);
    const trace = typeof stack === 'string' ? stackOf(stack, retryable !== undefined) : null;
    const issues = issuesOf(thrown);
    return {
      code: isOwn ? (code as FailureCode) : 'skill_execution_failed',
      message: cutError(redacted(run, issues ?? messageOf(thrown, causesMax))),
      // The same value would be refused again.
      retryable: issues === null ? retryable !== false : retryable === true,
      stack: trace === null ? null : cutError(redacted(run, trace)),
      retryAfterMs: isDelay(retryAfterMs) ? Math.ceil(retryAfterMs) : null,
    };
  } catch {
    return plainFailure('the skill threw something that cannot be read', true);
  }
}

const isDelay = (value: unknown): value is number =>
  typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER;

/** An error with `retryable` was expected: of its frames, the one in the skill's code is enough. */
function stackOf(stack: string, isExpected: boolean): string | null {
  if (!isExpected) return stack;
  const frame = callerFrame(stack);
  return frame === null ? null : `${stack.split('\n', 1)[0]}\n    ${frame.text}`;
}

/** What an error may have. */
export const cutError = (text: string) => cutToUnits(text, errorCharsMax);

/**
 * A sentence for the error of zod, or of a library like it, about a value that a schema in the skill's code refused; null for
 * any other error. The message of zod is a list as JSON.
 */
function issuesOf(thrown: unknown): string | null {
  const { name, issues } = fieldsOf(thrown);
  if (typeof name !== 'string' || !validationErrors.test(name)) return null;
  if (!Array.isArray(issues) || issues.length === 0) return null;
  const texts = issues.slice(0, issuesShownMax).map(issueText);
  const more = issues.length - texts.length;
  const rest = more === 0 ? '' : `; and ${more} more`;
  return `a value does not fit a schema of the skill's code: ${texts.join('; ')}${rest}`;
}

function issueText(issue: unknown): string {
  const { path, message } = (issue ?? {}) as { path?: unknown; message?: unknown };
  const text = typeof message === 'string' ? message : 'is not valid';
  if (!Array.isArray(path) || path.length === 0) return text;
  // Of some libraries each part is an object.
  const names = path.map((part) => String((part as { key?: unknown } | null)?.key ?? part));
  return `${names.join('.')}: ${text}`;
}

interface Fields {
  issues?: unknown;
  name?: unknown;
  message?: unknown;
  code?: unknown;
  retryable?: unknown;
  retryAfterMs?: unknown;
  stack?: unknown;
  cause?: unknown;
  errors?: unknown;
}

function fieldsOf(thrown: unknown): Fields {
  return thrown !== null && typeof thrown === 'object' ? thrown : {};
}

function messageOf(thrown: unknown, causes: number): string {
  if (typeof thrown === 'string' && thrown !== '') return thrown;
  if (thrown === null || typeof thrown !== 'object') return `the skill threw ${textOf(thrown)}`;
  const message = ownMessage(thrown, causes);
  const { cause } = fieldsOf(thrown);
  if (cause === undefined || cause === null || causes === 0) return message;
  const because = messageOf(cause, causes - 1);
  return message.includes(because) ? message : `${message}: ${because}`;
}

function ownMessage(thrown: object, causes: number): string {
  const { message, errors, code, name } = fieldsOf(thrown);
  if (typeof message === 'string' && message !== '') {
    return missingModule.has(code) ? withoutPaths(message) : message;
  }
  if (Array.isArray(errors) && errors.length > 0 && causes > 0)
    return messageOf(errors[0], causes - 1);
  const known = [code, name].find((text) => typeof text === 'string' && text !== '');
  return typeof known === 'string' ? known : 'the skill threw an object without a message';
}

/** Where files are on the server is not a caller's business. */
function withoutPaths(message: string): string {
  const [sentence = ''] = message.split('\n', 1);
  return sentence
    .replace(/ (?:in|imported from) \/.*$/, '')
    .replace(/'\/[^']*'/g, (path) => `'${basename(path)}`);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? 'an empty string' : String(value);
}
