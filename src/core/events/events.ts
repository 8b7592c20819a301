/**
 * The events that webhooks deliver (specification: Events; docs/decisions/webhooks.md). From this table
 * follow the types of their data, the values that a webhook takes in `events`, the samples of `/test`, and
 * the table in docs/webhooks.md.
 */
import type { Selectable } from 'kysely';
import { type Static, type TObject, Type } from 'typebox';
import {
  type ApprovalStatus,
  approvalStatuses,
  type JobsTable,
} from '../../adapters/database/tables.ts';
import { type RunErrorCode, runErrorCodes } from '../../kernel/errors.ts';

/**
 * An entry of the table: `when` says which change it reports; the compiler holds the sample to `data`. A key needs `scopes`
 * to read what the event is about, and with `API_KEY_PERMISSIONS=strict` also `strictScopes`.
 */
const event = <Data extends TObject>(entry: {
  when: string;
  data: Data;
  sample: Static<Data>;
  scopes?: readonly string[];
  strictScopes?: readonly string[];
}) => entry;

const run = {
  job_id: Type.String(),
  skill_category: Type.String(),
  skill_name: Type.String(),
  skill_version: Type.String(),
  conversation_id: Type.String(),
};
const sampleRun = {
  job_id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d10',
  skill_category: 'web',
  skill_name: 'fetch-page',
  skill_version: 'v1.0',
  conversation_id: '01990a5e-7c1b-7001-8f1e-0c5a7e9b2d11',
};
const scheduledRun = {
  scheduled_job_id: Type.String(),
  ...run,
  scheduled_for: Type.String(),
};
const sampleScheduledRun = {
  scheduled_job_id: '01990a5e-7c1b-7002-8f1e-0c5a7e9b2d12',
  ...sampleRun,
  scheduled_for: '2026-01-01T06:00:00.000Z',
};
const error = Type.Object({
  code: Type.Unsafe<RunErrorCode>({ type: 'string', enum: [...runErrorCodes] }),
  message: Type.String(),
});
const sampleError = {
  code: 'upstream_unavailable',
  message: 'The page could not be fetched: example.com did not answer',
} as const;

const approvalEndings = approvalStatuses.filter((status) => status !== 'pending');
const approval = {
  id: Type.String(),
  approval_id: Type.String(),
  job_id: Type.String(),
  conversation_id: Type.String(),
  step: Type.String(),
  title: Type.String(),
  digest: Type.String(),
};
const sampleApproval = {
  id: '01990a5e-7c1b-7003-8f1e-0c5a7e9b2d13',
  approval_id: '01990a5e-7c1b-7003-8f1e-0c5a7e9b2d13',
  job_id: sampleRun.job_id,
  conversation_id: sampleRun.conversation_id,
  step: 'ship',
  title: 'Ship order 1042?',
  digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
};

