/**
 * The same work for up to a thousand addresses, ten at a time, each once. To copy. If the process dies
 * after 120 of 200, the next attempt executes the other 80: finished items are on record.
 *
 * What it shows: `ctx.map`, in which item i is always the same step, in whatever order items finish; and
 * an error of one item that is caught, so that the others go on.
 *
 *   POST /api/durable/v1.0/fan-out {"addresses": ["ada@example.com", "not an address"]}
 */
import { defineSkill } from 'skillwright';

/** Stands for a service that sends an invitation once for each key. */
async function invite(address: string, idempotencyKey: string): Promise<string> {
  if (!/^[^@\s]+@[^@\s]+$/.test(address)) throw new Error(`"${address}" is not an address`);
  return `invitation-${idempotencyKey.slice(0, 8)}`;
}

export default defineSkill({
  category: 'durable',
  name: 'fan-out',
  version: 'v1.0',
  displayName: 'Fan-out',
  description: 'Invites many addresses, ten at a time, each once.',
  parameters: {
    type: 'object',
    required: ['addresses'],
    additionalProperties: false,
    properties: {
      addresses: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 1000 },
    },
  },
  output: {
    type: 'object',
    required: ['invited', 'refused'],
    additionalProperties: false,
    properties: {
      invited: { type: 'integer' },
      refused: { type: 'array', items: { type: 'string' }, description: 'Why, one text each.' },
    },
  },
  examples: [{ input: { addresses: ['ada@example.com', 'grace@example.com'] } }],

  async run({ addresses }, ctx) {
    const outcomes = await ctx.map(
      'invite',
      addresses,
      async (address, step) => {
        try {
          return { invitation: await invite(address, step.idempotencyKey) };
        } catch (error) {
          // Caught inside the step, so its result is recorded like any other.
          return { refused: (error as Error).message };
        }
      },
      { concurrency: 10 },
    );
    const refused = outcomes.flatMap((one) => ('refused' in one ? [one.refused] : []));
    return { invited: outcomes.length - refused.length, refused };
  },
});
