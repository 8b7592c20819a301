/**
 * What runs beside JSONata in the realm of one mapping. The functions below are handed over as text
 * (`realmCode`), so they know each other, `limits` and what JavaScript itself has, and nothing else.
 * An expression can change JSONata's own functions, which are objects like any other: each order
 * therefore gets a realm of its own, and only strings come in and go out.
 */

/** JSONata as its own code names it, once that has run in the realm. */
declare const jsonata: typeof import('jsonata');

const limits = {
  /** Levels of evaluation; a function that calls itself without end reaches them in no time. */
  levels: 5_000,
  /** A little less than what the parent allows: what JSONata ends by itself costs no process. */
  evaluationMs: 400,
  reasonChars: 300,
};

/** What the process calls in a realm. */
export interface Realm {
  /**
   * JSON text of what the expression makes of `context` (JSON text too), null when that is nothing
   * or when there is no context and it is only to be read. Rejects with the reason, a string: the
   * end of a sentence.
   */
  evaluate(expression: string, context: string | null): Promise<string | null>;
}

async function evaluate(expression: string, context: string | null): Promise<string | null> {
  let reason: string | null;
  try {
    const program = jsonata(expression, { timeout: limits.evaluationMs, stack: limits.levels });
    if (context === null) return null;
    const value: unknown = await program.evaluate(JSON.parse(context));
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
 * Whatever else is thrown speaks of the workings of a library, of which no sender need hear.
 */
function reasonOf(error: unknown): string {
  const { message, position, code } = Object(error) as Record<string, unknown>;
  if (error instanceof RangeError || code === 'D1011') return 'nests, recurses or grows too far';
  if (code === 'D1012') return 'takes too long';
  if (error instanceof SyntaxError) return 'has a regular expression that cannot be read';
  if (typeof code !== 'string') return 'cannot be evaluated';
  const text = String(message).slice(0, limits.reasonChars);
  return `fails: ${text}${typeof position === 'number' ? ` (at character ${position})` : ''}`;
}

/** For $base64encode, which in a browser and in Node.js would have it from there: bytes as Latin-1. */
function btoa(text: string): string {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes.toBase64();
}

/** For $base64decode; like Node.js it takes both alphabets, passes by what is in neither, and ends at `=`. */
function atob(text: string): string {
  const plain = text
    .replace(/=.*$/s, '')
    .replace(/-/g, '+')
    .replace(/_/g, '/')
    .replace(/[^A-Za-z0-9+/]/g, '');
  // A character that is left alone is less than a byte.
  const whole = plain.length % 4 === 1 ? plain.slice(0, -1) : plain;
  const letters: string[] = [];
  for (const byte of Uint8Array.fromBase64(whole)) letters.push(String.fromCharCode(byte));
  return letters.join('');
}

/** Run after JSONata's own code, it makes the realm's global object a `Realm`. */
export const realmCode = [
  `const limits = ${JSON.stringify(limits)};`,
  ...[evaluate, faultOf, reasonOf, btoa, atob].map(String),
  // Where JSONata looks for btoa and atob.
  'globalThis.window = globalThis;',
].join('\n');
