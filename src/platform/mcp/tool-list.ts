/** `tools/list`: the tools that a key may call, in pages. The skills come first, then the agents. */
import type { Agents } from '../../core/agents/agents.ts';
import { activeTaskSkill } from '../../core/agents/called-agents.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { agentTool } from './agent-tools.ts';
import { type ListedTool, mayCall, type SkillTool, type ToolSet, toolsOf } from './tools.ts';

/** Tools of a page. */
const pageSize = 100;
/** Sets of tools that are kept. */
const keptMax = 50;

/** The part of the list that a client requests. */
export interface ListRange {
  readonly cursor: string | undefined;
  /** Whether each version is listed under its own name, too, also where a skill has one version alone. */
  readonly hasAllVersions: boolean;
}

/** The tools of organizations: their active skills and their agents. */
export class ToolList {
  readonly skills: SkillRegistry;
  readonly agents: Agents;
  /** By `audienceOf` the organization, until the active skills of the registry change. */
  readonly #kept = new Map<string, ToolSet>();

  constructor(skills: SkillRegistry, agents: Agents) {
    this.skills = skills;
    this.agents = agents;
    skills.onChange(() => this.#kept.clear());
  }

  /** The tools of the active skills of an organization. */
  toolsOf(organizationId: string): ToolSet {
    const kept = this.#kept;
    const audience = this.skills.audienceOf(organizationId);
    const made = kept.get(audience) ?? toolsOf(this.skills.list(organizationId));
    kept.delete(audience);
    kept.set(audience, made);
    if (kept.size > keptMax) kept.delete(kept.keys().next().value as string);
    return made;
  }

  /** A page after a cursor; undefined for a cursor that no page had. */
  async page(
    caller: Caller,
    { cursor, hasAllVersions }: ListRange,
  ): Promise<{ tools: ListedTool[]; nextCursor?: string } | undefined> {
    const after = positionOf(cursor);
    if (after === undefined) return undefined;
    const { listed, all } = this.toolsOf(caller.organizationId);
    const shown = hasAllVersions ? all : listed;
    const own = 'name' in after ? skillsAfter(shown, caller, after.name) : [];
    const page = own.slice(0, pageSize).map(({ listed }) => listed);
    const last = page.at(-1);
    if (own.length > pageSize && last)
      return { tools: page, nextCursor: cursorOf(`s:${last.name}`) };
    const offset = 'offset' in after ? after.offset : 0;
    const { tools, next } = await this.#agentsAfter(caller, offset, pageSize - page.length);
    return {
      tools: [...page, ...tools],
      ...(next === null ? {} : { nextCursor: cursorOf(`a:${next}`) }),
    };
  }

  /** The agents that can be given a task, and the offset of those that follow. */
  async #agentsAfter(
    { organizationId, scopes }: Caller,
    offset: number,
    limit: number,
  ): Promise<{ tools: ListedTool[]; next: number | null }> {
    const skill = activeTaskSkill(this.skills, organizationId);
    if (skill === undefined || !hasScopes(scopes, skill.requiredScopes)) {
      return { tools: [], next: null };
    }
    if (limit === 0) return { tools: [], next: offset };
    const found = await this.agents.list(organizationId, { limit, offset });
    const next = offset + found.agents.length;
    const { byName } = this.toolsOf(organizationId);
    const listed = found.agents
      .filter(({ status }) => status === 'active')
      .map((agent) => agentTool(agent, skill).listed)
      .filter(({ name }) => !byName.has(name));
    return { tools: listed, next: found.agents.length > 0 && next < found.total ? next : null };
  }
}

function skillsAfter(shown: readonly SkillTool[], caller: Caller, name: string): SkillTool[] {
  return shown.filter((tool) => tool.listed.name > name && mayCall(caller, tool));
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
