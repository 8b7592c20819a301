import type { Context } from '../../core/context/context.ts';
import { createTriggerCalls } from '../../platform/triggers/calls.ts';
import { createMappings } from '../../platform/triggers/mapping.ts';
import { createReceive, type ReceiveDeps } from '../../platform/triggers/receive.ts';
import { createTriggers, type TriggerDeps } from '../../platform/triggers/triggers.ts';

type SlicesDeps = Pick<ReceiveDeps, 'apiKeys' | 'secrets'> &
  Pick<ReceiveDeps['targets'], 'execute' | 'runEvents'> &
  TriggerDeps['slices'];

/** Triggers, and how calls from outside become jobs or events. `max` is how many an organization may have. */
export function composeTriggers(
  base: Pick<Context, 'database' | 'clock'>,
  slices: SlicesDeps,
  max = Number.POSITIVE_INFINITY,
) {
  const mappings = createMappings();
  const { apiKeys, secrets, execute, runEvents } = slices;
  return {
    mappings,
    triggers: createTriggers({ ...base, slices, mappings, max }),
    receive: createReceive({
      ...base,
      apiKeys,
      secrets,
      targets: { execute, runEvents, mappings },
    }),
    calls: createTriggerCalls(base),
  };
}
