/** The scopes that a request needs, known before it is parsed further. */
import { activeTaskSkill } from '../../core/agents/called-agents.ts';
import type { Json } from '../../kernel/json.ts';
import { agentOfTool } from './agent-tools.ts';
import type { ToolList } from './tool-list.ts';

/** The scopes without which a request is refused, whatever it names. */
export function neededScopes(
  list: ToolList,
  organizationId: string,
  { method, params }: { readonly method: string; readonly params?: Json | undefined },
): readonly string[] {
  if (method === 'tasks/update') return ['approvals'];
  if (method !== 'tools/call') return [];
  const name = String(params?.['name']);
  const known = list.toolsOf(organizationId).byName.get(name)?.skill;
  const ofAgent =
    agentOfTool(name) === undefined ? undefined : activeTaskSkill(list.skills, organizationId);
  const skill = known ?? ofAgent;
  return skill?.requiredScopes ?? [];
}
