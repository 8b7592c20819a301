/** Triggers as the API shows them. */
import { timestamp } from '../../kernel/clock.ts';
import { jobKeySettings } from './job-key.ts';
import type { triggerRefusals } from './refusals.ts';
import type { TriggerRow } from './triggers.store.ts';

export type TriggerView = ReturnType<typeof triggerView> &
  Partial<Awaited<ReturnType<typeof triggerRefusals>>[number]>;

/** A trigger without its token and its secret. */
export function triggerView(row: TriggerRow) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    name: row.name,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    input: JSON.parse(row.input) as Record<string, unknown>,
    mapping: row.mapping,
    event:
      row.event_name === null ? null : { name: row.event_name, key_mapping: row.event_key_mapping },
    job_key: jobKeySettings(row),
    priority: row.priority,
    rate_limit: row.rate_limit,
    has_signing_secret: row.signing_secret !== null,
    active: row.active === 1,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
