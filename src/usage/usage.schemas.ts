/** The schemas of usage and budgets, for validation and documentation. */
import { type TSchema, Type } from 'typebox';
import { Id, Nullable, Page, Paged, Slug, Timestamp, Words } from '../http/schemas.ts';

/** The largest limit of a budget, in tokens. */
const tokensMax = 1e15;

const ownerKinds = ['agent', 'deleted_agent', 'api_key', 'scheduled_job'] as const;

const tokens = Type.Integer({ minimum: 0 });
const Limit = Nullable(Type.Integer({ minimum: 1, maximum: tokensMax }));
const limits = { tokens_per_day: Limit, tokens_per_month: Limit };
const Day = Type.String({ format: 'date', description: 'A day in UTC.' });

const unknown = 'Null where nothing is known of it: the provider did not report it.';
const ofDay = {
  day: Day,
  prompt_tokens: { ...Nullable(tokens), description: unknown },
  completion_tokens: { ...Nullable(tokens), description: unknown },
  total_tokens: { ...Nullable(tokens), description: unknown },
  estimated_tokens: { ...tokens, description: 'Charged for tokens that were not reported.' },
  calls: { ...tokens, description: 'Calls of models that began on this day.' },
  unreported_calls: {
    ...tokens,
    description: 'Calls among these whose tokens were not fully reported.',
  },
};
const dayExample = {
  day: '2026-11-21',
  prompt_tokens: 5_210,
  completion_tokens: 830,
  total_tokens: 6_040,
  estimated_tokens: 0,
  calls: 4,
  unreported_calls: 0,
};
const limitsExample = { tokens_per_day: 50_000, tokens_per_month: null };

const Period = Type.Object(
  {
    used: { ...tokens, description: 'Known and estimated.' },
    reserved: { ...tokens, description: 'Reserved for calls under way.' },
    limit: Limit,
    left: { ...Nullable(tokens), description: 'What may still be reserved; null without a limit.' },
  },
  { title: 'UsageOfPeriod' },
);

/** The field that names the owner in a response. */
export interface OwnerField {
  readonly field: string;
  readonly schema: TSchema;
  /** The prefix of the schemas' titles. */
  readonly title: string;
  readonly example: string;
}

export const agentField: OwnerField = {
  field: 'agent_id',
  schema: Slug,
  title: 'Agent',
  example: 'support',
};
export const scheduledJobField: OwnerField = {
  field: 'scheduled_job_id',
  schema: Id,
  title: 'ScheduledJob',
  example: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
};
export const apiKeyField: OwnerField = {
  field: 'api_key_id',
  schema: Id,
  title: 'ApiKey',
  example: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d12',
};

export const BudgetOf = ({ field, schema, title, example }: OwnerField) =>
  Type.Object(
    { [field]: schema, ...limits, updated_at: Nullable(Timestamp) },
    {
      title: `${title}Budget`,
      description: 'The budget; all null without one.',
      examples: [
        { [field]: example, ...limitsExample, updated_at: '2026-11-01T00:00:00.000Z' },
        { [field]: example, tokens_per_day: null, tokens_per_month: null, updated_at: null },
      ],
    },
  );

export const BudgetFields = Type.Object(
  { tokens_per_day: Type.Optional(Limit), tokens_per_month: Type.Optional(Limit) },
  {
    title: 'BudgetFields',
    additionalProperties: false,
    examples: [limitsExample],
  },
);

export const UsageOf = ({ field, schema, title, example }: OwnerField) =>
  Type.Object(
    {
      [field]: schema,
      from: Day,
      to: Day,
      limits: Type.Object(limits),
      today: Period,
      month: Period,
      days: Type.Array(Type.Object(ofDay, { title: 'UsageOfDay' })),
    },
    {
      title: `${title}Usage`,
      description: 'The days on which models were called, newest first.',
      examples: [
        {
          [field]: example,
          from: '2026-10-23',
          to: '2026-11-21',
          limits: limitsExample,
          today: { used: 6_040, reserved: 1_200, limit: 50_000, left: 42_760 },
          month: { used: 6_040, reserved: 1_200, limit: null, left: null },
          days: [dayExample],
        },
      ],
    },
  );

export const UsagePage = Paged(
  Type.Object(
    {
      organization_id: Slug,
      owner_kind: Words(ownerKinds),
      owner_id: Type.String(),
      ...ofDay,
      ...limits,
    },
    {
      title: 'OwnerUsageOfDay',
      examples: [
        {
          organization_id: 'default',
          owner_kind: 'agent',
          owner_id: 'support',
          ...dayExample,
          ...limitsExample,
        },
      ],
    },
  ),
  'A page of days, newest first.',
);

export const DaysQuery = {
  from: Type.Optional({ ...Day, description: 'The first day; by default 29 days before to.' }),
  to: Type.Optional({ ...Day, description: 'The last day; by default today.' }),
};

export const UsageFilters = Type.Object({
  ...DaysQuery,
  organization_id: Type.Optional({ ...Slug, description: 'The usage of this organization.' }),
  owner_kind: Type.Optional({
    ...Words(ownerKinds),
    description: 'The usage of owners of this kind.',
  }),
  ...Page.properties,
});
