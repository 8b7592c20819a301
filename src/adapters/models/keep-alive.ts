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

/** Whether the event has a piece of what the model writes, also one that is not kept, such as reasoning beyond its bound. */
export function hasPiece({ choices, delta }: Json): boolean {
  if (typeof delta === 'string') return delta !== '';
  return Array.isArray(choices) && choices.some((choice) => says(objectOf(choice)?.['delta']));
}

/** Servers send an empty delta, or one with the role alone, while the model works. */
function says(delta: unknown): boolean {
  return Object.entries(objectOf(delta) ?? {}).some(
    ([name, value]) => name !== 'role' && !isEmpty(value),
  );
}

function isEmpty(value: unknown): boolean {
  if (value == null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
