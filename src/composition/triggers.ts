import type { Agents } from '../agents/agents.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { SigningSecrets } from '../database/signing-secrets.ts';
import type { Execute } from '../jobs/execute.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import { createTriggerCalls } from '../triggers/calls.ts';
import { createMappings } from '../triggers/mapping.ts';
import { createReceive } from '../triggers/receive.ts';
import { createTriggers } from '../triggers/triggers.ts';
import type { Foundation } from './parts.ts';

/** What triggers need of other slices. */
export interface TriggersDeps {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly execute: Execute;
  readonly secrets: SigningSecrets;
}

/** Triggers, and how calls from outside become jobs. `max` is how many an organization may have. */
export function composeTriggers(
  base: Pick<Foundation, 'database' | 'clock'>,
  deps: TriggersDeps,
  max = Number.POSITIVE_INFINITY,
) {
  const mappings = createMappings();
  return {
    mappings,
    triggers: createTriggers({ ...base, ...deps, mappings, max }),
    receive: createReceive({ ...base, ...deps, mappings }),
    calls: createTriggerCalls(base),
  };
}
