/** Agents as tools: a task in, an answer out. A call runs the catalog's skill for tasks as that agent. */
import { describeAgent } from '../agents/called-agents.ts';
import type { Skill } from '../skills/registry.ts';
import type { SkillTool } from './tools.ts';

const prefix = 'agent.';

/** The id of the agent that a tool is named after. */
export function agentOfTool(name: string): string | undefined {
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined;
}

export function agentTool(
  { id, name, description }: { id: string; name: string; description: string },
  skill: Skill,
): SkillTool {
  return {
    skill,
    isWrapped: false,
    listed: {
      name: `${prefix}${id}`,
      title: name,
      description: describeAgent({ name, description }),
      inputSchema: { ...skill.parameters, type: 'object' },
      outputSchema: skill.output,
    },
  };
}
