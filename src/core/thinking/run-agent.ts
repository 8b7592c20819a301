/** The agent and the API key of a run, and what they allow. */

import { isUnavailable, notFound, PlatformError } from '../../kernel/errors.ts';
import type { AgentRow } from '../agents/agent-rows.ts';
import { type AgentFields, columnsOf } from '../agents/agent-rows.ts';
import type { Agents } from '../agents/agents.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import { ThinkingError } from './thinking-error.ts';

/** An agent that a model may give tasks to. */
export type CalledAgent = Pick<AgentRow, 'id' | 'name' | 'description'>;

export interface RunAgentDeps {
  readonly agents: Agents;
  /** The model of agents without one of their own; null when not configured. */
  readonly defaultModel: string | null;
  /**
   * The scopes of a key; undefined when it is revoked or has expired. Called before each call of a model
   * and each tool, so it should answer from memory.
   */
  scopesOf(apiKeyId: string): Promise<readonly string[] | undefined>;
}

/** The agent of a job, with the overrides of a trial. */
export async function agentOf(
  { agents }: RunAgentDeps,
  { organization_id, agent_id, created_at, agent_overrides }: JournalJob,
): Promise<AgentRow> {
  try {
    const saved = await agents.findSince(organization_id, agent_id, created_at);
    return agent_overrides === null ? saved : overridden(saved, agent_overrides);
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'not_found') throw error;
    throw new ThinkingError('skill_execution_failed', notFound(`Agent ${agent_id}`).message);
  }
}

function overridden(saved: AgentRow, overrides: string): AgentRow {
  const fields = columnsOf(JSON.parse(overrides) as AgentFields);
  // A trial must not change the memory of the agent.
  const memory = saved.memory === 'off' ? 'off' : 'read';
  return { ...saved, ...fields, memory };
}

/** The scopes of the key that a job runs for; refuses a key that was revoked or has expired. */
export async function requireScopes(
  { scopesOf }: RunAgentDeps,
  { api_key_id }: JournalJob,
): Promise<readonly string[]> {
  const scopes = await scopesOf(api_key_id);
  if (scopes !== undefined) return scopes;
  throw new ThinkingError(
    'skill_execution_failed',
    'The API key that this job runs for is revoked or expired: it may ask no model and call no tool',
  );
}

/** Rejects when the key is no longer valid. Passes when the database is unavailable. */
export async function requireKey(deps: RunAgentDeps, job: JournalJob): Promise<void> {
  try {
    await requireScopes(deps, job);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
  }
}

export function modelOf({ defaultModel }: RunAgentDeps, { id, model }: AgentRow): string {
  const name = model ?? defaultModel;
  if (name !== null) return name;
  throw new ThinkingError(
    'missing_credentials',
    `The agent ${id} has no model: set its model to provider/model, or DEFAULT_MODEL for all agents`,
  );
}
