/**
 * The process in which mappings are evaluated, one at a time, each the program of a stranger. It
 * may read its own code and nothing else: no other file, network, environment or program, and no
 * code from strings. mapping-runner.ts starts it, asks, and kills it when an answer is late.
 */
import jsonata from 'jsonata';

/** What is to be done with an expression: to read it, or to evaluate it. */
export interface MappingOrder {
  readonly expression: string;
  /** JSON text of what the expression sees; null when it is only to be read. */
  readonly context: string | null;
}

/** JSON text of the value (null when there is none), or why there is no value: the end of a sentence. */
export type MappingAnswer = { readonly value: string | null } | { readonly error: string };

/** Levels of evaluation; a function that calls itself without end reaches them in no time. */
const levelsMax = 5_000;
/** A little less than what the parent allows: what JSONata ends by itself costs no process. */
const evaluationMs = 400;
/** Bytes of a value as JSON text: as much as a request may bring. */
const valueBytesMax = 1_048_576;
const reasonCharsMax = 300;

process.on('message', (order: MappingOrder) => {
  void answerTo(order).then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function answerTo({ expression, context }: MappingOrder): Promise<MappingAnswer> {
  try {
    const program = jsonata(expression, { timeout: evaluationMs, stack: levelsMax });
    if (context === null) return { value: null };
    return { value: asJson(await program.evaluate(JSON.parse(context))) };
  } catch (error) {
    return { error: reasonOf(error) };
  }
}

function asJson(value: unknown): string | null {
  const json: string | undefined = JSON.stringify(value, refuseUnwritable);
  if (json === undefined) return null;
  if (Buffer.byteLength(json) > valueBytesMax) throw new Error('gives more than 1 MiB of JSON');
  return json;
}

/** JSON would write infinity as null, and JSONata's functions as objects full of its own workings. */
function refuseUnwritable(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new Error(`gives ${value}, which JSON cannot write`);
  }
  const isFunction =
    typeof value === 'function' ||
    (value !== null &&
      typeof value === 'object' &&
      ('_jsonata_function' in value || '_jsonata_lambda' in value));
  if (isFunction) throw new Error('gives a function, not only values');
  return value;
}

/** JSONata throws plain objects with a message, and the place in the expression where known. */
function reasonOf(error: unknown): string {
  const { message, position, code } = error as Record<string, unknown>;
  if (error instanceof RangeError || code === 'D1011') return 'nests, recurses or grows too far';
  if (code === 'D1012') return 'takes too long';
  const text = String(message).slice(0, reasonCharsMax);
  if (code === undefined) return text;
  return `fails: ${text}${typeof position === 'number' ? ` (at character ${position})` : ''}`;
}
