/** Triggers with an event: their calls become events for waiting runs instead of starting runs (docs/triggers.md). */
import { hash } from 'node:crypto';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import { hasScopes } from '../../kernel/caller.ts';
import { invalid } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';
import { eventKeyCharsMax } from '../../kernel/step-bounds.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { eventScopes } from '../run-events/bounds.ts';
import type { SendReceipt } from '../run-events/run-events.ts';
import { evaluateKey } from './evaluate-key.ts';
import type { MappingContext } from './mapping-context.ts';
import type { TriggerReceiver } from './receive.ts';
import type { TriggerRow } from './triggers.store.ts';

/** The field of the mapping that gives the key of an event. */
export const eventKeyField = 'event.key_mapping';

/** Why the trigger may not send events; null if it may. */
export function eventObstacle(scopes: readonly string[]): string | null {
  return hasScopes(scopes, eventScopes) ? null : 'its key lacks the scope events';
}

/** Sends the event of a call, or returns that of an earlier identical call. */
export async function sendEvent(
  { parts: { mappings, runEvents } }: TriggerReceiver,
  trigger: TriggerRow & { readonly event_name: string },
  context: MappingContext,
  idempotencyKey: string | undefined,
): Promise<SendReceipt> {
  const { organization_id: organizationId, id: owner, event_name: event } = trigger;
  // Hash the request, not the mapped data: a mapping may use the time or a header that differs in a repeat.
  const fingerprint = hash('sha256', canonicalJson([context.body, context.query, event]));
  const sender = { organizationId, owner, idempotencyKey, fingerprint };
  const earlier = await runEvents.findReceipt(sender);
  if (earlier !== undefined) return earlier;
  const { event_key_mapping: mapping } = trigger;
  const ofKey = { field: eventKeyField, max: eventKeyCharsMax };
  const key =
    mapping === null ? null : await evaluateKey(mappings, trigger, { ...ofKey, mapping }, context);
  const data = await dataOf(mappings, trigger, context);
  return runEvents.send(sender, { event, key, jobId: null, data });
}

/** The body, or the result of the mapping over the trigger's own input. */
async function dataOf(
  mappings: Expressions,
  { organization_id, mapping, input }: TriggerRow,
  context: MappingContext,
): Promise<unknown> {
  const mapped =
    mapping === null ? context.body : await mappings.evaluate(organization_id, mapping, context);
  if (mapped === undefined) throw invalid('mapping', 'gives nothing for this request');
  const own = JSON.parse(input) as Record<string, unknown>;
  if (isObject(mapped)) return { ...own, ...mapped };
  if (Object.keys(own).length === 0) return mapped;
  throw invalid('mapping', 'must give an object, because the trigger has an input');
}
