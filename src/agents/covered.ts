/**
 * Which scopes a key needs to write an agent: those that cover all that runs of the agent may do, because the writer
 * decides what runs of other keys do (docs/decisions/api-keys.md). A pattern `cat/*` is covered by the scope `cat` and the
 * scopes of each skill that it matches now, a pattern with a wildcard category by `*` alone. The agents that it may give
 * tasks to count with theirs.
 */
import type { Handle } from '../database/database.ts';
import { type Caller, requireScopes } from '../kernel/caller.ts';
import { PlatformError } from '../kernel/errors.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import { type AgentRow, listCalledAgents } from './agents.store.ts';
import { taskSkill } from './called-agents.ts';
import { matchesAny } from './tool-offers.ts';

/** The organization and the scopes of the key that writes an agent. */
export type Writer = Pick<Caller, 'organizationId' | 'scopes'>;

export type KnownSkills = Pick<SkillRegistry, 'list' | 'definition'>;

/** The part of an agent that decides what its runs may do. */
type Rights = Pick<AgentRow, 'id' | 'skills' | 'agents'>;

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
  const needed = new Set<string>();
  const seen = new Set<string>();
  for (let level = states; level.length > 0; ) {
    const called = new Set<string>();
    for (const rights of level) {
      const patterns = JSON.parse(rights.skills) as string[];
      addScopes(needed, skills, organizationId, patterns);
      const named = JSON.parse(rights.agents) as string[];
      if (named.length > 0) {
        addScopes(needed, skills, organizationId, [taskSkill.join('/')]);
      }
      for (const id of named) if (!seen.has(id)) called.add(id);
    }
    for (const id of called) seen.add(id);
    level = await listCalledAgents(db, organizationId, [...called]);
  }
  return [...needed].filter((scope) => !scopes.includes(scope)).sort();
}

function addScopes(
  needed: Set<string>,
  skills: KnownSkills,
  organizationId: string,
  patterns: readonly string[],
): void {
  for (const pattern of patterns) {
    const [category = '*', version = '*', name = '*'] = pattern.split('/');
    if (category === '*') {
      needed.add('*');
      continue;
    }
    const isExact = version !== '*' && name !== '*';
    const exact = isExact ? skills.definition(organizationId, category, version, name) : undefined;
    if (exact === undefined) needed.add(category);
    for (const scope of exact?.requiredScopes ?? []) needed.add(scope);
  }
  const open = patterns.filter((pattern) => !pattern.startsWith('*'));
  for (const skill of skills.list(organizationId)) {
    if (!matchesAny(skill, open)) continue;
    for (const scope of skill.requiredScopes) needed.add(scope);
  }
}

/** Throws `403` for a change of the patterns whose calls a person has to approve, without the scope of approvals. */
export function requireApprovals(
  { scopes }: Writer,
  before: Pick<AgentRow, 'approvals'>,
  after: Pick<AgentRow, 'approvals'>,
): void {
  if (before.approvals !== after.approvals) requireScopes(scopes, ['approvals']);
}
