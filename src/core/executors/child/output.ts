/**
 * Validates the value that a skill returned: a JSON value of bounded size and nesting that the skill's
 * schema allows. Promises to refuse a huge value before it is serialized, and to say why a value cannot
 * be JSON.
 */
import { issuesText, type Validate } from '../../../kernel/json-schema.ts';
import { outputBytesMax, outputDepthMax } from '../limits.ts';
import { type Failure, invalidOutput, plainFailure } from './failure.ts';

export type Output = { readonly json: string } | { readonly failure: Failure };

/** The output as JSON text, or the failure of an invalid one. */
export function readOutput(value: unknown, validate: Validate): Output {
  try {
    const budget: Budget = { chars: outputBytesMax, isExact: true, path: [] };
    const fault = measure(value, 1, budget);
    if (fault !== undefined) return { failure: fault };
    const json = JSON.stringify(value);
    if (json === undefined) return { failure: invalidOutput(`the output is ${kindOf(value)}`) };
    if (json.length * 3 > outputBytesMax && Buffer.byteLength(json) > outputBytesMax) {
      return { failure: tooLarge() };
    }
    // The serialized value is validated: dates are text by now, and undefined members are gone.
    const written: unknown = JSON.parse(json);
    const late = budget.isExact ? undefined : measure(written, 1, { ...budget });
    if (late !== undefined) return { failure: late };
    const issues = validate(written);
    if (issues === null) return { json };
    const faults = issuesText(issues);
    return { failure: invalidOutput(`the output breaks the skill's schema: ${faults}`) };
  } catch (error) {
    const text = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return { failure: invalidOutput(`the output cannot be written as JSON: ${text}`) };
  }
}

function tooLarge(): Failure {
  return plainFailure(`the output is larger than ${outputBytesMax / 1024} KiB of JSON`, false);
}

interface Budget {
  /** The names that lead to the value that is measured. */
  readonly path: (string | number)[];
  /** Characters of JSON that are left. */
  chars: number;
  /** False once an object with its own `toJSON` was met. */
  isExact: boolean;
}

/**
 * Counts at most as many characters as the JSON text will have, so it can stop early, and finds
 * what JSON cannot carry.
 */
function measure(value: unknown, level: number, budget: Budget): Failure | undefined {
  switch (typeof value) {
    case 'string':
      budget.chars -= value.length + 2;
      break;
    case 'bigint':
      return invalidOutput('the output holds a BigInt, which JSON cannot carry');
    case 'number':
      // JSON would write null.
      if (!Number.isFinite(value)) return invalidOutput(notANumber(value, budget.path));
      budget.chars -= 1;
      break;
    case 'object':
      if (value !== null) return measureObject(value, level, budget);
      budget.chars -= 4;
      break;
    default:
      budget.chars -= 1;
  }
  return budget.chars < 0 ? tooLarge() : undefined;
}

function measureObject(value: object, level: number, budget: Budget): Failure | undefined {
  if (level > outputDepthMax) {
    return invalidOutput(`the output is circular or nested deeper than ${outputDepthMax} levels`);
  }
  if (ArrayBuffer.isView(value)) {
    budget.chars -= 2 * ((value as { length?: number }).length ?? 0);
    return budget.chars < 0 ? tooLarge() : undefined;
  }
  budget.chars -= 2;
  if (Array.isArray(value)) {
    if (value.length * 2 > budget.chars) return tooLarge();
    for (const [index, item] of value.entries()) {
      const fault = measureMember(index, item, level, budget);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    budget.isExact = false;
    return undefined;
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined || typeof member === 'function') continue;
    budget.chars -= key.length + 3;
    const fault = measureMember(key, member, level, budget);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function measureMember(
  name: string | number,
  member: unknown,
  level: number,
  budget: Budget,
): Failure | undefined {
  budget.path.push(name);
  const fault = measure(member, level + 1, budget);
  budget.path.pop();
  return fault;
}

function notANumber(value: number, path: readonly (string | number)[]): string {
  const place = path.length === 0 ? '' : ` at ${path.join('.')}`;
  return `the output holds ${value}${place}, which JSON cannot carry: return a number, or null where there is none`;
}

function kindOf(value: unknown): string {
  return typeof value === 'function' ? 'a function' : `${typeof value}`;
}