export const events = {
  'skill.completed': event({
    when: 'a run finished',
    data: Type.Object({ ...run, duration_ms: Type.Integer(), result_summary: Type.String() }),
    sample: {
      ...sampleRun,
      duration_ms: 1_240,
      result_summary: '{"title":"Example Domain","text":"This domain is for use in examples."}',
    },
  }),
  'skill.failed': event({
    when: 'a run failed for good, after its retries',
    data: Type.Object({ ...run, attempts: Type.Integer(), error }),
    sample: { ...sampleRun, attempts: 3, error: sampleError },
  }),
  'agent.error': event({
    when: 'an agent or its configuration has a fault',
    data: Type.Object({
      code: Type.String(),
      message: Type.String(),
      job_id: Type.Union([Type.String(), Type.Null()]),
    }),
    sample: {
      code: 'missing_credentials',
      message: 'The skill web/v1.0/fetch-page needs a credential that is not configured',
      job_id: sampleRun.job_id,
    },
  }),
  'agent.status_changed': event({
    when: 'an agent was paused or resumed',
    data: Type.Object({ previous_status: Type.String(), status: Type.String() }),
    sample: { previous_status: 'active', status: 'paused' },
  }),
  'agent.created': event({
    when: 'an agent was created; sent to webhooks for all agents alone',
    data: Type.Object({ name: Type.String(), status: Type.String() }),
    sample: { name: 'Support', status: 'active' },
  }),
  'agent.deleted': event({
    when: 'an agent was deleted; sent to webhooks for all agents alone',
    data: Type.Object({ name: Type.String() }),
    sample: { name: 'Support' },
  }),
  'batch.completed': event({
    when: 'all jobs of a batch have ended; sent to webhooks for all agents alone',
    data: Type.Object({
      batch_id: Type.String(),
      accepted: Type.Integer(),
      completed: Type.Integer(),
      failed: Type.Integer(),
      cancelled: Type.Integer(),
      created_at: Type.String(),
    }),
    sample: {
      batch_id: '01990a5e-7c1b-7005-8f1e-0c5a7e9b2d15',
      accepted: 1_000,
      completed: 997,
      failed: 2,
      cancelled: 1,
      created_at: '2026-01-01T06:00:00.000Z',
    },
  }),
  'conversation.created': event({
    when: 'a job from any source was accepted, and does not continue an earlier conversation',
    strictScopes: ['conversations'],
    data: Type.Object({
      conversation_id: Type.String(),
      trigger_type: Type.String(),
      user_id: Type.String(),
    }),
    sample: {
      conversation_id: sampleRun.conversation_id,
      trigger_type: 'api',
      user_id: 'nightly reports',
    },
  }),
  'scheduled_job.completed': event({
    when: 'a scheduled run finished',
    strictScopes: ['schedules'],
    data: Type.Object({ ...scheduledRun, duration_ms: Type.Integer() }),
    sample: { ...sampleScheduledRun, duration_ms: 1_240 },
  }),
  'scheduled_job.failed': event({
    when: 'a scheduled run failed for good',
    strictScopes: ['schedules'],
    data: Type.Object({ ...scheduledRun, error }),
    sample: { ...sampleScheduledRun, error: sampleError },
  }),
  'approval.requested': event({
    when: 'a run asks a person for an approval, and waits',
    scopes: ['approvals'],
    data: Type.Object({ ...approval, expires_at: Type.String() }),
    sample: { ...sampleApproval, expires_at: '2026-01-08T00:00:00.000Z' },
  }),
  'approval.decided': event({
    when: 'an approval was approved or rejected, or it expired, or its job ended before',
    scopes: ['approvals'],
    data: Type.Object({
      ...approval,
      status: Type.Unsafe<ApprovalStatus>({ type: 'string', enum: approvalEndings }),
      decided_at: Type.String(),
      decided_by: Type.Union([
        Type.Object({
          kind: Type.String(),
          id: Type.String(),
          api_key_id: Type.Optional(Type.String()),
        }),
        Type.Null(),
      ]),
      reason: Type.Union([Type.String(), Type.Null()]),
    }),
    sample: {
      ...sampleApproval,
      status: 'approved',
      decided_at: '2026-01-01T08:30:00.000Z',
      decided_by: { kind: 'api_key', id: '01990a5e-7c1b-7004-8f1e-0c5a7e9b2d14' },
      reason: 'Checked.',
    },
  }),
};

export type EventType = keyof typeof events;
export const eventTypes = Object.keys(events) as EventType[];

/** The events of no agent in particular: no agent could listen for them (docs/decisions/webhooks.md). */
export const organizationEvents: ReadonlySet<EventType> = new Set([
  'agent.created',
  'agent.deleted',
  'batch.completed',
]);

/** The scopes of a key that may read what these events are about. */
export function scopesToRead(types: readonly EventType[], isStrict: boolean): string[] {
  const scopes = types.flatMap((type) => {
    const { scopes: always = [], strictScopes = [] } = events[type];
    return isStrict ? [...always, ...strictScopes] : always;
  });
  return [...new Set(scopes)];
}

/** An event about to be recorded. */
export type NewEvent = {
  [Type in EventType]: {
    type: Type;
    organizationId: string;
    agentId: string;
    data: Static<(typeof events)[Type]['data']>;
  };
}[EventType];

/** A row of a job, as the events about its runs show it. */
export type ReportedJob = Pick<
  Selectable<JobsTable>,
  | 'id'
  | 'organization_id'
  | 'agent_id'
  | 'skill_category'
  | 'skill_name'
  | 'skill_version'
  | 'conversation_id'
>;

/** To whom an event about a job, or about another row of an agent, belongs. */
export function envelopeOf(row: Pick<ReportedJob, 'organization_id' | 'agent_id'>) {
  return { organizationId: row.organization_id, agentId: row.agent_id };
}

/** The fields that all events about a run have. */
export function runData(job: ReportedJob): Static<TObject<typeof run>> {
  return {
    job_id: job.id,
    skill_category: job.skill_category,
    skill_name: job.skill_name,
    skill_version: job.skill_version,
    conversation_id: job.conversation_id,
  };
}
