/** The refusals of triggers, for their owners and for senders. */
import { refusalsOf, type StarterSlices } from '../../core/jobs/readiness.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { eventObstacle } from './event-target.ts';
import type { TriggerRow } from './triggers.store.ts';

/**
 * The refusal that a call of each trigger would get now, in order. Inputs are not checked, because only a call
 * has one.
 */
export async function triggerRefusals(slices: StarterSlices, rows: readonly TriggerRow[]) {
  const starters = rows.filter(({ event_name }) => event_name === null);
  const ofStarters = await refusalsOf(slices, starters);
  const byId = new Map(starters.map(({ id }, i) => [id, ofStarters[i]]));
  return Promise.all(rows.map(async (row) => byId.get(row.id) ?? eventRefusal(slices, row)));
}

async function eventRefusal(
  { apiKeys }: StarterSlices,
  { api_key_id }: TriggerRow,
): Promise<Awaited<ReturnType<typeof refusalsOf>>[number]> {
  const caller = await apiKeys.callerById(api_key_id);
  if (caller === undefined) {
    const message = 'Its key is revoked or expired';
    return { refusal: { code: 'invalid_api_key', message } };
  }
  const why = eventObstacle(caller.scopes);
  if (why === null) return { refusal: null };
  const message = why.charAt(0).toUpperCase() + why.slice(1);
  return { refusal: { code: 'insufficient_scope', message } };
}

/**
 * `404`, with the same message for a trigger that is unknown, is switched off or may not run any more.
 * Only the trigger's owner sees `why`, in the log of calls.
 */
export function triggerNotFound(why?: string): PlatformError {
  const { code, message } = notFound('Trigger');
  return new PlatformError(code, message, why === undefined ? {} : { cause: why });
}

/** The reason of a refusal for the trigger's owner, also where the sender does not see it. */
export function reasonOf({ cause, message }: PlatformError): string {
  return typeof cause === 'string' ? cause : message;
}

/** `404` for a trigger that is switched off. */
export function requireActive({ active }: TriggerRow): void {
  if (active === 0) throw triggerNotFound('The trigger is switched off');
}
