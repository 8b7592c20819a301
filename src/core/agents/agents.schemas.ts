/** What agents look like on the wire (docs/decisions/agents.md). */
import { type TSchema, Type } from 'typebox';
import {
  FreeObject,
  MaxConcurrency,
  Name,
  Nullable,
  Slug,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';
import { efforts } from '../../adapters/models/model.ts';
import { longTextMax } from '../../kernel/long-text.ts';
import { priorities } from '../../kernel/priority.ts';
import { guardFailures, guardStages, guardsMax } from './guards.ts';
import { variableCharactersMax, variablesMax } from './instruction-values.ts';
import { profileBytes, settingBounds } from './setting-bounds.ts';
import {
  conditionCharactersMax,
  messageCharactersMax,
  ruleOutcomes,
  rulesMax,
} from './tool-rules.ts';

const pattern = '^(\\*|[a-z0-9][a-z0-9-]*)(/(\\*|v[0-9]+\\.[0-9]+)(/(\\*|[a-z0-9][a-z0-9-]*))?)?$';

/** Also one agent, as the one that gets a task. */
const rulePattern = `${pattern}|^agent/[a-z0-9][a-z0-9-]{0,62}$`;

/** Patterns of skills: `*`, `web/*`, `text/v1.0`, `text/v1.0/summarize` (docs/decisions/agents.md). */
const Patterns = (description: string) =>
  Type.Array(Type.String({ pattern, maxLength: 200 }), {
    maxItems: 200,
    uniqueItems: true,
    description,
  });

const ModelName = Type.String({
  pattern: '^[^/\\s]+/\\S+$',
  maxLength: 200,
  description: 'provider/model',
});

const {
  max_output_tokens,
  temperature,
  timeout_ms,
  first_byte_timeout_ms,
  wait_for_provider,
  context_tokens,
} = settingBounds;

/** A setting of an agent's model; null leaves it to the platform or the provider, as if it were left out. */
const Setting = <T extends TSchema>(schema: T, description: string) =>
  Type.Optional({ ...Nullable(schema), description });

const ModelSettings = Type.Object(
  {
    max_output_tokens: Setting(
      Type.Integer(max_output_tokens),
      'Most tokens of one answer, at most half of the context. MODEL_OUTPUT_TOKENS by default.',
    ),
    temperature: Setting(
      Type.Number(temperature),
      'Refused for models that are known to take none.',
    ),
    effort: Setting(
      Words(efforts),
      'How much the model reasons. Refused for models that are known not to take it.',
    ),
    timeout_ms: Setting(
      Type.Integer(timeout_ms),
      'Longest time of one call of the model, to the end of its answer.',
    ),
    first_byte_timeout_ms: Setting(
      Type.Integer(first_byte_timeout_ms),
      'Longest time of one call of the model, to the first byte of its answer.',
    ),
    wait_for_provider: Setting(
      Type.Integer(wait_for_provider),
      'Seconds for which a turn waits for a provider that limits the rate or is unavailable, without a slot; 3,600 by default. With 0 the attempt fails, and the job is retried.',
    ),
    context_tokens: Setting(
      Type.Integer(context_tokens),
      'The window that the dialogue is trimmed to. MODEL_CONTEXT_TOKENS by default.',
    ),
  },
  { additionalProperties: false, title: 'ModelSettings', examples: [{ temperature: 0.2 }] },
);

/** Texts by the names that instructions have in double braces. */
const Variables = Type.Record(Type.String(), Type.String({ maxLength: variableCharactersMax }), {
  maxProperties: variablesMax,
  description:
    'Texts that instructions name in double braces, such as {{company}}; up to 16 KiB. time_zone sets the time zone of {{date}}, UTC without it.',
  examples: [{ company: 'Harbour Ltd', time_zone: 'Europe/Berlin' }],
});

const ToolRule = Type.Object(
  {
    tools: Type.String({
      pattern: rulePattern,
      maxLength: 200,
      description: 'A pattern of skills: shop/*; or agent/<id> for the tasks that this agent gets.',
    }),
    when: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: conditionCharactersMax,
        description:
          'JSONata over {arguments, user, calls, spent}; the rule decides where it is true. Left out, it decides about every call.',
      }),
    ),
    then: {
      ...Words(ruleOutcomes),
      description:
        'ask: a person has to approve the call. refuse: it is not made. allow: it is made.',
    },
    message: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: messageCharactersMax,
        description: 'For the person who is asked, or for the model whose call is refused.',
      }),
    ),
  },
  { additionalProperties: false, title: 'ToolRule' },
);

