/** Triggers with an event: their calls become events for waiting runs instead of starting runs (docs/triggers.md). */
import { hash } from 'node:crypto';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import { hasScopes } from '../../kernel/caller.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';
import { eventKeyCharsMax, isLongerThan } from '../../kernel/step-bounds.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { eventScopes } from '../run-events/bounds.ts';
import type { SendReceipt } from '../run-events/run-events.ts';
import type { MappingContext } from './mapping-context.ts';
import type { TriggerReceiver } from './receive.ts';
import type { TriggerRow } from './triggers.store.ts';

/** Why the trigger may not send events; null if it may. */
export function eventObstacle(scopes: readonly string[]): string | null {
  return hasScopes(scopes, eventScopes) ? null : 'its key lacks the scope events';
}

/** Sends the event of a call, or returns that of an earlier identical call. */
export async function sendEvent(
  { mappings, runEvents }: TriggerReceiver,
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
  const key = await keyOf(mappings, trigger, context);
  const data = await dataOf(mappings, trigger, context);
  return runEvents.send(sender, { event, key, jobId: null, data });
}

async function keyOf(
  mappings: Expressions,
  { organization_id, event_key_mapping: mapping }: TriggerRow,
  context: MappingContext,
): Promise<string | null> {
  if (mapping === null) return null;
  const value = await ofKeyMapping(mappings.evaluate(organization_id, mapping, context));
  if (value === undefined) throw invalid(keyField, 'gives nothing for this request');
  const isText = typeof value === 'string' || typeof value === 'number';
  const key = isText ? String(value) : '';
  if (key === '' || isLongerThan(key, eventKeyCharsMax)) {
    throw invalid(keyField, `must give text of 1 to ${eventKeyCharsMax} characters, or a number`);
  }
  return key;
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

const keyField = 'event.key_mapping';

/** Reports a fault of the mapping under the field that contains the expression. */
export async function ofKeyMapping<T>(evaluated: Promise<T>): Promise<T> {
  try {
    return await evaluated;
  } catch (error) {
    const issue = error instanceof PlatformError && error.extras.details?.[0];
    throw issue ? invalid(keyField, issue.issue) : error;
  }
}
