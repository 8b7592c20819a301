/** Which events a key may read: the log of deliveries shows them as a webhook would get them. */
import { type EventType, eventTypes, scopesToRead } from '../../core/events/events.ts';
import { hasScopes, requireScopes } from '../../kernel/caller.ts';

/** The types of events, by whether the scopes allow to read them. `isStrict`: `API_KEY_PERMISSIONS=strict`. */
export function typesByScopes(
  scopes: readonly string[],
  isStrict: boolean,
): { readonly readable: readonly EventType[]; readonly hidden: readonly EventType[] } {
  const isReadable = (type: EventType) => hasScopes(scopes, scopesToRead([type], isStrict));
  const { readable = [], hidden = [] } = Object.groupBy(eventTypes, (type) =>
    isReadable(type) ? 'readable' : 'hidden',
  );
  return { readable, hidden };
}

/** Throws `403` where the scopes do not allow to read an event of this type, as its delivery has it. */
export function requireReadable(scopes: readonly string[], type: string, isStrict: boolean): void {
  requireScopes(scopes, scopesToRead([type as EventType], isStrict));
}
