/**
 * JSONata over JSON. An expression is a program that may come from anyone, and one of few words can
 * run for ever, so it runs in a thread with its own deadline and memory. It reaches its data and
 * nothing else: JSONata has no functions for files, network or environment.
 */

import { defineSkill } from '../../definition.ts';
import { inThread } from '../_support/in-thread.ts';

interface Input {
  readonly data: unknown;
  readonly expression: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

interface Output {
  readonly result: unknown;
  readonly found: boolean;
}

const timeoutMs = 5_000;
/** Levels of evaluation; a function that calls itself without end reaches it within a second. */
const levelsMax = 20_000;
const resultLengthMax = 900_000;

export default defineSkill<Input, Output>({
  category: 'data',
  name: 'query-json',
  version: 'v1.0',
  displayName: 'Query JSON',
  description:
    'Evaluates a JSONata expression over JSON data: select, filter, group, compute and reshape. ' +
    'See https://docs.jsonata.org for the language.',
  parameters: {
    type: 'object',
    required: ['data', 'expression'],
    additionalProperties: false,
    properties: {
      data: { description: 'Any JSON value; the `$` of the expression.' },
      expression: {
        type: 'string',
        minLength: 1,
        maxLength: 20_000,
        description: 'JSONata expression, such as items[price > 10].name.',
      },
      variables: {
        type: 'object',
        default: {},
        description: 'Values by name, in the expression as $name.',
      },
    },
  },
  output: {
    type: 'object',
    required: ['result', 'found'],
    additionalProperties: false,
    properties: {
      result: { description: 'Value of the expression; null when it has none.' },
      found: { type: 'boolean', description: 'Whether the expression has a value.' },
    },
  },
  examples: [
    {
      input: {
        data: {
          orders: [
            { item: 'tea', price: 4, count: 2 },
            { item: 'cup', price: 9, count: 1 },
          ],
        },
        expression: '{"total": $sum(orders.(price * count)), "dear": orders[price > $limit].item}',
        variables: { limit: 5 },
      },
      output: { result: { total: 17, dear: 'cup' }, found: true },
    },
  ],

  async run(input, ctx) {
    const json = await inThread<string | undefined>({
      module: import.meta.url,
      function: 'evaluate',
      input,
      signal: ctx.signal,
      timeoutMs,
    });
    if (json === undefined) return { result: null, found: false };
    return { result: JSON.parse(json) as unknown, found: true };
  },
});

/** The value of the expression as JSON text; undefined when it has none. Runs in the thread. */
export async function evaluate(input: Input): Promise<string | undefined> {
  const { default: jsonata } = await import('jsonata');
  let value: unknown;
  try {
    const expression = jsonata(input.expression, { timeout: timeoutMs, stack: levelsMax });
    value = await expression.evaluate(input.data, input.variables ?? {});
  } catch (error) {
    throw new Error(explained(error), { cause: error });
  }
  const json: string | undefined = JSON.stringify(value, refuseUnwritable);
  if (json !== undefined && json.length > resultLengthMax) {
    throw new Error(`The result is longer than ${resultLengthMax} characters of JSON`);
  }
  return json;
}

/** JSON would write infinity as null, and JSONata's functions as objects full of its own workings. */
function refuseUnwritable(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new Error(`The result holds ${value}, which JSON cannot`);
  }
  const isFunction =
    typeof value === 'function' ||
    (value !== null &&
      typeof value === 'object' &&
      ('_jsonata_function' in value || '_jsonata_lambda' in value));
  if (isFunction) throw new Error('The result holds a function, not only values');
  return value;
}

/** JSONata throws plain objects with a message, and the place in the expression where known. */
function explained(error: unknown): string {
  const { message, position } = error as { message?: unknown; position?: unknown };
  const place = typeof position === 'number' ? ` (at character ${position})` : '';
  return `JSONata: ${String(message)}${place}`;
}
