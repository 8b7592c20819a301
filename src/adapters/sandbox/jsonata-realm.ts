/**
 * The code that runs beside JSONata in the realm of one expression. `realmSource` passes the functions
 * below as text, so they may use each other, `limits` and the built-ins of JavaScript, and nothing else.
 */
import { browserCode } from './realms.ts';

/** The global that JSONata's own code defines in the realm. */
declare const jsonata: typeof import('jsonata');

/** An expression to evaluate, or only to parse. */
export interface JsonataRequest {
  readonly expression: string;
  /** JSON text of the input of the expression; null to parse the expression only. */
  readonly context: string | null;
  /** JSON text of an object: its fields are the `$name` variables of the expression. */
  readonly variables?: string;
  /** Of an expression that is parsed only: the fields that its input has. */
  readonly names?: readonly string[] | undefined;
  /** Most nested evaluations; endless recursion reaches the limit at once. */
  readonly levels: number;
}

const limits = { reasonChars: 300 };

/** JSON text of the value, null when there is none. Rejects with the reason: the end of a sentence. */
async function main(input: string): Promise<string | null> {
  const { expression, context, variables, names, levels }: JsonataRequest = JSON.parse(input);
  let reason: string | null;
  try {
    const program = jsonata(expression, { stack: levels });
    const stray = names && strayNames(program.ast(), names)[0];
    if (stray !== undefined) return Promise.reject(`reads ${stray}, which is none of ${names}`);
    if (context === null) return null;
    const value: unknown = await program.evaluate(
      JSON.parse(context),
      JSON.parse(variables ?? '{}'),
    );
    reason = faultOf(value);
    if (reason === null) return JSON.stringify(value) ?? null;
  } catch (error) {
    reason = reasonOf(error);
  }
  return Promise.reject(reason);
}

/** Names that a part of an expression reads of its input and that are no fields of it. What follows in a path reads of a part. */
function strayNames(part: unknown, names: readonly string[]): string[] {
  if (Array.isArray(part)) return part.flatMap((one) => strayNames(one, names));
  if (typeof part !== 'object' || part === null) return [];
  const { type, value, steps, ...of } = part as Record<string, unknown>;
  if (type === 'name') return names.includes(String(value)) ? [] : [String(value)];
  if (type === 'path') return strayNames((steps as unknown[])[0], names);
  if (type === 'apply') return strayNames(of['lhs'], names);
  const inner = [
    'lhs',
    'rhs',
    'procedure',
    'expression',
    'expressions',
    'arguments',
    'condition',
    'then',
    'else',
  ];
  return inner.flatMap((name) => strayNames(of[name], names));
}

/**
 * Why a value is not JSON, or null. `JSON.stringify` would write infinity as null and JSONata's functions
 * as internal objects, or call one that is named toJSON.
 */
function faultOf(value: unknown): string | null {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return `gives ${value}, which JSON cannot write`;
  }
  if (typeof value === 'function') return 'gives a function, not only values';
  if (typeof value !== 'object' || value === null) return null;
  if ('_jsonata_function' in value || '_jsonata_lambda' in value) {
    return 'gives a function, not only values';
  }
  for (const part of Object.values(value)) {
    const fault = faultOf(part);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * JSONata throws plain objects with a code, a message, and the position in the expression if it is known.
 * Any other error is internal to the library and is not shown to the sender.
 */
function reasonOf(error: unknown): string {
  const { message, position, code } = Object(error) as Record<string, unknown>;
  if (error instanceof RangeError || code === 'D1011') return 'nests, recurses or grows too far';
  if (error instanceof SyntaxError) return 'has a regular expression that cannot be read';
  if (typeof code !== 'string') return 'cannot be evaluated';
  const text = String(message).slice(0, limits.reasonChars);
  return `fails: ${text}${typeof position === 'number' ? ` (at character ${position})` : ''}`;
}

/** JSONata's own code, followed by the functions above. */
export function realmSource(jsonataCode: string): string {
  return [
    jsonataCode,
    `const limits = ${JSON.stringify(limits)};`,
    ...[main, strayNames, faultOf, reasonOf].map(String),
    browserCode,
    // JSONata looks for btoa and atob in `window`.
    'globalThis.window = globalThis;',
  ].join(';\n');
}
