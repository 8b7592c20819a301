/** `tools/list`: the tools that a key may call, in pages. The skills come first, then the agents. */
import type { Agents } from '../../core/agents/agents.ts';
import { activeTaskSkill } from '../../core/agents/called-agents.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { agentTool } from './agent-tools.ts';
import { type ListedTool, mayCall, type SkillTool, type ToolSet, toolsOf } from './tools.ts';

/** Tools of a page. */
const pageSize = 100;

/** What the list of a request is made of. */
export interface ToolListDeps {
  readonly skills: Pick<SkillRegistry, 'list' | 'findActive'>;
  readonly agents: Pick<Agents, 'list' | 'find'>;
  /** The tools of the active skills of an organization. */
  tools(organizationId: string): ToolSet;
}

/** Sets of tools that are kept. */
const keptMax = 50;

/** The tools of the registry by organization, made again when its active skills have changed. */
export function createTools(
  skills: Pick<SkillRegistry, 'list' | 'audienceOf' | 'onChange'>,
): ToolListDeps['tools'] {
  const kept = new Map<string, ToolSet>();
  skills.onChange(() => kept.clear());
  return (organizationId) => {
    const audience = skills.audienceOf(organizationId);
    const made = kept.get(audience) ?? toolsOf(skills.list(organizationId));
    kept.delete(audience);
    kept.set(audience, made);
    if (kept.size > keptMax) kept.delete(kept.keys().next().value as string);
    return made;
  };
}

/** What a client asks for of the list. */
export interface ListAsked {
  readonly cursor: string | undefined;
  /** Whether each version is listed under its own name, too, also where a skill has one version alone. */
  readonly hasAllVersions: boolean;
}

/** A page after `cursor`; undefined for a cursor that no page had. */
export async function listTools(
  deps: ToolListDeps,
  caller: Caller,
  { cursor, hasAllVersions }: ListAsked,
): Promise<{ tools: ListedTool[]; nextCursor?: string } | undefined> {
  const after = positionOf(cursor);
  if (after === undefined) return undefined;
  const { listed, all } = deps.tools(caller.organizationId);
  const shown = hasAllVersions ? all : listed;
  const own = 'name' in after ? skillsAfter(shown, caller, after.name) : [];
  const page = own.slice(0, pageSize).map(({ listed }) => listed);
  const last = page.at(-1);
  if (own.length > pageSize && last) return { tools: page, nextCursor: cursorOf(`s:${last.name}`) };
  const offset = 'offset' in after ? after.offset : 0;
  const limit = pageSize - page.length;
  const { tools, next } = await agentsAfter(deps, caller, offset, limit);
  return {
    tools: [...page, ...tools],
    ...(next === null ? {} : { nextCursor: cursorOf(`a:${next}`) }),
  };
}

function skillsAfter(shown: readonly SkillTool[], caller: Caller, name: string): SkillTool[] {
  return shown.filter((tool) => tool.listed.name > name && mayCall(caller, tool));
}

/** The agents that can be given a task, and the offset of those that follow. */
async function agentsAfter(
  { agents, skills, tools }: ToolListDeps,
  caller: Caller,
  offset: number,
  limit: number,
): Promise<{ tools: ListedTool[]; next: number | null }> {
  const skill = activeTaskSkill(skills, caller.organizationId);
  if (skill === undefined || !hasScopes(caller.scopes, skill.requiredScopes)) {
    return { tools: [], next: null };
  }
  if (limit === 0) return { tools: [], next: offset };
  const found = await agents.list(caller.organizationId, { limit, offset });
  const next = offset + found.agents.length;
  const { byName } = tools(caller.organizationId);
  const listed = found.agents
    .filter(({ status }) => status === 'active')
    .map((agent) => agentTool(agent, skill).listed)
    .filter(({ name }) => !byName.has(name));
  return { tools: listed, next: found.agents.length > 0 && next < found.total ? next : null };
}

function cursorOf(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** Skills after a name, or agents from an offset on. */
function positionOf(cursor: string | undefined): { name: string } | { offset: number } | undefined {
  if (cursor === undefined) return { name: '' };
  const text = Buffer.from(cursor, 'base64url').toString();
  if (text.startsWith('s:')) return { name: text.slice(2) };
  const offset = /^a:(\d{1,9})$/.exec(text)?.[1];
  return offset === undefined ? undefined : { offset: Number(offset) };
}
