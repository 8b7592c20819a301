/** An agent's row, and the fields of it that clients set and see. */
import { timestamp } from '../../kernel/clock.ts';
import type { AgentRow } from './agents.store.ts';
import type { Guard } from './guards.ts';
import type { InstructionValues } from './instruction-values.ts';
import { type GivenSettings, type ModelSettings, storedSettings } from './model-settings.ts';
import type { ToolRule } from './tool-rules.ts';

export type { AgentRow };

/** How an agent's model keeps profiles of users. */
export interface ProfileSetting {
  readonly max_bytes: number;
}

/** How memories are formed after an agent's conversations. */
export interface MemoryFormation {
  /** How long after the last run of a conversation. */
  readonly quiet_seconds: number;
  /** The model that forms them; the agent's where it is left out. */
  readonly model?: string | null;
  /** Of one conversation at a time. */
  readonly max_memories?: number;
}

/** The fields of an agent that a client may set. */
export interface AgentFields
  extends Partial<
    Pick<
      AgentRow,
      'name' | 'description' | 'status' | 'instructions' | 'model' | 'memory' | 'priority'
    >
  > {
  recall?: { readonly limit: number } | null;
  profile?: ProfileSetting | null;
  memory_formation?: MemoryFormation | null;
  skills?: readonly string[];
  approvals?: readonly string[];
  tool_rules?: readonly ToolRule[];
  guards?: readonly Guard[];
  agents?: readonly string[];
  metadata?: Readonly<Record<string, unknown>>;
  variables?: InstructionValues;
  model_settings?: GivenSettings | null;
  fallback_models?: readonly string[];
  max_concurrency?: number | null;
  keep_prompts?: boolean;
}

export function emptyAgent(organizationId: string, id: string, now: number): AgentRow {
  return {
    organization_id: organizationId,
    id,
    name: id,
    description: '',
    status: 'active',
    instructions: '',
    model: null,
    variables: '{}',
    model_settings: '{}',
    fallback_models: '[]',
    skills: '[]',
    approvals: '[]',
    tool_rules: '[]',
    guards: '[]',
    agents: '[]',
    metadata: '{}',
    memory: 'user',
    recall: null,
    profile: null,
    memory_formation: null,
    priority: null,
    keep_prompts: 0,
    version: 1,
    created_at: now,
    updated_at: now,
  };
}

/** The columns of the given fields. */
export function columnsOf(fields: AgentFields): Partial<AgentRow> {
  const {
    max_concurrency: _,
    skills,
    approvals,
    tool_rules,
    guards,
    agents,
    metadata,
    variables,
    model_settings,
    fallback_models,
    recall,
    profile,
    keep_prompts,
    memory_formation: formation,
    ...texts
  } = fields;
  return {
    ...texts,
    ...(keep_prompts !== undefined && { keep_prompts: keep_prompts ? 1 : 0 }),
    ...(recall !== undefined && { recall: recall && JSON.stringify(recall) }),
    ...(profile !== undefined && { profile: profile && JSON.stringify(profile) }),
    ...(formation !== undefined && { memory_formation: formation && JSON.stringify(formation) }),
    ...(model_settings !== undefined && {
      model_settings: JSON.stringify(storedSettings(model_settings)),
    }),
    ...(variables && { variables: JSON.stringify(variables) }),
    ...(fallback_models && { fallback_models: JSON.stringify(fallback_models) }),
    ...(skills && { skills: JSON.stringify(skills) }),
    ...(approvals && { approvals: JSON.stringify(approvals) }),
    ...(tool_rules && { tool_rules: JSON.stringify(tool_rules) }),
    ...(guards && { guards: JSON.stringify(guards) }),
    ...(agents && { agents: JSON.stringify(agents) }),
    ...(metadata && { metadata: JSON.stringify(metadata) }),
  };
}

/** An agent as clients see it. */
export function agentBody<Row extends AgentRow>({ organization_id: _, keep_prompts, ...row }: Row) {
  return {
    ...row,
    variables: variablesOf(row),
    model_settings: row.model_settings === '{}' ? null : settingsOf(row),
    fallback_models: fallbacksOf(row),
    skills: JSON.parse(row.skills) as string[],
    approvals: JSON.parse(row.approvals) as string[],
    tool_rules: rulesOf(row),
    guards: guardsOf(row),
    agents: JSON.parse(row.agents) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    keep_prompts: keep_prompts === 1,
    recall: row.recall === null ? null : (JSON.parse(row.recall) as { limit: number }),
    profile: profileOf(row),
    memory_formation: formationOf(row),
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}

/** How the agent's model keeps profiles of users; null where it does not. */
export function profileOf({ profile }: Pick<AgentRow, 'profile'>): ProfileSetting | null {
  return profile === null ? null : (JSON.parse(profile) as ProfileSetting);
}

/** How memories are formed after the agent's conversations; null where none are. */
export function formationOf({
  memory_formation: formation,
}: Pick<AgentRow, 'memory_formation'>): MemoryFormation | null {
  return formation === null ? null : (JSON.parse(formation) as MemoryFormation);
}

/** The agent's rules about the calls of its tools, in order. */
export function rulesOf({ tool_rules }: Pick<AgentRow, 'tool_rules'>): ToolRule[] {
  return JSON.parse(tool_rules) as ToolRule[];
}

/** The agent's guards, in order. */
export function guardsOf({ guards }: Pick<AgentRow, 'guards'>): Guard[] {
  return JSON.parse(guards) as Guard[];
}

/** How the agent's model is called. */
export function settingsOf({ model_settings }: Pick<AgentRow, 'model_settings'>): ModelSettings {
  return JSON.parse(model_settings) as ModelSettings;
}

/** The texts that the agent's instructions name in double braces. */
export function variablesOf({ variables }: Pick<AgentRow, 'variables'>): InstructionValues {
  return JSON.parse(variables) as InstructionValues;
}

/** The agent's fallback models, in order. */
export function fallbacksOf({ fallback_models }: Pick<AgentRow, 'fallback_models'>): string[] {
  return JSON.parse(fallback_models) as string[];
}

export function calledModel(row: AgentRow) {
  return { model: row.model, settings: settingsOf(row), fallbacks: fallbacksOf(row) };
}
