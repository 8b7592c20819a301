/** `POST /api/events`: received events, for which runs wait (docs/decisions/runs-that-wait.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import { IdempotencyKey, idempotencyKeyOf } from '../../adapters/http/idempotency-key.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import { Id, Name, Nullable } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireScopes } from '../../kernel/caller.ts';
import { eventKeyCharsMax } from '../../kernel/step-bounds.ts';
import { eventNamePattern, eventScopes } from './bounds.ts';
import type { RunEvents } from './run-events.ts';

const SentEvent = Type.Object(
  {
    event: Type.String({
      pattern: eventNamePattern,
      description: 'The name for which runs wait: letters, digits and . _ - : /, up to 200.',
    }),
    key: Type.Optional({
      ...Nullable(Name(eventKeyCharsMax)),
      description: 'Which one of that name, such as the id of an order. Runs wait for exactly it.',
      default: null,
    }),
    job_id: Type.Optional({
      ...Nullable(Name()),
      description: 'The only job that may take the event; null for all of the organization.',
      default: null,
    }),
    data: Type.Optional(
      Type.Unknown({
        description: 'What the runs get: any JSON of at most 256 KiB; null where it is left out.',
      }),
    ),
  },
  {
    title: 'NewRunEvent',
    additionalProperties: false,
    examples: [{ event: 'order.paid', key: 'order-1042', data: { amount: 4_990 } }],
  },
);

const Receipt = Type.Object(
  {
    event_id: Id,
    delivered: Type.Integer({
      description: 'How many jobs waited for it. Others may take it when they come to wait for it.',
    }),
  },
  {
    title: 'RunEventReceipt',
    description: 'The event is recorded.',
    examples: [{ event_id: '01990a5e-7c1b-7003-8b2c-5d6e7f8a9b0c', delivered: 1 }],
  },
);

const schema = {
  tags: ['Run events'],
  security: [{ apiKey: [] }],
  operationId: 'sendRunEvent',
  summary: 'Send an event to the runs that wait for it',
  description:
    'Needs the scope events. Each job of the organization that waits for this event and key gets it. ' +
    'A job that was accepted before the event and waits for it later gets it then. ' +
    'At most 1,000 events of a name and key that no run has taken are kept, and 100,000 of an organization.',
  headers: Type.Object({
    'idempotency-key': IdempotencyKey(
      'Repeats with the same key within 24 hours make no second event.',
    ),
  }),
  body: SentEvent,
  response: {
    202: { ...Receipt, ...carries('Idempotent-Replayed') },
    ...apiRefusals(
      'insufficient_scope',
      'not_found',
      'conflict',
      'idempotency_key_reused',
      ...bodyRefusals,
    ),
  },
};

export function runEventRoutes(server: Server, runEvents: RunEvents): void {
  const admit = async (request: FastifyRequest) =>
    requireScopes(callerOf(request).scopes, eventScopes);
  const options = { config: acceptingWork, onRequest: admit, schema };
  server.post('/api/events', options, async (request, reply) => {
    const { organizationId, keyId } = callerOf(request);
    const { event, key = null, job_id: jobId = null, data = null } = request.body;
    const idempotencyKey = idempotencyKeyOf(request);
    const sender = { organizationId, owner: keyId, idempotencyKey };
    const receipt = await runEvents.send(sender, { event, key, jobId, data });
    if (receipt.isReplay) reply.header('idempotent-replayed', 'true');
    return reply.status(202).send({ event_id: receipt.eventId, delivered: receipt.delivered });
  });
}
