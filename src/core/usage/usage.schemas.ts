/** The schemas of usage and budgets, for validation and documentation. */
import { type TSchema, Type } from 'typebox';
import { usageOwnerKinds } from '../../adapters/database/tables.ts';
import {
  Cost,
  FilterText,
  Id,
  Nullable,
  Page,
  Paged,
  Slug,
  Timestamp,
  tokenParts,
  Words,
} from '../../adapters/http/schemas.ts';

/** The largest limit of a budget, in tokens. */
const tokensMax = 1e15;
/** The same in US dollars: nano-dollars stay safe integers. */
const usdMax = 1_000_000;

const tokens = Type.Integer({ minimum: 0 });
const Limit = Nullable(Type.Integer({ minimum: 1, maximum: tokensMax }));
const UsdLimit = Nullable(Type.Number({ minimum: 1e-9, maximum: usdMax }));
const limits = {
  tokens_per_day: Limit,
  tokens_per_month: Limit,
  usd_per_day: UsdLimit,
  usd_per_month: UsdLimit,
};
const usd = Type.Number({ minimum: 0 });
const Day = Type.String({ format: 'date', description: 'A day in UTC.' });

const costIsPartial = Type.Boolean({
  description: 'Whether some tokens were not reported or have no known price.',
});

const unknown = 'Null where nothing is known of it: the provider did not report it.';
const ofDay = {
  day: Day,
  prompt_tokens: { ...Nullable(tokens), description: unknown },
  completion_tokens: { ...Nullable(tokens), description: unknown },
  total_tokens: { ...Nullable(tokens), description: unknown },
  ...tokenParts,
  estimated_tokens: { ...tokens, description: 'Charged for tokens that were not reported.' },
  cost_usd: Cost('US dollars for the reported tokens; null where nothing of it is known.'),
  estimated_cost_usd: { ...usd, description: 'US dollars for the estimated tokens.' },
  cost_is_partial: costIsPartial,
  calls: {
    ...tokens,
    description: 'Calls of models that began on this day; of users and skills, those that ended.',
  },
  unreported_calls: {
    ...tokens,
    description: 'Calls among these whose tokens were not fully reported.',
  },
  unpriced_calls: { ...tokens, description: 'Calls among these whose price is unknown.' },
};
const dayExample = {
  day: '2026-11-21',
  prompt_tokens: 5_210,
  completion_tokens: 830,
  total_tokens: 6_040,
  cache_read_tokens: 3_072,
  cache_write_tokens: 0,
  reasoning_tokens: 256,
  estimated_tokens: 0,
  cost_usd: 0.0113565,
  estimated_cost_usd: 0,
  cost_is_partial: false,
  calls: 4,
  unreported_calls: 0,
  unpriced_calls: 0,
};
const limitsExample = {
  tokens_per_day: 50_000,
  tokens_per_month: null,
  usd_per_day: null,
  usd_per_month: 25,
};
const noLimits = {
  tokens_per_day: null,
  tokens_per_month: null,
  usd_per_day: null,
  usd_per_month: null,
};

const Period = Type.Object(
  {
    used: { ...tokens, description: 'Known and estimated.' },
    reserved: { ...tokens, description: 'Reserved for calls under way.' },
    limit: Limit,
    left: { ...Nullable(tokens), description: 'What may still be reserved; null without a limit.' },
    used_usd: { ...usd, description: 'The same in US dollars, known and estimated.' },
    reserved_usd: usd,
    limit_usd: Nullable(usd),
    left_usd: Nullable(usd),
    cost_is_partial: costIsPartial,
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
        { [field]: example, ...noLimits, updated_at: null },
      ],
    },
  );

export const BudgetFields = Type.Object(
  {
    tokens_per_day: Type.Optional(Limit),
    tokens_per_month: Type.Optional(Limit),
    usd_per_day: Type.Optional(UsdLimit),
    usd_per_month: Type.Optional(UsdLimit),
  },
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
          today: {
            ...{ used: 6_040, reserved: 1_200, limit: 50_000, left: 42_760 },
            ...{ used_usd: 0.0113565, reserved_usd: 0.004, limit_usd: null, left_usd: null },
            cost_is_partial: false,
          },
          month: {
            ...{ used: 6_040, reserved: 1_200, limit: null, left: null },
            ...{ used_usd: 0.0113565, reserved_usd: 0.004, limit_usd: 25, left_usd: 24.9846435 },
            cost_is_partial: false,
          },
          days: [dayExample],
        },
      ],
    },
  );

export const UsagePage = Paged(
  Type.Object(
    {
      organization_id: Slug,
      owner_kind: Words(usageOwnerKinds),
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
    ...Words(usageOwnerKinds),
    description: 'The usage of owners of this kind.',
  }),
  owner_id: Type.Optional(FilterText('The usage of this owner.')),
  ...Page.properties,
});
