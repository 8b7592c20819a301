/**
 * Agents that other agents give tasks to: which may be named, and how a model sees one. Cycles are refused. Two
 * concurrent changes can still make a cycle, so a run also checks its parent jobs.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import { type AgentRow, findAgentNaming, listCalledAgents } from './agents.store.ts';
import type { AgentDependent } from './agents.ts';

/** The skill that gives an agent a task. */
export const taskSkill = ['agent', 'v1.0', 'run-task'] as const;

/** Agents that an agent may give tasks to, also through others. Each change of an agent reads them all. */
export const reachableMax = 1_000;

/** The skill that gives an agent of the organization a task, while it is active. */
export function activeTaskSkill(skills: SkillRegistry, organizationId: string) {
  return skills.findActive(organizationId, ...taskSkill);
}

/** What a model, or a client of the Model Context Protocol, reads of an agent that is a tool. */
export function describeAgent({
  name,
  description,
}: Pick<AgentRow, 'name' | 'description'>): string {
  return `Gives the agent ${name} a task and returns its answer. ${description}`.trim();
}

/**
 * Throws `400 validation_error` when a named agent does not exist or the names form a cycle, and `409 conflict` when they
 * lead to more than `reachableMax` agents.
 */
export async function requireCallable(
  tx: Transaction,
  organizationId: string,
  id: string,
  named: readonly string[],
): Promise<void> {
  /** By id: the agent that names it. */
  const callers = new Map<string, string>();
  let level = new Map(named.map((one) => [one, id]));
  for (let isFirst = true; level.size > 0; isFirst = false) {
    if (level.has(id)) throw invalid('agents', circle(id, [...callers, ...level]));
    for (const [one, caller] of level) callers.set(one, caller);
    if (callers.size > reachableMax) {
      throw new PlatformError(
        'conflict',
        `The agent ${id} would give tasks, also through others, to more than ${reachableMax} agents: name fewer`,
      );
    }
    const rows = await listCalledAgents(tx, organizationId, [...level.keys()]);
    const missing = [...level.keys()].find((one) => !rows.some((row) => row.id === one));
    if (isFirst && missing !== undefined) throw invalid('agents', `there is no agent ${missing}`);
    const next = rows.flatMap((row) =>
      (JSON.parse(row.agents) as string[]).map((one) => [one, row.id] as const),
    );
    level = new Map(next.filter(([one]) => !callers.has(one)));
  }
}

/** Describes the cycle in a sentence. */
function circle(id: string, callers: readonly (readonly [string, string])[]): string {
  const callerOf = new Map(callers);
  const way = [id];
  for (let at = callerOf.get(id); at !== undefined; at = callerOf.get(at)) {
    way.unshift(at);
    if (at === id) break;
  }
  return `lead back to ${id}: ${way.join(' → ')}`;
}

/** Prevents the deletion of an agent that other agents name. */
export const namedByAgents: AgentDependent = {
  blocker: {
    noun: 'other agents',
    names: async (tx, organizationId, id) =>
      (await findAgentNaming(tx, organizationId, id)) !== undefined,
  },
};
