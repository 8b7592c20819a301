/** Reads the arguments of steps and waits. A retry would have the same arguments, so each error is permanent. */
import { permanentError } from '../../../kernel/permanent-error.ts';
import { isLongerThan, stepNameCharsMax } from '../../../kernel/step-bounds.ts';
import { isCleanText } from '../../../kernel/text.ts';

const retriesMax = 100;
/** The longest time of a timer. */
const timeoutMaxMs = 2 ** 31 - 1;

/** A text of 1 to 200 characters. */
export function readName(value: unknown, what: string): string {
  return readText(value, stepNameCharsMax, what);
}

/** A text that a database can store, and that is not empty. */
export function readText(value: unknown, charsMax: number, what: string): string {
  if (typeof value !== 'string' || value === '') {
    throw permanentError(`${what} must be a text that is not empty`);
  }
  if (isLongerThan(value, charsMax)) {
    throw permanentError(`${what} may have ${charsMax} characters; this one has more`);
  }
  if (!isCleanText(value)) {
    throw permanentError(`${what} contains a NUL character or a lone surrogate`);
  }
  return value;
}

export function checkFunction(value: unknown, what: string): void {
  if (typeof value !== 'function') throw permanentError(`${what} must be a function`);
}

/** The fields of an object of options; another field is probably misspelt. */
export function readFields(
  value: unknown,
  known: readonly string[],
  what: string,
): Readonly<Record<string, unknown>> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw permanentError(`${what} must be an object with ${known.join(', ')}`);
  }
  const strange = Object.keys(value).find((name) => !known.includes(name));
  if (strange !== undefined) {
    throw permanentError(
      `${what} has no ${JSON.stringify(strange)}; there are ${known.join(', ')}`,
    );
  }
  return value as Record<string, unknown>;
}

/** How a step is executed. */
export interface StepExecution {
  /** Further executions after a failure. */
  readonly retries: number;
  /** Milliseconds of one execution; undefined without a limit. */
  readonly timeoutMs: number | undefined;
}

export const executionFields = ['retries', 'timeoutMs'];

export function readExecution(
  { retries = 0, timeoutMs }: Readonly<Record<string, unknown>>,
  what: string,
): StepExecution {
  if (timeoutMs === undefined) return { retries: readRetries(retries, what), timeoutMs };
  const isTime = typeof timeoutMs === 'number' && timeoutMs >= 1 && timeoutMs <= timeoutMaxMs;
  if (!isTime) {
    throw permanentError(`timeoutMs of ${what} must be milliseconds from 1 to ${timeoutMaxMs}`);
  }
  return { retries: readRetries(retries, what), timeoutMs };
}

function readRetries(value: unknown, what: string): number {
  return readWhole(value, 0, retriesMax, `retries of ${what}`);
}

export function readWhole(value: unknown, min: number, max: number, what: string): number {
  if (!Number.isInteger(value) || (value as number) < min || (value as number) > max) {
    throw permanentError(`${what} must be a whole number from ${min} to ${max}`);
  }
  return value as number;
}
