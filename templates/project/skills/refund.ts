import { defineSkill, SkillError } from 'skillwright';

/**
 * A skill with steps and a wait. A result of a step is recorded: after a crash or a wait of days the code begins
 * anew, and a recorded step is not executed again.
 */
export default defineSkill({
  category: 'examples',
  name: 'refund',
  version: 'v1.0',
  displayName: 'Refund',
  description: 'Pays an order back. A person approves amounts above 100.',
  parameters: {
    type: 'object',
    required: ['order', 'amount'],
    additionalProperties: false,
    properties: {
      order: { type: 'string', minLength: 1, maxLength: 100 },
      amount: { type: 'number', exclusiveMinimum: 0 },
    },
  },
  output: {
    type: 'object',
    required: ['status', 'payment'],
    properties: {
      status: { enum: ['paid', 'rejected'] },
      payment: { type: ['string', 'null'] },
    },
  },

  async run({ order, amount }, ctx) {
    const paid = await ctx.step('look up the order', () => findPaidAmount(order));
    if (amount > paid) {
      throw new SkillError(`The order ${order} has only ${paid} to pay back.`, {
        retryable: false,
      });
    }
    if (amount > 100) {
      const { approved } = await ctx.approve('manager', {
        title: `Pay ${amount} back for the order ${order}?`,
        details: { order, amount, paid },
        timeout: '7d',
      });
      if (!approved) return { status: 'rejected', payment: null };
    }
    const payment = await ctx.step('pay', ({ idempotencyKey }) => pay(amount, idempotencyKey));
    return { status: 'paid', payment };
  },
});

/** In place of a request to your shop. */
async function findPaidAmount(order: string): Promise<number> {
  return order.length * 100;
}

/** In place of a request to your bank. The key lets the bank recognize a repeated request. */
async function pay(amount: number, idempotencyKey: string): Promise<string> {
  return `payment-${amount}-${idempotencyKey.slice(0, 8)}`;
}
