/** Agents as tools: a task in, an answer out. A call runs the catalog's skill for tasks as that agent. */
import { describeAgent } from '../../core/agents/called-agents.ts';
import type { Skill } from '../../core/skills/registry.ts';
import type { SkillTool } from './tools.ts';

/** Of skills no name begins so: two underscores follow their category, and ids of agents have none. */
const prefix = 'agent_';
/** Characters of a tool's name that clients accept. */
const nameMax = 64;
/** Too long for the prefix, and so a name by itself. */
const longId = /^[a-z0-9][a-z0-9-]{58,62}$/;

/** The name can be turned back into the id, so that a call needs no search. */
function nameOfAgent(id: string): string {
  return prefix.length + id.length <= nameMax ? `${prefix}${id}` : id;
}

/** The id of the agent that a tool is named after. */
export function agentOfTool(name: string): string | undefined {
  if (name.startsWith(prefix)) return name.slice(prefix.length);
  return longId.test(name) ? name : undefined;
}

export function agentTool(
  { id, name, description }: { id: string; name: string; description: string },
  skill: Skill,
): SkillTool {
  return {
    skill,
    isWrapped: false,
    listed: {
      name: nameOfAgent(id),
      title: name,
      description: describeAgent({ name, description }),
      inputSchema: { ...skill.parameters, type: 'object' },
      outputSchema: skill.output,
    },
  };
}
