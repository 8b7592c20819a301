/**
 * The request of a delivery. The body is made once for each event. The headers are made for each attempt,
 * because the time changes and the secret may change (specification: Delivery body, Delivery headers;
 * Standard Webhooks).
 */
import { timestamp } from '../../kernel/clock.ts';
import { bodySignature, standardSignature } from '../../kernel/webhook-signature.ts';

/** What a receiver verifies a delivery with, each with its description. */
export const deliveryHeaders = {
  'x-service-signature': 'HMAC-SHA256 of the body in hex, keyed with the whole secret.',
  'x-service-event': 'The type of the event.',
  'x-service-delivery': 'The id of the delivery, the same for all its attempts.',
  'webhook-id': 'The id of the delivery, as Standard Webhooks name it.',
  'webhook-timestamp': 'The Unix second of the attempt.',
  'webhook-signature':
    'The signature of Standard Webhooks over id, timestamp and body: v1, and base64.',
};

/** The body as text. `data` is JSON already and goes in as it is. */
export function messageBody(event: {
  readonly id: string;
  readonly type: string;
  readonly createdAt: number;
  readonly agentId: string;
  readonly data: string;
}): string {
  const head = JSON.stringify({
    id: event.id,
    event: event.type,
    timestamp: timestamp(event.createdAt),
    agent_id: event.agentId,
  });
  return `${head.slice(0, -1)},"data":${event.data}}`;
}

/** The headers of an attempt at `now`, in milliseconds. */
export function messageHeaders(
  delivery: { readonly id: string; readonly event: string; readonly body: string },
  secret: string,
  now: number,
): Record<'content-type' | keyof typeof deliveryHeaders, string> {
  const { id, event, body } = delivery;
  const seconds = Math.floor(now / 1000);
  return {
    'content-type': 'application/json',
    'x-service-signature': bodySignature(secret, body),
    'x-service-event': event,
    'x-service-delivery': id,
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': standardSignature(secret, { id, timestamp: seconds, body }),
  };
}
