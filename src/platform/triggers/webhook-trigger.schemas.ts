/** What a call of a trigger looks like on the wire. */
import { Type } from 'typebox';
import { jobStatuses } from '../../adapters/database/tables.ts';
import { bodyRefusals, refusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import { Id, Words } from '../../adapters/http/schemas.ts';

export const idempotencyKeyMax = 255;

const acceptedExample = {
  job_id: '019ab0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1',
  conversation_id: '019ab0c1-2d3e-7f41-9c0d-1e2f3a4b5c6d',
  status: 'queued',
};
const Accepted = Type.Object(
  {
    job_id: Id,
    conversation_id: Id,
    status: {
      ...Words(jobStatuses),
      description: 'queued, or that of the earlier job that the key of the call has kept.',
    },
  },
  {
    title: 'TriggeredJob',
    description: 'The job that was accepted.',
    examples: [acceptedExample],
  },
);

const EventReceipt = Type.Object(
  {
    event_id: Id,
    delivered: Type.Integer({ description: 'How many jobs waited for it.' }),
  },
  {
    title: 'TriggeredEvent',
    description: 'The event that was recorded, if the trigger has an event.',
    examples: [{ event_id: '019ab0c1-2d3e-7f43-8c1d-6e7f8a9b0c1d', delivered: 1 }],
  },
);

export const callSchema = {
  tags: ['Triggers'],
  security: [],
  operationId: 'callAgentTrigger',
  summary: 'Start the run of a trigger, or send its event',
  description:
    'Needs no API key: every client that knows the token can call it, within the ' +
    'limit of the trigger, and signed if the trigger has a signing secret.',
  consumes: ['application/json', 'application/x-www-form-urlencoded', 'text/plain'],
  params: Type.Object({
    webhookToken: Type.String({
      description: 'The token of the trigger, which is its credential.',
    }),
  }),
  headers: Type.Object({
    'idempotency-key': Type.Optional(
      Type.String({
        description:
          'Repeats with the same key within 24 hours make no second job or event; x-github-delivery and ' +
          'webhook-id work the same way, and only webhook-id if webhook-signature is verified.',
        maxLength: idempotencyKeyMax,
      }),
    ),
    'x-hub-signature-256': Type.Optional(
      Type.String({ description: 'sha256= and the HMAC of the body in hex.' }),
    ),
    'webhook-signature': Type.Optional(
      Type.String({
        description: 'Of Standard Webhooks, with webhook-id and webhook-timestamp.',
      }),
    ),
  }),
  body: Type.Unknown({
    description: 'Any body of the sender.',
    examples: [{ ref: 'refs/heads/main', head_commit: { message: 'Say hello' } }],
  }),
  response: {
    202: {
      ...Type.Union([Accepted, EventReceipt], {
        description: 'The job that was accepted, or the event that was recorded.',
        examples: [acceptedExample],
      }),
      ...carries(
        'Location',
        'Idempotent-Replayed',
        'X-RateLimit-Limit',
        'X-RateLimit-Remaining',
        'X-RateLimit-Reset',
      ),
    },
    ...refusals(
      'invalid_signature',
      'not_found',
      'skill_not_found',
      ...bodyRefusals,
      'agent_paused',
      'idempotency_key_reused',
      'rate_limit_exceeded',
    ),
  },
};
