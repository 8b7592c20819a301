/**
 * What runs beside JSONata in the realm of one expression. The functions below are handed over as
 * text (`realmSource`), so they know each other, `limits` and what JavaScript itself has, and nothing
 * else.
 */
import { browserCode } from './realms.ts';

/** JSONata as its own code names it, once that has run in the realm. */
declare const jsonata: typeof import('jsonata');

/** What is to be done with an expression. */
export interface JsonataOrder {
  readonly expression: string;
  /** JSON text of what the expression sees; null when it is only to be read. */
  readonly context: string | null;
  /** JSON text of an object: values that are $name in the expression. */
  readonly variables?: string;
  /** Levels of evaluation; a function that calls itself without end reaches them in no time. */
  readonly levels: number;
}

const limits = { reasonChars: 300 };

/** JSON text of the value, null when there is none. Rejects with the reason: the end of a sentence. */
async function main(input: string): Promise<string | null> {
  const { expression, context, variables, levels }: JsonataOrder = JSON.parse(input);
  let reason: string | null;
  try {
    const program = jsonata(expression, { stack: levels });
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

/**
 * Why JSON cannot write a value, or null: it would write infinity as null, and JSONata's functions
 * as objects full of its own workings, or call one of them that has the name toJSON.
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
 * JSONata throws plain objects with a code, a message, and the place in the expression where known.
 * Any other error speaks of the workings of a library, of which no sender need hear.
 */
function reasonOf(error: unknown): string {
  const { message, position, code } = Object(error) as Record<string, unknown>;
  if (error instanceof RangeError || code === 'D1011') return 'nests, recurses or grows too far';
  if (error instanceof SyntaxError) return 'has a regular expression that cannot be read';
  if (typeof code !== 'string') return 'cannot be evaluated';
  const text = String(message).slice(0, limits.reasonChars);
  return `fails: ${text}${typeof position === 'number' ? ` (at character ${position})` : ''}`;
}

/** JSONata's own code, followed by the above. */
export function realmSource(jsonataCode: string): string {
  return [
    jsonataCode,
    `const limits = ${JSON.stringify(limits)};`,
    ...[main, faultOf, reasonOf].map(String),
    browserCode,
    // Where JSONata looks for btoa and atob.
    'globalThis.window = globalThis;',
  ].join(';\n');
}
