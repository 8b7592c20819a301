/** Agents and their memories, and what other slices store about an agent. */
import { type AgentDependent, createAgents } from '../agents/agents.ts';
import { namedByAgents } from '../agents/called-agents.ts';
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
];

/** `agentsMax` is how many agents an organization may have. */
export function composeAgents(
  { database, clock }: Pick<Foundation, 'database' | 'clock'>,
  agentsMax = Number.POSITIVE_INFINITY,
) {
  const agents = createAgents({ database, clock, dependents: agentDependents, max: agentsMax });
  return { agents, memories: createMemories({ database, clock, agents }) };
}
