/** Agents and their memories, and what other slices store about an agent. */
import { createAgentChanges } from '../agents/agent-changes.ts';
import { createAgentVersions, versionsOfAgent } from '../agents/agent-versions.ts';
import { type AgentDependent, createAgents } from '../agents/agents.ts';
import { namedByAgents } from '../agents/called-agents.ts';
import type { KnownSkills } from '../agents/covered.ts';
import type { Config } from '../config/config.ts';
import type { Bus } from '../kernel/bus.ts';
import type { Meaning } from '../memories/meaning.ts';
import { createMemories, memoriesOfAgent } from '../memories/memories.ts';
import { schedulesOfAgent } from '../schedules/schedules.store.ts';
import { triggersOfAgent } from '../triggers/triggers.store.ts';
import { budgetsOfAgent } from '../usage/budgets.ts';
import { webhooksOfAgent } from '../webhooks/webhooks.store.ts';
import type { Foundation } from './parts.ts';

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
type AgentsConfig = Pick<Config, 'agentsMax' | 'defaultModel' | 'modelContextTokens'>;

const unbounded: AgentsConfig = {
  agentsMax: Number.POSITIVE_INFINITY,
  defaultModel: null,
  modelContextTokens: 100_000,
};

/** Without a registry of skills. */
const noSkills: KnownSkills = { list: () => [], definition: () => undefined };

export function composeAgents(
  {
    database,
    clock,
    skills = noSkills,
  }: Pick<Foundation, 'database' | 'clock'> & { readonly skills?: KnownSkills },
  config: Partial<AgentsConfig> = {},
  bus: Bus | null = null,
  meaning: () => Meaning | null = () => null,
) {
  const { agentsMax: max, defaultModel, modelContextTokens } = { ...unbounded, ...config };
  const models = { model: defaultModel, contextTokens: modelContextTokens };
  const agentChanges = createAgentChanges(bus);
  const agents = createAgents({
    ...{ database, clock, settings: { models, max } },
    slices: { skills, dependents: agentDependents },
    changes: agentChanges,
  });
  const agentVersions = createAgentVersions({ database, agents });
  const memories = createMemories({ database, clock, agents, meaning });
  return { agents, agentChanges, agentVersions, memories };
}
