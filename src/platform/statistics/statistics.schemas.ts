/** The schemas of the statistics routes. */
import { Type } from 'typebox';
import { Cost, Defaulted, Id, Nullable, Timestamp, Words } from '../../adapters/http/schemas.ts';
import { windowNames } from './windows.ts';

const count = Type.Integer({ minimum: 0 });
const Duration = Nullable(Type.Integer({ minimum: 0 }));
const averaged =
  'Of the last attempts of those that completed or failed, in milliseconds; null where none did.';

export const WindowQuery = Type.Object({
  window: Defaulted({
    ...Words(windowNames),
    default: 'hour',
    description: 'hour: 60 buckets of a minute. day: 96 buckets of a quarter of an hour.',
  }),
});

const Now = Type.Object(
  {
    queued: count,
    active: count,
    waiting: {
      ...count,
      description: 'Jobs that wait for a moment, an event, a person or another job.',
    },
    oldest_waiting_seconds: Nullable(
      Type.Number({
        minimum: 0,
        description: 'How long the oldest due job has been queued; null if none is due.',
      }),
    ),
  },
  { title: 'WorkNow', description: 'The current state.' },
);
const ended = { completed: count, failed: count, cancelled: count };
const Totals = Type.Object(
  {
    accepted: count,
    ...ended,
    prompt_tokens: { ...count, description: 'Tokens that providers reported.' },
    completion_tokens: count,
    total_tokens: count,
    tokens_are_partial: Type.Boolean({
      description: 'Whether providers did not report some tokens, which are missing from the sums.',
    }),
    cost_usd: Cost('US dollars for the reported tokens; null where nothing of it is known.'),
    cost_is_partial: Type.Boolean({
      description: 'Whether some tokens were not reported or have no known price.',
    }),
  },
  { title: 'StatisticsTotals', description: 'Of the whole window.' },
);
const Bucket = Type.Object(
  {
    start: Timestamp,
    accepted: { ...count, description: 'Jobs accepted in the bucket.' },
    ...ended,
    completed: { ...count, description: 'Jobs that ended in it, accepted at any time.' },
    total_tokens: { ...count, description: 'Of calls of models that ended in it.' },
    average_duration_ms: { ...Duration, description: averaged },
  },
  { title: 'StatisticsBucket' },
);
const OfSkill = Type.Object(
  {
    skill_category: Type.String(),
    skill_name: Type.String(),
    skill_version: Type.String(),
    ...ended,
    average_duration_ms: { ...Duration, description: averaged },
    longest_duration_ms: Duration,
  },
  { title: 'StatisticsOfSkill' },
);

const endedExample = { completed: 8, failed: 1, cancelled: 0 };
const emptyBucket = (start: string) => ({
  start,
  accepted: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  total_tokens: 0,
  average_duration_ms: null,
});
const hour = Date.parse('2026-11-21T11:01:00.000Z');
const minute = (i: number) => new Date(hour + i * 60_000).toISOString();

export const StatisticsOfWindow = Type.Object(
  {
    window: Words(windowNames),
    from: { ...Timestamp, description: 'When the first bucket begins.' },
    to: { ...Timestamp, description: 'When the last bucket ends, which is still open.' },
    bucket_seconds: Type.Integer(),
    now: Now,
    totals: Totals,
    buckets: Type.Array(Bucket, {
      description: 'All buckets of the window, also empty ones; the oldest first.',
    }),
    skills: Type.Array(OfSkill, {
      description: 'Versions with ended runs, at most 200; those with most runs first.',
      maxItems: 200,
    }),
  },
  {
    title: 'Statistics',
    description: 'The statistics of the organization in the window.',
    examples: [
      {
        window: 'hour',
        from: minute(0),
        to: minute(60),
        bucket_seconds: 60,
        now: { queued: 2, active: 1, waiting: 3, oldest_waiting_seconds: 0.41 },
        totals: {
          accepted: 12,
          ...endedExample,
          prompt_tokens: 5_210,
          completion_tokens: 830,
          total_tokens: 6_040,
          tokens_are_partial: false,
          cost_usd: 0.0113565,
          cost_is_partial: false,
        },
        buckets: [
          ...Array.from({ length: 59 }, (_, i) => emptyBucket(minute(i))),
          {
            ...emptyBucket(minute(59)),
            ...endedExample,
            accepted: 12,
            total_tokens: 6_040,
            average_duration_ms: 1_290,
          },
        ],
        skills: [
          {
            skill_category: 'text',
            skill_name: 'summarize',
            skill_version: 'v1.0',
            ...endedExample,
            average_duration_ms: 1_290,
            longest_duration_ms: 2_114,
          },
        ],
      },
    ],
  },
);

export const UsesOfSkill = Type.Object(
  {
    scheduled_jobs: Type.Array(
      Type.Object(
        {
          id: Id,
          agent_id: Type.String(),
          cron_expression: Type.String(),
          timezone: Type.Optional(Type.String({ description: 'Where it was set; otherwise UTC.' })),
          enabled: Type.Boolean(),
        },
        { title: 'ScheduledJobOfSkill' },
      ),
      { description: 'Newest first, at most 200.' },
    ),
    total_scheduled_jobs: count,
    agent_triggers: Type.Array(
      Type.Object(
        { id: Id, name: Type.String(), agent_id: Type.String(), active: Type.Boolean() },
        { title: 'AgentTriggerOfSkill' },
      ),
      { description: 'Newest first, at most 200.' },
    ),
    total_agent_triggers: count,
    api_keys: Type.Array(
      Type.Object(
        { id: Id, client_name: Type.String(), runs: count, last_used_at: Timestamp },
        { title: 'ApiKeyOfSkill' },
      ),
      {
        description:
          'Keys that ran it in the last 30 days, directly or by schedules and triggers; ' +
          'the last used first, at most 200.',
      },
    ),
    total_api_keys: count,
  },
  {
    title: 'SkillUsages',
    description: 'The users of the version.',
    examples: [
      {
        scheduled_jobs: [
          {
            id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
            agent_id: 'support',
            cron_expression: '0 9 * * MON-FRI',
            enabled: true,
          },
        ],
        total_scheduled_jobs: 1,
        agent_triggers: [
          {
            id: '019ab0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1',
            name: 'Pushes to the handbook',
            agent_id: 'default',
            active: true,
          },
        ],
        total_agent_triggers: 1,
        api_keys: [
          {
            id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d12',
            client_name: 'billing service',
            runs: 412,
            last_used_at: '2026-11-21T11:59:58.120Z',
          },
        ],
        total_api_keys: 1,
      },
    ],
  },
);
