/**
 * An order, from its reservation to its parcels, as one function that may take ten days. To copy.
 *
 * What it shows: a step with an effect outside the platform, a sleep, an event that may not come, a person's
 * approval, parallel steps, and a job of its own. `docs/durable.md` explains each. Try it:
 *
 *   POST /api/durable/v1.0/order {"id": "A-17", "total": 40, "parcels": ["lamp", "shade"]}
 *   POST /api/events             {"event": "order.paid", "key": "A-17", "data": {"amount": 40}}
 *   POST /api/approvals/{approval_id}/approve
 */
import { defineSkill } from 'skillwright';

// These three stand for services outside the platform. Each gets the key of its step: a step is executed
// again if its process dies before the result is recorded, and the service must then do nothing twice.

async function reserve(order: string, idempotencyKey: string) {
  return { reservation: `${order}/${idempotencyKey.slice(0, 8)}` };
}

async function release(reservation: string, _idempotencyKey: string) {
  return { released: reservation };
}

async function printLabel(parcel: string, idempotencyKey: string) {
  return `${parcel}-${idempotencyKey.slice(0, 8)}`;
}

export default defineSkill({
  category: 'durable',
  name: 'order',
  version: 'v1.0',
  displayName: 'Order with approval',
  description: 'Reserves an order, waits for its payment and for a person, and ships it.',
  parameters: {
    type: 'object',
    required: ['id', 'total', 'parcels'],
    additionalProperties: false,
    properties: {
      id: { type: 'string', minLength: 1, maxLength: 100, description: 'Number of the order.' },
      total: { type: 'number', minimum: 0, description: 'What it costs.' },
      parcels: {
        type: 'array',
        items: { type: 'string', minLength: 1 },
        minItems: 1,
        maxItems: 100,
        description: 'What is shipped, one label each.',
      },
      cooling_off: {
        type: 'string',
        default: '15m',
        description: 'How long the customer may change it before it is payable.',
      },
      payable_for: { type: 'string', default: '3d', description: 'When it expires unpaid.' },
    },
  },
  output: {
    type: 'object',
    required: ['state'],
    additionalProperties: false,
    properties: {
      state: { enum: ['shipped', 'refused', 'expired'] },
      reason: { type: ['string', 'null'], description: 'Why it was refused.' },
      labels: { type: 'array', items: { type: 'string' } },
      letter: { type: 'string' },
      shipped_at: { type: 'string' },
      shipment: { type: 'string' },
    },
  },
  examples: [{ input: { id: 'A-17', total: 40, parcels: ['lamp', 'shade'] } }],

  async run(input, ctx) {
    const { id, total, parcels, cooling_off = '15m', payable_for = '3d' } = input;
    const { reservation } = await ctx.step('reserve', (step) => reserve(id, step.idempotencyKey));
    const giveUp = () => ctx.step('release', (step) => release(reservation, step.idempotencyKey));

    await ctx.sleep('cooling off', cooling_off);

    const paid = await ctx.waitForEvent('payment', {
      event: 'order.paid',
      key: id,
      timeout: payable_for,
    });
    if (paid === null) {
      await giveUp();
      return { state: 'expired' };
    }

    const { approved, reason } = await ctx.approve('ship', {
      title: `Ship order ${id} for ${total} EUR?`,
      details: { order: id, total, parcels, payment: paid.data },
      timeout: '7d',
    });
    if (!approved) {
      await giveUp();
      return { state: 'refused', reason };
    }

    const labels = await ctx.map(
      'label',
      parcels,
      (parcel, step) => printLabel(parcel, step.idempotencyKey),
      { concurrency: 5 },
    );
    const letter = (await ctx.run('letter', 'text/v1.0/render-template', {
      template: 'Order {{ id }} is on its way in {{ count }} parcels.',
      data: { id, count: parcels.length },
    })) as { text: string };

    // Not `new Date()` and `randomUUID()`: these would differ each time the run is replayed.
    const shipped_at = ctx.now().toISOString();
    return { state: 'shipped', labels, letter: letter.text, shipped_at, shipment: ctx.uuid() };
  },
});
