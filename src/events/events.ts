/** The seven event types that webhooks deliver (specification: Events). */
import type { RunErrorCode } from '../kernel/errors.ts';

interface SkillRun {
  job_id: string;
  skill_category: string;
  skill_name: string;
  skill_version: string;
  conversation_id: string;
}

interface Failure {
  code: RunErrorCode;
  message: string;
}

/** The data of each event, in the specification's words (docs/decisions/webhooks.md). */
export interface EventData {
  'skill.completed': SkillRun & { duration_ms: number; result_summary: string };
  'skill.failed': SkillRun & { attempts: number; error: Failure };
  'agent.error': { code: string; message: string; job_id: string | null };
  'agent.status_changed': { previous_status: string; status: string };
  'conversation.created': { conversation_id: string; trigger_type: string; user_id: string };
  'scheduled_job.completed': SkillRun & {
    scheduled_job_id: string;
    scheduled_for: string;
    duration_ms: number;
  };
  'scheduled_job.failed': SkillRun & {
    scheduled_job_id: string;
    scheduled_for: string;
    error: Failure;
  };
}

export type EventType = keyof EventData;

/** An event about to be recorded. */
export type NewEvent = {
  [Type in EventType]: {
    type: Type;
    organizationId: string;
    agentId: string;
    data: EventData[Type];
  };
}[EventType];
