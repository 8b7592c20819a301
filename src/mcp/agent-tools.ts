/** Agents as tools: a task in, an answer out. A call runs the catalog's skill for tasks as that agent. */
import type { Skill, SkillRegistry } from '../skills/registry.ts';
import type { SkillTool } from './tools.ts';

const prefix = 'agent.';
const task = ['agent', 'v1.0', 'run-task'] as const;

/** The skill that gives an agent a task. */
export function taskSkill(skills: Pick<SkillRegistry, 'findActive'>): Skill | undefined {
  return skills.findActive(...task);
}

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
      description: `Gives the agent ${name} a task and returns its answer. ${description}`.trim(),
      inputSchema: { ...skill.parameters, type: 'object' },
      outputSchema: skill.output,
    },
  };
}
