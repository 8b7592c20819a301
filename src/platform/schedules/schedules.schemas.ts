/** What scheduled jobs and their runs look like on the wire (specification: Scheduled jobs). */
import { type Static, Type } from 'typebox';
import { jobStatuses } from '../../adapters/database/tables.ts';
import {
  FreeObject,
  Id,
  Name,
  Nullable,
  optionalRefusal,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';
import { ListedJob } from '../../core/jobs/jobs.schemas.ts';
import { priorities } from '../../kernel/priority.ts';
import { zoneCharactersMax } from '../../kernel/zones.ts';
import { cronCharactersMax } from './cron.ts';
import { lastRunStatuses } from './states.ts';

const outcomes = [
  'fired',
  'caught_up',
  'missed',
  'overlapped',
  'agent_paused',
  'key_revoked',
  'skill_inactive',
  'insufficient_scope',
  'input_invalid',
  'run_now',
] as const;

export const CronExpression = Type.String({
  maxLength: cronCharactersMax,
  description: 'Minute, hour, day of month, month, day of week; local times of `timezone`.',
});

export const Timezone = Type.String({
  maxLength: zoneCharactersMax,
  description: 'A name of the IANA time zone database, such as `Europe/Berlin`; `UTC` if omitted.',
});

/** Shown only where it was set. */
const shownTimezone = {
  timezone: Type.Optional(Type.String({ description: 'Where it was set; otherwise UTC.' })),
};

/** The fields that a client may set; categories, versions and names have the registry's limits. */
const given = {
  agent_id: Name(),
  skill_category: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }),
  skill_name: Type.String({
    pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
    maxLength: 64,
    description: 'Kebab-case.',
  }),
  skill_version: Type.String({
    pattern: '^v(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$',
    maxLength: 32,
    default: 'v1.0',
  }),
  cron_expression: CronExpression,
  timezone: { ...Timezone, description: 'A name of the IANA time zone database; `UTC` clears it.' },
  input: FreeObject,
  priority: {
    ...Nullable(Words(priorities)),
    description: "That of its jobs; null: its agent's.",
  },
  enabled: Type.Boolean({ default: true }),
};

export const NewScheduledJob = Type.Object(
  {
    ...given,
    skill_version: Type.Optional(given.skill_version),
    timezone: Type.Optional(Timezone),
    input: Type.Optional(given.input),
    priority: Type.Optional(given.priority),
    enabled: Type.Optional(given.enabled),
  },
  {
    title: 'NewScheduledJob',
    additionalProperties: false,
    examples: [
      {
        agent_id: 'default',
        skill_category: 'util',
        skill_name: 'echo',
        cron_expression: '0 9 * * MON-FRI',
        timezone: 'Europe/Berlin',
        input: { text: 'good morning' },
      },
    ],
  },
);
export type NewScheduledJob = Static<typeof NewScheduledJob>;

export const ScheduledJobChanges = Type.Partial(Type.Object(given), {
  title: 'ScheduledJobChanges',
  additionalProperties: false,
  examples: [{ enabled: false }],
});
export type ScheduledJobChanges = Static<typeof ScheduledJobChanges>;

const listed = {
  id: Id,
  agent_id: Type.String(),
  skill_category: Type.String(),
  skill_name: Type.String(),
  skill_version: Type.String(),
  cron_expression: Type.String(),
  ...shownTimezone,
  priority: Type.Optional({ ...Words(priorities), description: 'Where it was set.' }),
  enabled: Type.Boolean(),
  last_run_at: Nullable(Timestamp),
  last_run_status: Nullable(Words(lastRunStatuses)),
  next_run_at: Timestamp,
  created_at: Timestamp,
  updated_at: Timestamp,
};
const listedExample = {
  id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
  agent_id: 'default',
  skill_category: 'util',
  skill_name: 'echo',
  skill_version: 'v1.0',
  cron_expression: '0 9 * * MON-FRI',
  enabled: true,
  last_run_at: null,
  last_run_status: null,
  next_run_at: '2026-01-01T09:00:00.000Z',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};
const createdExample = { ...listedExample, input: { text: 'good morning' } };

export const ScheduledJobList = Type.Array(
  Type.Object({ ...listed, ...optionalRefusal }, { title: 'ListedScheduledJob' }),
  {
    description: 'All scheduled jobs of the organization.',
    examples: [[listedExample]],
  },
);
export const CreatedScheduledJob = Type.Object(
  { ...listed, input: FreeObject },
  {
    title: 'CreatedScheduledJob',
    description: 'The scheduled job.',
    examples: [createdExample],
  },
);
export const ScheduledJob = Type.Object(
  {
    ...listed,
    input: FreeObject,
    last_run_job_id: Nullable(Id),
    ...optionalRefusal,
  },
  {
    title: 'ScheduledJob',
    description: 'The scheduled job.',
    examples: [
      {
        ...createdExample,
        last_run_at: '2026-01-01T09:00:00.120Z',
        last_run_status: 'completed',
        last_run_job_id: '01990c4c-9a80-7000-8f1e-0c5a7e9b2d12',
        next_run_at: '2026-01-02T09:00:00.000Z',
      },
    ],
  },
);

export const CronPreview = Type.Object(
  {
    cron_expression: Type.String({ description: 'As in the request.' }),
    ...shownTimezone,
    next_runs: Type.Array(Timestamp, { description: 'Its next matches, the first one first.' }),
  },
  {
    title: 'CronPreview',
    description: 'When the expression matches next.',
    examples: [
      {
        cron_expression: '0 9 * * MON-FRI',
        next_runs: ['2026-01-01T09:00:00.000Z', '2026-01-02T09:00:00.000Z'],
      },
    ],
  },
);

export const ScheduledRun = Type.Object(
  {
    id: Id,
    scheduled_for: Timestamp,
    outcome: Words(outcomes),
    slots: Type.Integer({ minimum: 1, description: 'Slots that this entry stands for.' }),
    message: Nullable(Type.String()),
    job_id: Nullable(Id),
    status: Nullable({ ...Words(jobStatuses), description: 'Of the job.' }),
    created_at: Timestamp,
  },
  {
    title: 'ScheduledRun',
    examples: [
      {
        id: '01990c4c-9a80-7001-8f1e-0c5a7e9b2d13',
        scheduled_for: '2026-01-01T09:00:00.000Z',
        outcome: 'fired',
        slots: 1,
        message: null,
        job_id: '01990c4c-9a80-7000-8f1e-0c5a7e9b2d12',
        status: 'completed',
        created_at: '2026-01-01T09:00:00.120Z',
      },
    ],
  },
);

export const StartedRun = { ...ListedJob, description: 'The job of the run.' };
