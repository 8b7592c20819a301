/** The sample of each event type that `/test` sends. Its keys are all event types. */
import type { EventData, EventType } from '../events/events.ts';

const run = {
  job_id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d10',
  skill_category: 'web',
  skill_name: 'fetch-page',
  skill_version: 'v1.0',
  conversation_id: '01990a5e-7c1b-7001-8f1e-0c5a7e9b2d11',
};
const scheduledRun = {
  scheduled_job_id: '01990a5e-7c1b-7002-8f1e-0c5a7e9b2d12',
  ...run,
  scheduled_for: '2026-01-01T06:00:00.000Z',
};
const error = {
  code: 'upstream_unavailable',
  message: 'The page could not be fetched: example.com did not answer',
} as const;

export const samples: { readonly [Type in EventType]: EventData[Type] } = {
  'skill.completed': {
    ...run,
    duration_ms: 1_240,
    result_summary: '{"title":"Example Domain","text":"This domain is for use in examples."}',
  },
  'skill.failed': { ...run, attempts: 3, error },
  'agent.error': {
    code: 'missing_credentials',
    message: 'The skill web/v1.0/fetch-page needs a credential that is not configured',
    job_id: run.job_id,
  },
  'agent.status_changed': { previous_status: 'active', status: 'paused' },
  'conversation.created': {
    conversation_id: run.conversation_id,
    trigger_type: 'api',
    user_id: 'nightly reports',
  },
  'scheduled_job.completed': { ...scheduledRun, duration_ms: 1_240 },
  'scheduled_job.failed': { ...scheduledRun, error },
};

export const eventTypes = Object.keys(samples) as EventType[];
