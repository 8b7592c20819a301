/** The agent and the API key of a run, and what they allow. */

import { isUnavailable, notFound, PlatformError } from '../../kernel/errors.ts';
import type { AgentRow } from '../agents/agent-rows.ts';
import { type AgentFields, columnsOf, formationOf } from '../agents/agent-rows.ts';
import type { JournalJob } from '../journal/step-rows.ts';
import { formsMemories } from '../skills/formation-skill.ts';
import type { ThinkingParts } from './attempt.ts';
import { ThinkingError } from './thinking-error.ts';

/** An agent that a model may give tasks to. */
export type CalledAgent = Pick<AgentRow, 'id' | 'name' | 'description'>;

/** The agent of a job, with the overrides of a trial. */
export async function agentOf({ agents }: ThinkingParts, job: JournalJob): Promise<AgentRow> {
  const { organization_id, agent_id, created_at, agent_overrides } = job;
  try {
    const saved = await agents.findSince(organization_id, agent_id, created_at);
    if (agent_overrides !== null) return overridden(saved, agent_overrides);
    return formsMemories(job) ? forming(saved) : saved;
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'not_found') throw error;
    throw new ThinkingError('skill_execution_failed', notFound(`Agent ${agent_id}`).message);
  }
}

/** The agent with the model that forms its memories, where that is another. */
function forming(saved: AgentRow): AgentRow {
  const model = formationOf(saved)?.model ?? null;
  return model === null ? saved : { ...saved, model, model_settings: '{}', fallback_models: '[]' };
}

function overridden(saved: AgentRow, overrides: string): AgentRow {
  const fields = columnsOf(JSON.parse(overrides) as AgentFields);
  // A trial must not change the memory of the agent.
  const memory = saved.memory === 'off' ? 'off' : 'read';
  return { ...saved, ...fields, memory };
}

/** The scopes of the key that a job runs for; refuses a key that was revoked or has expired. */
export async function requireScopes(
  { apiKeys }: ThinkingParts,
  { api_key_id }: JournalJob,
): Promise<readonly string[]> {
  // From the cache: this is called before each call of a model and each tool.
  const caller = await apiKeys.cachedCaller(api_key_id);
  if (caller !== undefined) return caller.scopes;
  throw new ThinkingError(
    'skill_execution_failed',
    'The API key that this job runs for is revoked or expired: it may ask no model and call no tool',
  );
}

/** Rejects when the key is no longer valid. Passes when the database is unavailable. */
export async function requireKey(parts: ThinkingParts, job: JournalJob): Promise<void> {
  try {
    await requireScopes(parts, job);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
  }
}

export function modelOf({ context }: ThinkingParts, { id, model }: AgentRow): string {
  const name = model ?? context.config.defaultModel;
  if (name !== null) return name;
  throw new ThinkingError(
    'missing_credentials',
    `The agent ${id} has no model: set its model to provider/model, or DEFAULT_MODEL for all agents`,
  );
}
