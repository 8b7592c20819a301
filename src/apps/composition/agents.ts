/** Agents and their memories, and what other slices store about an agent. */

import { Expressions } from '../../adapters/sandbox/expressions.ts';
import { AgentChanges } from '../../core/agents/agent-changes.ts';
import { AgentVersions, versionsOfAgent } from '../../core/agents/agent-versions.ts';
import { type AgentDependent, Agents } from '../../core/agents/agents.ts';
import { namedByAgents } from '../../core/agents/called-agents.ts';
import type { KnownSkills } from '../../core/agents/covered.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import { LimitSettings } from '../../core/limits/limit-settings.ts';
import type { Meaning } from '../../core/memories/meaning.ts';
import { Memories, memoriesOfAgent } from '../../core/memories/memories.ts';
import { budgetsOfAgent } from '../../core/usage/budgets.ts';
import type { Bus } from '../../kernel/bus.ts';
import { schedulesOfAgent } from '../../platform/schedules/schedules.store.ts';
import { triggersOfAgent } from '../../platform/triggers/triggers.store.ts';
import { webhooksOfAgent } from '../../platform/webhooks/webhooks.store.ts';

/**
 * Everything that happens in other slices when an agent is created or deleted, in this order. Each slice
 * exports its part; a new slice adds a line.
 */
const agentDependents: readonly AgentDependent[] = [
  schedulesOfAgent,
  triggersOfAgent,
  memoriesOfAgent,
  webhooksOfAgent,
  budgetsOfAgent,
  namedByAgents,
  versionsOfAgent,
];

/** Those of the platform's settings that agents need. */
type AgentsConfig = Pick<
  Config,
  'agentsMax' | 'defaultModel' | 'modelContextTokens' | 'modelAbilities'
>;

const unbounded: AgentsConfig = {
  agentsMax: Number.POSITIVE_INFINITY,
  defaultModel: null,
  modelContextTokens: 100_000,
  modelAbilities: [],
};

/** Without a registry of skills. */
const noSkills: KnownSkills = { list: () => [], definition: () => undefined };

export function composeAgents(
  {
    database,
    clock,
    skills = noSkills,
  }: Pick<Context, 'database' | 'clock'> & { readonly skills?: KnownSkills },
  config: Partial<AgentsConfig> = {},
  bus: Bus | null = null,
  meaning: () => Meaning | null = () => null,
  expressions = new Expressions(),
) {
  const agentChanges = new AgentChanges({ bus });
  const limits = new LimitSettings({ database, clock, bus });
  const agents = new Agents(
    { database, clock, config: { ...unbounded, ...config } },
    { skills, limits, dependents: agentDependents, changes: agentChanges, expressions },
  );
  const agentVersions = new AgentVersions({ database }, agents);
  const memories = new Memories({ database, clock }, agents, meaning);
  return { agents, agentChanges, agentVersions, memories };
}
