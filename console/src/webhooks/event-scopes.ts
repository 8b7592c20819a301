import type { EventType } from '../api/webhooks.ts';
import { missingScopes, useSession } from '../shell/session.ts';

/** The scopes of what events are about, which the platform requires for their webhooks. */
const scopeOf: Partial<Record<EventType, string>> = {
  'approval.requested': 'approvals',
  'approval.decided': 'approvals',
};
/** Those that it requires with `API_KEY_PERMISSIONS=strict`. */
const strictScopeOf: Partial<Record<EventType, string>> = {
  'conversation.created': 'conversations',
  'scheduled_job.completed': 'schedules',
  'scheduled_job.failed': 'schedules',
};

/** The scopes that the session lacks to read these events, and so to change a webhook of them. */
export function useMissingToRead(): (events: readonly EventType[]) => readonly string[] {
  const session = useSession();
  const isStrict = session.permissions === 'strict';
  return (events) => {
    const needed = events.flatMap(
      (event) => scopeOf[event] ?? (isStrict ? strictScopeOf[event] : undefined) ?? [],
    );
    return missingScopes(session, [...new Set(needed)]);
  };
}
