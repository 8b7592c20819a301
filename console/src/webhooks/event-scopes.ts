import { webhookEvents } from '../api/webhook-events.ts';
import type { EventType } from '../api/webhooks.ts';
import { missingScopes, useSession } from '../shell/session.ts';

/** The scopes that the session lacks to read these events, and so to change a webhook of them. */
export function useMissingToRead(): (events: readonly EventType[]) => readonly string[] {
  const session = useSession();
  const kind = session.permissions === 'strict' ? 'strictScopes' : 'scopes';
  return (events) => {
    const needed = events.flatMap((event): readonly string[] => webhookEvents[event][kind]);
    return missingScopes(session, [...new Set(needed)]);
  };
}
