/**
 * Which scopes a key needs to write an agent: those that cover all that runs of the agent may do, because the writer
 * decides what runs of other keys do (docs/decisions/api-keys.md). A pattern `cat/*` is covered by the scope `cat` and the
 * scopes of each skill that it matches now, a pattern with a wildcard category by `*` alone. The agents that it may give
 * tasks to count with theirs; with more than `reachableMax` of them, `*` alone covers it.
 */
import type { Handle } from '../../adapters/database/database.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { type SkillRegistry, skillKey } from '../skills/registry.ts';
import { type AgentRow, listCalledAgents } from './agents.store.ts';
import { reachableMax, taskSkill } from './called-agents.ts';
import type { Guard } from './guards.ts';

/** The organization and the scopes of the key that writes an agent. */
export type Writer = Pick<Caller, 'organizationId' | 'scopes'>;

export type KnownSkills = Pick<SkillRegistry, 'list' | 'definition'>;

/** The part of an agent that decides what its runs may do. */
type Rights = Pick<AgentRow, 'id' | 'skills' | 'agents' | 'guards'>;

/** Missing scopes that a refusal names. */
const namedMax = 20;

/** Throws `403 insufficient_scope` unless the writer's scopes cover each of these states of an agent. */
export async function requireCovered(
  db: Handle,
  skills: KnownSkills,
  writer: Writer,
  states: readonly Rights[],
): Promise<void> {
  const missing = await missingScopes(db, skills, writer, states);
  if (missing.length === 0) return;
  const more = missing.length > namedMax ? ', …' : '';
  throw new PlatformError(
    'insufficient_scope',
    `This key lacks the scope ${missing.slice(0, namedMax).join(', ')}${more} for what the agent ` +
      `${states[0]?.id} may call`,
  );
}

/** The scopes that the writer lacks to cover these states of an agent. */
export async function missingScopes(
  db: Handle,
  skills: KnownSkills,
  { organizationId, scopes }: Writer,
  states: readonly Rights[],
): Promise<string[]> {
  if (scopes[0] === '*') return [];
  const patterns = await patternsOf(db, organizationId, states);
  const needed =
    patterns === null ? new Set(['*']) : neededScopes(skills, organizationId, patterns);
  return [...needed].filter((scope) => !scopes.includes(scope)).sort();
}

/** The patterns of the states and of all agents that they reach; null where these are more than `reachableMax`. */
async function patternsOf(
  db: Handle,
  organizationId: string,
  states: readonly Rights[],
): Promise<Set<string> | null> {
  const patterns = new Set<string>();
  const seen = new Set<string>();
  for (let level = states; level.length > 0; ) {
    const called = new Set<string>();
    for (const rights of level) {
      for (const pattern of JSON.parse(rights.skills) as string[]) patterns.add(pattern);
      for (const { skill } of JSON.parse(rights.guards) as Guard[]) patterns.add(skill);
      const named = JSON.parse(rights.agents) as string[];
      if (named.length > 0) patterns.add(taskSkill.join('/'));
      for (const id of named) if (!seen.has(id)) called.add(id);
    }
    for (const id of called) seen.add(id);
    if (seen.size > reachableMax) return null;
    level = await listCalledAgents(db, organizationId, [...called]);
  }
  return patterns;
}

/** The scopes of all that the patterns match now. Each skill takes four look-ups, however many the patterns are. */
function neededScopes(
  skills: KnownSkills,
  organizationId: string,
  patterns: ReadonlySet<string>,
): Set<string> {
  const needed = new Set<string>();
  const open = new Set<string>();
  for (const pattern of patterns) {
    const [category = '*', version = '*', name = '*'] = pattern.split('/');
    if (category === '*') {
      needed.add('*');
      continue;
    }
    open.add(skillKey(category, version, name));
    const isExact = version !== '*' && name !== '*';
    const exact = isExact ? skills.definition(organizationId, category, version, name) : undefined;
    if (exact === undefined) needed.add(category);
    for (const scope of exact?.requiredScopes ?? []) needed.add(scope);
  }
  for (const { category, version, name, requiredScopes } of skills.list(organizationId)) {
    const isMatched = [
      skillKey(category, version, name),
      skillKey(category, version, '*'),
      skillKey(category, '*', name),
      skillKey(category, '*', '*'),
    ].some((key) => open.has(key));
    if (isMatched) for (const scope of requiredScopes) needed.add(scope);
  }
  return needed;
}

/** What holds an agent back: calls that a person has to approve, rules about calls, guards. */
const controls = ['approvals', 'tool_rules', 'guards'] as const;
type Controls = Pick<AgentRow, (typeof controls)[number]>;

/** Throws `403` for a change of what holds an agent back without the scope of approvals. */
export function requireApprovals({ scopes }: Writer, before: Controls, after: Controls): void {
  if (controls.some((name) => before[name] !== after[name])) requireScopes(scopes, ['approvals']);
}