const Guard = Type.Object(
  {
    skill: Type.String({
      pattern: '^[a-z0-9][a-z0-9-]*/v[0-9]+\\.[0-9]+/[a-z0-9][a-z0-9-]*$',
      maxLength: 200,
      description: 'A skill that takes a text and gives an action: pass, replace or refuse.',
    }),
    on: Type.Array(Words(guardStages), {
      minItems: 1,
      maxItems: guardStages.length,
      uniqueItems: true,
      description:
        'message: what the user says, before the model is asked. tool_result: what a tool gives, before the model has it. answer: what the model says, before a user or client has it.',
    }),
    input: Type.Optional({
      ...FreeObject,
      description: "Further fields of the skill's input, such as kinds or policy.",
    }),
    on_failure: Type.Optional({
      ...Words(guardFailures),
      description:
        'What becomes of the text when the guard fails or takes too long: refuse, the default, ends the attempt with guard_failed.',
    }),
  },
  { additionalProperties: false, title: 'Guard' },
);

/** What decides how an agent works: each change of these makes a version. */
const versioned = {
  instructions: Type.String({
    maxLength: longTextMax,
    description:
      'The system prompt. {{date}}, {{time_zone}}, {{user.id}}, {{user.name}}, {{agent.name}} and the names of variables in double braces are filled at the first call of the model.',
  }),
  variables: Variables,
  model: Nullable(ModelName),
  model_settings: {
    ...Nullable(ModelSettings),
    description: 'How the model is called, as a whole; null when nothing is set.',
  },
  fallback_models: Type.Array(ModelName, {
    maxItems: 5,
    uniqueItems: true,
    description:
      'Models that are asked in this order when the provider of the model is unavailable or limits the rate.',
  }),
  skills: Patterns('Skills that the agent may call as tools: web/* or text/v1.0/summarize.'),
  approvals: Patterns(
    'Skills whose call as a tool waits for a person who approves it: web/v1.0/http-request.',
  ),
  tool_rules: Type.Array(ToolRule, {
    maxItems: rulesMax,
    description:
      'Rules about the calls of its tools: of those whose tools match, the first one whose condition is true decides; without one approvals does.',
    examples: [[{ tools: 'shop/*', when: 'arguments.amount > 100', then: 'ask' }]],
  }),
  guards: Type.Array(Guard, {
    maxItems: guardsMax,
    description:
      'Skills that see texts first and let them pass, replace or refuse them, in this order; each sees what the one before it has made of the text.',
    examples: [[{ skill: 'safety/v1.0/redact-personal-data', on: ['message', 'tool_result'] }]],
  }),
  agents: Type.Array(Slug, {
    maxItems: 50,
    uniqueItems: true,
    description:
      'Ids of agents that it may give tasks to as tools. None of them may lead back to the agent.',
  }),
  memory: {
    ...Words(['read_write', 'user', 'read', 'off']),
    description:
      'What its runs may do with its memory. user, the default of new agents: its model writes and forgets memories of the user of the run alone, and only reads in a run without a user; code of skills writes all. read_write: its model changes the memories of all users too.',
  },
  recall: {
    ...Nullable(
      Type.Object(
        { limit: Type.Integer({ minimum: 1, maximum: 20 }) },
        { additionalProperties: false },
      ),
    ),
    description:
      'How many memories, the best for the task, come into the prompt by themselves; null for none.',
  },
  memory_formation: {
    ...Nullable(
      Type.Object(
        {
          quiet_seconds: Type.Integer({
            minimum: 0,
            maximum: 86_400,
            description: 'For how long no run of the conversation may have ended.',
          }),
          model: Type.Optional({
            ...Nullable(ModelName),
            description: "The model that forms them; null for the agent's own.",
          }),
          max_memories: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 50,
              description: 'Memories that one job adds or replaces, at most; 10 by default.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
    ),
    description:
      'Forms memories once a conversation has been quiet, within memory: a job of agent/v1.0/form-memories. null: none are formed.',
  },
  profile: {
    ...Nullable(
      Type.Object({ max_bytes: Type.Integer(profileBytes) }, { additionalProperties: false }),
    ),
    description:
      'Lets its model keep a profile of each user with its tool update_profile, of at most so many bytes (4,096 is usual), where memory lets it write. null: only clients and the code of skills write profiles. A profile is in the prompt either way.',
  },
};
export type VersionedField = keyof typeof versioned;
export const versionedFields = Object.keys(versioned) as VersionedField[];
export const VersionedFields = Type.Object(versioned, { title: 'VersionedFields' });

const fields = {
  name: Name(),
  description: Type.String({ maxLength: longTextMax }),
  status: Words(['active', 'paused']),
  ...versioned,
  priority: {
    ...Nullable(Words(priorities)),
    description:
      'That of its jobs, where neither the request (x-priority) nor the schedule or trigger that starts them has one; null: normal.',
  },
  max_concurrency: MaxConcurrency,
  keep_prompts: Type.Boolean({
    description:
      'Whether what its model is sent is kept and can be read at the steps of its jobs, where the organization allows it.',
  }),
  metadata: FreeObject,
};

const AgentVersionNumber = Type.Integer({
  description:
    'The number of the present version: each change of what decides how it works counts.',
});

const example = {
  id: 'support',
  name: 'Support',
  description: 'Answers customers.',
  status: 'active',
  instructions: '',
  variables: {},
  model: null,
  model_settings: { max_output_tokens: 8_000, effort: 'low' },
  fallback_models: ['anthropic/claude-sonnet-4-5'],
  skills: ['web/*', 'text/v1.0/word-count'],
  approvals: ['web/v1.0/http-request'],
  tool_rules: [{ tools: 'shop/*', when: 'arguments.amount > 100', then: 'ask' }],
  guards: [{ skill: 'safety/v1.0/redact-personal-data', on: ['message', 'tool_result'] }],
  agents: ['researcher'],
  metadata: {},
  memory: 'user',
  recall: { limit: 5 },
  profile: { max_bytes: 4_096 },
  memory_formation: { quiet_seconds: 300 },
  priority: null,
  max_concurrency: null,
  keep_prompts: false,
  version: 1,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

export const Agent = Type.Object(
  {
    id: Slug,
    ...fields,
    version: AgentVersionNumber,
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Agent', description: 'The agent.', examples: [example] },
);

/** An agent as the answer to its creation or change. */
export const SavedAgent = Type.Object(
  {
    ...Agent.properties,
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'What is likely a mistake in the instructions, such as a name in double braces that has no value; absent without any.',
      }),
    ),
  },
  { title: 'SavedAgent', description: 'The agent.', examples: [example] },
);

/** An agent as one client reads it. */
export const ShownAgent = Type.Object(
  {
    ...Agent.properties,
    missing_scopes: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'With include=missing_scopes: the scopes that this key lacks to change the agent.',
      }),
    ),
  },
  { title: 'ShownAgent', description: 'The agent.', examples: [example] },
);

/** The fields of an agent that a trial may override. */
export const AgentOverrides = Type.Partial(
  Type.Object({
    instructions: fields.instructions,
    variables: fields.variables,
    model: fields.model,
    model_settings: fields.model_settings,
    fallback_models: fields.fallback_models,
    tool_rules: fields.tool_rules,
    guards: fields.guards,
  }),
  {
    title: 'AgentOverrides',
    additionalProperties: false,
    minProperties: 1,
    examples: [{ instructions: 'Answer in one sentence.' }],
  },
);

const optionalFields = Type.Partial(Type.Object(fields)).properties;

export const NewAgent = Type.Object(
  { id: Type.Optional(Slug), ...optionalFields },
  {
    title: 'NewAgent',
    additionalProperties: false,
    examples: [{ id: 'support', name: 'Support' }],
  },
);

export const AgentChanges = Type.Object(optionalFields, {
  title: 'AgentChanges',
  additionalProperties: false,
  examples: [{ status: 'paused' }],
});
