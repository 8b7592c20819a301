/**
 * Values that steps and waits record, carried through JSON. Refuses what JSON would lose or change without
 * a word (functions, maps, NaN), so that a step gives the same when it is executed and when it is replayed.
 */
import { permanentError } from '../../../kernel/permanent-error.ts';
import { nestingMax } from '../../../kernel/text.ts';
import { outputBytesMax } from '../limits.ts';

// An import would load all parts of the module in every executor.
const { types } = process.getBuiltinModule('node:util');

/**
 * The value as JSON text; undefined for undefined. `what` begins the sentence of the refusal, for example
 * `the step "reserve" returned`.
 */
export function writeValue(value: unknown, what: string): string | undefined {
  if (value === undefined) return undefined;
  const { json, fault } = write(value);
  if (fault !== undefined) throw permanentError(`${what} ${fault}`);
  return json;
}

function write(value: unknown): { json: string; fault: string | undefined } {
  try {
    const limits: Limits = { chars: outputBytesMax, isExact: true };
    const fault = findFault(value, 1, limits);
    if (fault !== undefined) return { json: '', fault };
    // Undefined if the value's own toJSON returns that.
    const json = JSON.stringify(value) ?? 'null';
    const bytes = json.length * 3 > outputBytesMax ? Buffer.byteLength(json) : 0;
    if (bytes > outputBytesMax) return { json, fault: tooLarge };
    return { json, fault: limits.isExact ? undefined : findFault(JSON.parse(json), 1, limits) };
  } catch (error) {
    // A getter, a toJSON or a proxy of the value threw.
    const [text] = (error instanceof Error ? error.message : String(error)).split('\n');
    return { json: '', fault: `what JSON cannot carry: ${text}` };
  }
}

interface Limits {
  /** Characters of JSON that are left. */
  chars: number;
  /** False once an object with its own `toJSON` was met. */
  isExact: boolean;
}

const tooLarge = `more than ${outputBytesMax / 1024} KiB of JSON, which is the bound of one result`;

/** Objects that JSON would write as `{}`, or as an object of their bytes. */
const notCarried: readonly [(value: unknown) => boolean, string][] = [
  [types.isMap, 'a Map'],
  [types.isSet, 'a Set'],
  [types.isPromise, 'a promise that is not awaited'],
  [types.isNativeError, 'an Error'],
  [types.isRegExp, 'a regular expression'],
  [types.isWeakMap, 'a WeakMap'],
  [types.isWeakSet, 'a WeakSet'],
  [types.isAnyArrayBuffer, 'an ArrayBuffer'],
  [types.isTypedArray, 'an array of bytes'],
];

/** What JSON cannot carry of the value, as the end of a sentence. Stops early in a value that is too large. */
function findFault(value: unknown, level: number, limits: Limits): string | undefined {
  limits.chars -= typeof value === 'string' ? value.length + 2 : 1;
  if (limits.chars < 0) return tooLarge;
  switch (typeof value) {
    case 'bigint':
    case 'function':
    case 'symbol':
      return lost(`a ${typeof value}`);
    case 'number':
      return Number.isFinite(value) ? undefined : lost(`the number ${value}`);
    case 'object':
      return value === null ? undefined : findFaultIn(value, level, limits);
    default:
      return undefined;
  }
}

function findFaultIn(value: object, level: number, limits: Limits): string | undefined {
  if (level > nestingMax) {
    return `a value that is circular or nested deeper than ${nestingMax} levels`;
  }
  // A Date, a URL or a Buffer has its own toJSON.
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    limits.isExact = false;
    return undefined;
  }
  const [, name] = notCarried.find(([isKind]) => isKind(value)) ?? [];
  if (name !== undefined) return lost(name);
  if (Array.isArray(value)) {
    if (value.length > limits.chars) return tooLarge;
    for (const item of value) {
      const fault = findFault(item, level + 1, limits);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    limits.chars -= key.length + 3;
    const fault = findFault((value as Record<string, unknown>)[key], level + 1, limits);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function lost(what: string): string {
  return `${what}, which JSON cannot carry; use plain objects, lists, texts and numbers`;
}
