/**
 * Evaluates JSONata expressions on JSON. An expression is an untrusted program, and a short one can run
 * forever. It therefore runs in a sandboxed process with its own deadline and memory limit, like the
 * mappings of triggers. It can access its data and nothing else.
 */

import { extname } from 'node:path';
import type { EvaluationRequest, JsonataAnswer } from '../../../../adapters/sandbox/jsonata.ts';
import { defineSkill, SkillError } from '../../definition.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { anyObject, objectWith } from '../_support/schemas.ts';

const evaluation = {
  module: new URL(
    `../../../../adapters/sandbox/jsonata${extname(import.meta.url)}`,
    import.meta.url,
  ).href,
  function: 'evaluate',
  timeoutMs: 5_000,
  reusable: true,
};
/** Most nested evaluations; endless recursion reaches the limit within a second. */
const levelsMax = 20_000;
/** The platform refuses outputs beyond 1 MiB. */
const resultBytesMax = 1_000_000;

const parameters = objectWith(['data', 'expression'], {
  data: { description: 'Any JSON value; the `$` of the expression.' },
  expression: {
    type: 'string',
    minLength: 1,
    maxLength: 20_000,
    description: 'JSONata expression, such as items[price > 10].name.',
  },
  variables: anyObject('Values by name, in the expression as $name.', { default: {} }),
});
const output = objectWith('all', {
  result: { description: 'Value of the expression; null when it has none.' },
  found: { type: 'boolean', description: 'Whether the expression has a value.' },
});

export default defineSkill({
  category: 'data',
  name: 'query-json',
  version: 'v1.0',
  displayName: 'Query JSON',
  description:
    'Evaluates a JSONata expression over JSON data: select, filter, group, compute and reshape. ' +
    'See https://docs.jsonata.org for the language.',
  parameters,
  output,
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

  async run({ data, expression, variables = {} }, { signal }) {
    const request: EvaluationRequest = {
      expression,
      context: JSON.stringify(data),
      variables: JSON.stringify(variables),
      levels: levelsMax,
      valueBytesMax: resultBytesMax,
    };
    const answer = await inSandbox<JsonataAnswer>({ ...evaluation, input: request, signal });
    if ('fault' in answer) {
      throw new SkillError(`The expression ${answer.fault}`, { retryable: false });
    }
    if (answer.json === null) return { result: null, found: false };
    return { result: JSON.parse(answer.json) as unknown, found: true };
  },
});
