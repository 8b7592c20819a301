/** How a skill is stored in its row, and the order of skills in lists. */
import { compileSchema } from '../kernel/json-schema.ts';
import type { JsonSchema, SkillConfig, SkillExample, SkillMcp } from './definition.ts';
import { completeFacts, type SkillFacts } from './facts.ts';
import type { Skill } from './registry.ts';
import type { SkillRow } from './skills.store.ts';

/** The columns that the definition of a skill decides. */
export function columnsOf(definition: SkillFacts) {
  const facts = completeFacts(definition);
  return {
    category: facts.category,
    skill_name: facts.name,
    version: facts.version,
    display_name: facts.displayName,
    description: facts.description,
    parameters_schema: JSON.stringify(facts.parameters),
    output_schema: JSON.stringify(facts.output),
    required_scopes: JSON.stringify(facts.requiredScopes),
    timeout_ms: facts.timeoutMs,
    max_attempts: facts.maxAttempts,
    continues_conversations: Number(facts.continuesConversations),
    task_field: facts.taskField,
    answer_field: facts.answerField,
    examples: JSON.stringify(facts.examples),
    config: JSON.stringify(facts.config),
    mcp: facts.mcp === null ? null : JSON.stringify(facts.mcp),
  };
}

/** Whether the row is that of a skill which is defined exactly so. */
export function isStored(row: SkillRow | undefined, facts: SkillFacts): boolean {
  return row?.defined === 1 && hasValues(row, columnsOf(facts));
}

export function isSameRow(a: SkillRow, b: SkillRow | undefined): boolean {
  return b !== undefined && hasValues(a, b);
}

function hasValues(row: SkillRow, values: Partial<SkillRow>): boolean {
  return Object.entries(values).every(([name, value]) => row[name as keyof SkillRow] === value);
}

export function toSkill(row: SkillRow): Skill {
  const parameters = JSON.parse(row.parameters_schema) as JsonSchema;
  const config = JSON.parse(row.config) as SkillConfig;
  return {
    id: row.id,
    category: row.category,
    name: row.skill_name,
    version: row.version,
    displayName: row.display_name,
    description: row.description,
    parameters,
    output: JSON.parse(row.output_schema) as JsonSchema,
    requiredScopes: JSON.parse(row.required_scopes) as string[],
    timeoutMs: row.timeout_ms,
    maxAttempts: row.max_attempts,
    continuesConversations: row.continues_conversations === 1,
    taskField: row.task_field,
    answerField: row.answer_field,
    examples: JSON.parse(row.examples) as SkillExample[],
    config,
    mcp: row.mcp === null ? null : (JSON.parse(row.mcp) as SkillMcp),
    hasConfig: Object.keys(config).length > 0,
    isActive: row.defined === 1 && row.deprecated === 0,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    inputIssues: compileSchema(parameters),
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
