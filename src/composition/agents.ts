/** Agents and their memories, and what other slices store about an agent. */
import { type AgentDependents, createAgents } from '../agents/agents.ts';
import { markRemoved as markMemoriesRemoved } from '../memories/memories.store.ts';
import { createMemories } from '../memories/memories.ts';
import { isAgentScheduled } from '../schedules/schedules.store.ts';
import { isAgentTriggered } from '../triggers/triggers.store.ts';
import { deleteBudget, setAsideUsage } from '../usage/usage.store.ts';
import { removeWebhooksOfAgent } from '../webhooks/webhooks.ts';
import type { Foundation } from './parts.ts';

/** Everything that happens in other slices when an agent is created or deleted. */
const agentDependents: AgentDependents = {
  areThere: async (tx, organizationId, agentId) =>
    (await isAgentScheduled(tx, organizationId, agentId)) ||
    (await isAgentTriggered(tx, organizationId, agentId)),
  begin: setAsideUsage,
  async remove(tx, organizationId, agentId) {
    await markMemoriesRemoved(tx, organizationId, agentId);
    await removeWebhooksOfAgent(tx, organizationId, agentId);
    await deleteBudget(tx, organizationId, { owner_kind: 'agent', owner_id: agentId });
  },
};

/** `agentsMax` is how many agents an organization may have. */
export function composeAgents(
  { database, clock }: Pick<Foundation, 'database' | 'clock'>,
  agentsMax?: number,
) {
  const agents = createAgents(database, clock, agentDependents, agentsMax);
  return { agents, memories: createMemories({ database, clock, agents }) };
}
