/** The parameters and events of a listener's stream. */
import { Type } from 'typebox';
import { StreamedEvents } from '../../adapters/http/event-stream.ts';
import { Id, Words } from '../../adapters/http/schemas.ts';
import { type EventType, eventTypes, scopesToRead } from '../../core/events/events.ts';
import { requireScopes } from '../../kernel/caller.ts';
import { invalid } from '../../kernel/errors.ts';
import { typesByScopes } from './readable-events.ts';

export const ListenerEventSchema = StreamedEvents(
  'Listener',
  {
    listening: Type.Object(
      {
        events: Type.Array(Words(eventTypes)),
        resumed: Type.Boolean({
          description: 'Whether an earlier session goes on; if not, events before it are not sent.',
        }),
      },
      { description: 'The session has begun.' },
    ),
    delivery: Type.Object(
      {
        id: { ...Id, description: 'The id of the event: what `webhook-id` is in the delivery.' },
        event: Words(eventTypes),
        agent_id: Type.String(),
        body: Type.String({ description: 'The body of the delivery, to be signed as it is.' }),
      },
      { description: 'An event that a webhook would deliver.' },
    ),
  },
  {
    id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d10.0.42',
    event: 'listening',
    data: { events: ['skill.completed'], resumed: false },
  },
);

/**
 * Types of events, comma-separated; all that the scopes allow to read when they are left out. Throws `400` for an unknown
 * one, and `403` for one that the scopes do not allow.
 */
export function typesOf(
  given: string | undefined,
  scopes: readonly string[],
  isStrict: boolean,
): readonly EventType[] {
  if (given === undefined) return typesByScopes(scopes, isStrict).readable;
  const names = new Set(given.split(',').map((name) => name.trim()));
  const types = eventTypes.filter((type) => names.has(type));
  if (types.length !== names.size) {
    throw invalid('events', `must be some of ${eventTypes.join(', ')}, comma-separated`);
  }
  requireScopes(scopes, scopesToRead(types, isStrict));
  return types;
}
