/** Describes the requests to receivers, one for each event type, for `webhooks` in `/openapi.json`. */
import { Type } from 'typebox';
import { Id, Slug, Timestamp } from '../../adapters/http/schemas.ts';
import { events } from '../../core/events/events.ts';
import { deliveryHeaders } from './message.ts';

const envelope = {
  id: '01990a5e-7c1b-7002-8f1e-0c5a7e9b2d13',
  timestamp: '2026-01-01T06:00:01.240Z',
  agent_id: 'default',
};

/** The requests, and the headers that all of them have. */
export function describeEvents(): {
  webhooks: Record<string, object>;
  parameters: Record<string, object>;
} {
  const described = Object.entries(events).map(([event, { when, data, sample }]) => {
    const fields = {
      id: Id,
      event: Type.Literal(event),
      timestamp: Timestamp,
      agent_id: Slug,
      data,
    };
    const body = { schema: Type.Object(fields), example: { ...envelope, event, data: sample } };
    const post = {
      tags: ['Webhooks'],
      security: [],
      parameters: Object.keys(deliveryHeaders).map((name) => ({
        $ref: `#/components/parameters/${name}`,
      })),
      operationId: event.replace(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      summary: `Sent when ${when}`,
      requestBody: { required: true, content: { 'application/json': body } },
      responses: {
        '2XX': { description: 'The receiver has accepted the event.' },
        410: { description: 'The receiver refuses the event for good: there are no retries.' },
      },
    };
    return [event, { post }];
  });
  return { webhooks: Object.fromEntries(described), parameters: describeHeaders() };
}

function describeHeaders(): Record<string, object> {
  const described = Object.entries(deliveryHeaders).map(([name, description]) => [
    name,
    { name, in: 'header', required: true, description, schema: { type: 'string' } },
  ]);
  return Object.fromEntries(described);
}
