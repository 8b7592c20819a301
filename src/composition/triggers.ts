import { createTriggerCalls } from '../triggers/calls.ts';
import { createMappings } from '../triggers/mapping.ts';
import { createReceive, type ReceiveDeps } from '../triggers/receive.ts';
import { createTriggers, type TriggerDeps } from '../triggers/triggers.ts';
import type { Foundation } from './parts.ts';

type SlicesDeps = Pick<ReceiveDeps, 'apiKeys' | 'execute' | 'secrets' | 'runEvents'> &
  TriggerDeps['slices'];

/** Triggers, and how calls from outside become jobs or events. `max` is how many an organization may have. */
export function composeTriggers(
  base: Pick<Foundation, 'database' | 'clock'>,
  slices: SlicesDeps,
  max = Number.POSITIVE_INFINITY,
) {
  const mappings = createMappings();
  return {
    mappings,
    triggers: createTriggers({ ...base, slices, mappings, max }),
    receive: createReceive({ ...base, ...slices, mappings }),
    calls: createTriggerCalls(base),
  };
}
