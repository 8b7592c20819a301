/** Building blocks of route schemas, from which validation, types and documentation are derived. */
import { type TSchema, Type } from 'typebox';
import type { ErrorCode } from '../../kernel/errors.ts';

/** Text of 1 to `max` characters. */
export const Name = (max = 200) => Type.String({ minLength: 1, maxLength: max });
export const slugPattern = '^[a-z0-9][a-z0-9-]{0,62}$';
export const Slug = Type.String({ pattern: slugPattern });
export const Id = Type.String({ format: 'uuid' });
export const Timestamp = Type.String({ format: 'date-time' });
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const Words = <W extends string>(words: readonly W[]) =>
  Type.Unsafe<W>({ type: 'string', enum: [...words] });
/** A limit of the runs of an organization, an agent or an API key. */
export const MaxConcurrency = {
  ...Nullable(Type.Integer({ minimum: 1, maximum: 10_000 })),
  description: 'Runs at a time; null for any number.',
};
export const FreeObject = Type.Record(Type.String(), Type.Unknown());

/**
 * A parameter of a query with a default: clients may leave it out, and the route reads the default then
 * (query.ts). So it is documented as optional and typed as present.
 */
export const Defaulted = <T extends TSchema>(schema: T) => Type.Optional(schema) as unknown as T;
/** A text that narrows a list. */
export const FilterText = (description: string) => Type.String({ maxLength: 200, description });
/** A timestamp in a query; the route reads milliseconds. */
export const Moment = (description: string) =>
  Type.Unsafe<number>({ type: 'string', format: 'date-time', description });

export const Limit = (bounds: { default: number; maximum: number }) =>
  Defaulted(Type.Integer({ minimum: 1, ...bounds, description: 'Entries of a page, at most.' }));
export const Offset = Defaulted(
  Type.Integer({
    ...{ minimum: 0, maximum: 2_147_483_647, default: 0 },
    description: 'Entries before the page.',
  }),
);
export const Page = Type.Object({ limit: Limit({ default: 50, maximum: 200 }), offset: Offset });

/** A page of a list (docs/decisions/json-and-lists.md). */
export const Paged = <T extends TSchema>(item: T, description: string) =>
  Type.Object(
    {
      data: Type.Array(item),
      total: Type.Integer(),
      limit: Type.Integer(),
      offset: Type.Integer(),
    },
    {
      description,
      examples: [{ data: exampleOf(item), total: 1, limit: 50, offset: 0 }],
    },
  );

const exampleOf = (schema: { examples?: unknown }) => schema.examples ?? [];

/** Tokens of one or several model calls; null when the provider reported none. */
export const Tokens = Nullable(Type.Integer());

/** Tokens of models, as the conversation and the job count them. */
const tokenCounts = {
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  total_tokens: Tokens,
};

const Part = (description: string) => Type.Integer({ minimum: 0, description });
/** Parts of the tokens of calls. */
export const tokenParts = {
  cache_read_tokens: Part("Of the prompts' tokens, those that providers read from a cache."),
  cache_write_tokens: Part("Of the prompts' tokens, those that providers wrote to a cache."),
  reasoning_tokens: Part("Of the answers' tokens, those of reasoning."),
};
/** US dollars, exact to nine decimals; null where it is unknown. */
export const Cost = (description: string) => Nullable(Type.Number({ minimum: 0, description }));

/** Tokens of models and what they cost, as the conversation and the job sum them up. */
export const tokenStats = {
  ...tokenCounts,
  ...tokenParts,
  tokens_are_partial: Type.Boolean({
    description: 'Whether providers did not report some tokens, which are missing from the sums.',
  }),
  cost_usd: Cost('US dollars for the reported tokens; null where nothing of it is known.'),
  cost_is_partial: Type.Boolean({
    description: 'Whether some tokens were not reported or have no known price.',
  }),
};
export const noTokenStats = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  tokens_are_partial: false,
  cost_usd: 0,
  cost_is_partial: false,
};
export const TokenStats = Type.Object(tokenStats, { title: 'TokenStats' });
/** The tokens of a job or a conversation, with those of the jobs that it has started. */
export const tokenSums = {
  token_stats: {
    ...TokenStats,
    description: 'Of its own calls of models, without those of the jobs that it has started.',
  },
  nested_token_stats: {
    ...TokenStats,
    description:
      'Of the jobs that it has started, such as those of other agents, and of all below them.',
  },
  total_token_stats: { ...TokenStats, description: 'Of both together.' },
};
export const noTokenSums = {
  token_stats: noTokenStats,
  nested_token_stats: noTokenStats,
  total_token_stats: noTokenStats,
};

/** The path of a skill, as `:category/:version/:skillName`. */
export const SkillPath = Type.Object({
  category: Type.String({ description: 'The category of the skill.', examples: ['util'] }),
  version: Type.String({ description: 'Its version: v<major>.<minor>.', examples: ['v1.0'] }),
  skillName: Type.String({ description: 'Its name, in kebab case.', examples: ['echo'] }),
});

/** A body that has none: `204`. */
export const Nothing = Type.Null({ description: 'Done, without a body.' });

/** Why a schedule or a trigger could start no job, as the API would refuse the same request. */
export const refusalCodes = [
  'invalid_api_key',
  'skill_not_found',
  'insufficient_scope',
  'validation_error',
  'agent_paused',
] as const satisfies readonly ErrorCode[];

/** The parameter `include` of starters (schedules and triggers). */
export const IncludedRefusal = Type.Optional({
  ...Words(['refusal']),
  description: 'refusal: adds the reason why it could start no job now, or null.',
});
/** The additional fields of a starter with `include=refusal`. */
export const optionalRefusal = {
  refusal: Type.Optional(
    Nullable(
      Type.Object({
        code: Words(refusalCodes),
        message: Type.String(),
      }),
    ),
  ),
};
