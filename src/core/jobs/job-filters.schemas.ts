/** By what lists of jobs, and commands for many jobs, may be narrowed (docs/api.md). */
import { Type } from 'typebox';
import { FilterText, Id } from '../../adapters/http/schemas.ts';
import { TriggerType } from './jobs.schemas.ts';

/** The filters by equal values, but for the status, of which each operation has its own. */
export const jobFilters = {
  agent_id: Type.Optional(FilterText('Jobs of this agent.')),
  skill_category: Type.Optional(FilterText('Jobs of skills of this category.')),
  skill_name: Type.Optional(FilterText('Jobs of skills of this name.')),
  skill_version: Type.Optional(FilterText('Jobs of this version.')),
  trigger_type: Type.Optional({
    ...TriggerType,
    description: 'Jobs that were started in this way.',
  }),
  conversation_id: Type.Optional({
    ...Id,
    description: 'Jobs of this conversation, also those that wait in it.',
  }),
  parent_job_id: Type.Optional({ ...Id, description: 'Jobs that the run of this job started.' }),
  batch_id: Type.Optional({ ...Id, description: 'Jobs of this batch.' }),
  user_id: Type.Optional(FilterText('Jobs for this user, whom x-user-id named.')),
  api_key_id: Type.Optional({ ...Id, description: 'Jobs that were accepted with this API key.' }),
};
