/** What the webhook endpoints take and show (specification: Webhook; docs/decisions/webhooks.md). */
import { Type } from 'typebox';
import { eventTypes } from '../events/events.ts';
import { Id, Name, Nullable, Timestamp, Words } from '../http/schemas.ts';

const given = {
  agent_id: Name(),
  url: Type.String({
    minLength: 1,
    maxLength: 2_048,
    description: 'An https url of a public address, without credentials or a fragment.',
  }),
  events: Type.Array(Words(eventTypes), {
    minItems: 1,
    uniqueItems: true,
    description: 'The event types to deliver.',
  }),
  secret: Type.String({
    minLength: 16,
    maxLength: 200,
    description: 'Signs the deliveries; generated when it is left out.',
  }),
  active: Type.Boolean(),
};

export const NewWebhook = Type.Object(
  {
    agent_id: given.agent_id,
    url: given.url,
    events: given.events,
    secret: Type.Optional(given.secret),
  },
  {
    title: 'NewWebhook',
    additionalProperties: false,
    examples: [
      {
        agent_id: 'default',
        url: 'https://example.com/hooks/skillwright',
        events: ['skill.completed', 'skill.failed'],
      },
    ],
  },
);

export const WebhookChanges = Type.Object(
  {
    url: Type.Optional(given.url),
    events: Type.Optional(given.events),
    secret: Type.Optional(given.secret),
    active: Type.Optional(given.active),
  },
  { title: 'WebhookChanges', additionalProperties: false, examples: [{ active: true }] },
);

const moments = { created_at: Timestamp, updated_at: Timestamp };
const described = {
  id: Id,
  agent_id: Type.String(),
  url: Type.String(),
  events: Type.Array(Words(eventTypes)),
};
const example = {
  id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
  agent_id: 'default',
  url: 'https://example.com/hooks/skillwright',
  events: ['skill.completed', 'skill.failed'],
};
const exampleMoments = {
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

export const CreatedWebhook = Type.Object(
  { ...described, secret: Type.String(), active: Type.Boolean(), ...moments },
  {
    title: 'CreatedWebhook',
    description: 'The webhook, with its secret: no other answer shows that.',
    examples: [
      {
        ...example,
        secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDdj5ToH2zrEY=',
        active: true,
        ...exampleMoments,
      },
    ],
  },
);

export const webhookExample = {
  ...example,
  active: true,
  failing: false,
  consecutive_failures: 0,
  last_delivery_at: '2026-01-01T00:05:00.000Z',
  ...exampleMoments,
};

export const Webhook = Type.Object(
  {
    ...described,
    active: Type.Boolean(),
    failing: Type.Boolean({
      description: 'Whether the last delivery that ended has failed after all its retries.',
    }),
    consecutive_failures: Type.Integer({
      description: 'Failed deliveries since the last one that arrived; the tenth deactivates.',
    }),
    last_delivery_at: Nullable(Timestamp),
    ...moments,
  },
  { title: 'Webhook', description: 'The webhook.', examples: [webhookExample] },
);

const Attempt = Type.Object(
  {
    attempt: Type.Integer({ minimum: 1 }),
    started_at: Timestamp,
    duration_ms: Type.Integer(),
    status: Nullable(Type.Integer({ description: 'HTTP status; null when there was no answer.' })),
    error: Nullable(Type.String({ description: 'Why it failed; null when it did not.' })),
    response: Nullable(Type.String({ description: 'The first KiB of the answer, as text.' })),
  },
  { title: 'WebhookAttempt' },
);

const deliveryFields = {
  id: { ...Id, description: 'As x-service-delivery.' },
  event_id: { ...Id, description: 'As the id in the body.' },
  event: Words(eventTypes),
  status: Words(['pending', 'delivering', 'delivered', 'failed', 'cancelled']),
  attempts: Type.Array(Attempt, { description: 'Those that have ended, oldest first.' }),
  next_attempt_at: Nullable(Timestamp),
  created_at: Timestamp,
  finished_at: Nullable(Timestamp),
  test: Type.Boolean({ description: 'Whether it is a sample that somebody asked for.' }),
  redelivery_of: Nullable(Id),
};
const deliveryExample = {
  id: '01990a5e-7c1b-7003-8f1e-0c5a7e9b2d14',
  event_id: '01990a5e-7c1b-7002-8f1e-0c5a7e9b2d13',
  event: 'skill.completed',
  status: 'pending',
  attempts: [
    {
      attempt: 1,
      started_at: '2026-01-01T00:00:00.120Z',
      duration_ms: 84,
      status: 503,
      error: 'The receiver answered 503',
      response: 'try again later',
    },
  ],
  next_attempt_at: '2026-01-01T00:00:30.204Z',
  created_at: '2026-01-01T00:00:00.100Z',
  finished_at: null,
  test: false,
  redelivery_of: null,
};

export const Delivery = Type.Object(deliveryFields, {
  title: 'WebhookDelivery',
  description: 'The delivery.',
  examples: [deliveryExample],
});

export const DeliveryWithBody = Type.Object(
  {
    ...deliveryFields,
    body: Type.String({ description: 'What is signed and sent, at every attempt, as it is sent.' }),
  },
  {
    title: 'WebhookDeliveryWithBody',
    description: 'The delivery, and what is sent.',
    examples: [
      {
        ...deliveryExample,
        body: '{"id":"01990a5e-7c1b-7002-8f1e-0c5a7e9b2d13","event":"skill.completed","timestamp":"2026-01-01T00:00:00.090Z","agent_id":"default","data":{}}',
      },
    ],
  },
);

export const JobDelivery = Type.Object(
  {
    ...deliveryFields,
    webhook_id: Id,
    url: Type.String({ description: 'Of the webhook, as it is now.' }),
  },
  {
    title: 'JobDelivery',
    description: 'The delivery, and where it goes.',
    examples: [{ ...deliveryExample, webhook_id: example.id, url: example.url }],
  },
);
