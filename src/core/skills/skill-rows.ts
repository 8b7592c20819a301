/** How a skill is stored in its row, and the order of skills in lists. */
import { columnsOf, factsOf, type SkillFacts } from './fields.ts';
import { InputSchema } from './input-schema.ts';
import { afterRefusal, limitsOf, ratesOf } from './limits.ts';
import type { Skill } from './registry.ts';
import type { SkillRow } from './skills.store.ts';

/** The service outside that runs a skill, and the organizations that the skill belongs to; null for all. */
export interface Outside {
  readonly sourceId: string | null;
  readonly organizations: readonly string[] | null;
}

const nothingOutside: Outside = { sourceId: null, organizations: null };

/** The columns of a skill that is defined. */
export function definedColumns(
  facts: SkillFacts,
  { sourceId, organizations }: Outside = nothingOutside,
) {
  return {
    ...columnsOf(facts),
    remote_source_id: sourceId,
    organizations: organizations === null ? null : JSON.stringify(organizations.toSorted()),
    defined: 1,
  };
}

/** Whether the row is that of a skill which is defined exactly so. */
export function isStored(
  row: SkillRow | undefined,
  facts: SkillFacts,
  outside: Outside = nothingOutside,
): boolean {
  return row !== undefined && hasValues(row, definedColumns(facts, outside));
}

export function isSameRow(a: SkillRow, b: SkillRow | undefined): boolean {
  return b !== undefined && hasValues(a, b);
}

function hasValues(row: SkillRow, values: Partial<SkillRow>): boolean {
  return Object.entries(values).every(([name, value]) => row[name as keyof SkillRow] === value);
}

export function toSkill(row: SkillRow): Skill {
  const facts = factsOf(row);
  return {
    ...facts,
    id: row.id,
    remoteSourceId: row.remote_source_id,
    organizations:
      row.organizations === null ? null : new Set(JSON.parse(row.organizations) as string[]),
    hasConfig: Object.keys(facts.config).length > 0,
    limits: [
      ...(facts.slowsDown ? [afterRefusal] : []),
      ...limitsOf(facts.concurrency),
      ...ratesOf(facts.rate),
    ],
    isActive: row.defined === 1 && row.deprecated === 0,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    input: new InputSchema(facts.parameters, row.remote_source_id !== null),
  };
}

/** By category, name, then version as numbers: v1.10 comes after v1.9. */
export function bySortKey(a: Skill, b: Skill): number {
  return (
    compareText(a.category, b.category) ||
    compareText(a.name, b.name) ||
    compareVersions(a.version, b.version)
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.slice(1).split('.').map(Number);
  const [majorB = 0, minorB = 0] = b.slice(1).split('.').map(Number);
  return majorA - majorB || minorA - minorB;
}
