/** Which events a key may read: the log of deliveries shows them as a webhook would get them. */
import { type EventType, eventTypes, scopesToRead } from '../events/events.ts';
import { hasScopes, requireScopes } from '../kernel/caller.ts';

/** The types of events that the scopes allow to read. `isStrict`: `API_KEY_PERMISSIONS=strict`. */
export function readableTypes(scopes: readonly string[], isStrict: boolean): EventType[] {
  return eventTypes.filter((type) => hasScopes(scopes, scopesToRead([type], isStrict)));
}

/** The types of events that the scopes do not allow to read. */
export function hiddenTypes(scopes: readonly string[], isStrict: boolean): EventType[] {
  return eventTypes.filter((type) => !hasScopes(scopes, scopesToRead([type], isStrict)));
}

/** Throws `403` where the scopes do not allow to read an event of this type, as its delivery has it. */
export function requireReadable(scopes: readonly string[], type: string, isStrict: boolean): void {
  requireScopes(scopes, scopesToRead([type as EventType], isStrict));
}
