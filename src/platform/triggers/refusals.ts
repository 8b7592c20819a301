/** Why triggers could start no job, or send no event, now. */
import { type ReadinessDeps, refusalsOf } from '../../core/jobs/readiness.ts';
import { eventObstacle } from './event-target.ts';
import type { TriggerRow } from './triggers.store.ts';

/**
 * The refusal that a call of each trigger would get now, in order. Inputs are not checked, because only a call
 * has one.
 */
export async function triggerRefusals(deps: ReadinessDeps, rows: readonly TriggerRow[]) {
  const starters = rows.filter(({ event_name }) => event_name === null);
  const ofStarters = await refusalsOf(deps, starters);
  const byId = new Map(starters.map(({ id }, i) => [id, ofStarters[i]]));
  return Promise.all(rows.map(async (row) => byId.get(row.id) ?? eventRefusal(deps, row)));
}

async function eventRefusal(
  { apiKeys }: ReadinessDeps,
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
