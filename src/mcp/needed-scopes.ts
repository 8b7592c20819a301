/** The scopes that a request needs, known before it is parsed further. */
import { activeTaskSkill } from '../agents/called-agents.ts';
import type { Json } from '../kernel/json.ts';
import { agentOfTool } from './agent-tools.ts';
import type { ToolListDeps } from './tool-list.ts';

/** The scopes without which a request is refused, whatever it names. */
export function neededScopes(
  list: Pick<ToolListDeps, 'skills' | 'tools'>,
  { method, params }: { readonly method: string; readonly params?: Json | undefined },
): readonly string[] {
  if (method === 'tasks/update') return ['approvals'];
  if (method !== 'tools/call') return [];
  const name = String(params?.['name']);
  const known = list.tools().byName.get(name)?.skill;
  const skill =
    known ?? (agentOfTool(name) === undefined ? undefined : activeTaskSkill(list.skills));
  return skill?.requiredScopes ?? [];
}
