/** Agents and their memories, and what other slices store about an agent. */

import { Expressions } from '../../adapters/sandbox/expressions.ts';
import { AgentChanges } from '../../core/agents/agent-changes.ts';
import { AgentVersions, versionsOfAgent } from '../../core/agents/agent-versions.ts';
import { type AgentDependent, Agents } from '../../core/agents/agents.ts';
import { namedByAgents } from '../../core/agents/called-agents.ts';
import type { KnownSkills } from '../../core/agents/covered.ts';
import type { Context } from '../../core/context/context.ts';
import { LimitSettings } from '../../core/limits/limit-settings.ts';
import type { Meaning } from '../../core/memories/meaning.ts';
import { Memories, memoriesOfAgent } from '../../core/memories/memories.ts';
import { budgetsOfAgent } from '../../core/usage/budgets.ts';
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

/** Without a registry of skills. */
const noSkills: KnownSkills = { list: () => [], definition: () => undefined };

/** Without `meaning` memories are found by their words alone. */
export function composeAgents(
  context: Context,
  {
    skills = noSkills,
    meaning = () => null,
    expressions = new Expressions(),
  }: {
    readonly skills?: KnownSkills;
    readonly meaning?: () => Meaning | null;
    readonly expressions?: Expressions;
  } = {},
) {
  const agentChanges = new AgentChanges(context);
  const limits = new LimitSettings(context);
  const agents = new Agents(context, {
    skills,
    limits,
    dependents: agentDependents,
    changes: agentChanges,
    expressions,
  });
  const agentVersions = new AgentVersions(context, agents);
  const memories = new Memories(context, agents, meaning);
  return { agents, agentChanges, agentVersions, memories };
}
