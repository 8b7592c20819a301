/**
 * Tells the events that only keep a connection open from those that have a part of an answer: pings, chunks of a chat
 * without content, deltas without text. Comments are no events at all.
 */
import { type Json, objectOf } from '../../kernel/json.ts';

/** A response is created and in progress also where it waits, or where its request turns out to be refused. */
const pings: ReadonlySet<unknown> = new Set([
  'ping',
  'keepalive',
  'response.created',
  'response.queued',
  'response.in_progress',
]);

/** Whether the event says nothing, and is no beginning of an answer either. */
export const isPing = ({ type }: Json): boolean => pings.has(type);

/** Whether the event has no part of the answer, no reason of its end and no usage. */
export function isKeepAlive(event: Json): boolean {
  if (isPing(event)) return true;
  const { type, choices, delta, usage, error } = event;
  if (!isEmpty(usage) || !isEmpty(error)) return false;
  if (typeof delta === 'string') return delta === '';
  if (type === 'content_block_delta') return hasNothing(objectOf(delta) ?? {}, 'type');
  return Array.isArray(choices) && choices.every((choice) => saysNothing(objectOf(choice) ?? {}));
}

/** Servers send `choices` with an empty delta, or with the role alone, while the model works. */
function saysNothing({ delta, message, finish_reason, usage }: Json): boolean {
  return (
    isEmpty(finish_reason) &&
    isEmpty(usage) &&
    isEmpty(message) &&
    hasNothing(objectOf(delta) ?? {}, 'role')
  );
}

const hasNothing = (fields: Json, besides: string) =>
  Object.entries(fields).every(([name, value]) => name === besides || isEmpty(value));

function isEmpty(value: unknown): boolean {
  if (value == null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
