/** What triggers and their calls look like on the wire (docs/decisions/triggers.md). */
import { type Static, Type } from 'typebox';
import {
  FreeObject,
  Id,
  Name,
  Nullable,
  optionalRefusal,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';
import { debounceMax, debounceTotalMax, jobKeyModes } from '../../core/jobs/job-keys/job-keys.ts';
import { type ErrorCode, errorStatuses } from '../../kernel/errors.ts';
import { priorities } from '../../kernel/priority.ts';
import { eventNamePattern } from '../run-events/bounds.ts';

/** Bytes of a mapping. */
export const mappingMax = 8_192;

const TriggerEvent = Nullable(
  Type.Object(
    {
      name: Type.String({
        pattern: eventNamePattern,
        description: 'The name for which runs wait: letters, digits and . _ - : /, up to 200.',
      }),
      key_mapping: Type.Optional(
        Nullable(
          Type.String({
            minLength: 1,
            maxLength: mappingMax,
            description:
              'JSONata from {body, headers, query} to the key of the event; null: no key.',
          }),
        ),
      ),
    },
    {
      additionalProperties: false,
      description:
        'Calls become this event for runs that wait, with the result of mapping as data, in place ' +
        'of starting a run; the skill is not used then. Needs the scope events.',
    },
  ),
);

const TriggerJobKey = Nullable(
  Type.Object(
    {
      mapping: Type.String({
        minLength: 1,
        maxLength: mappingMax,
        description:
          'JSONata from {body, headers, query} to the key: text of 1 to 255 characters, or a number.',
      }),
      mode: Type.Optional({ ...Words(jobKeyModes), description: 'As x-job-key-mode.' }),
      debounce_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: debounceMax })),
      debounce_max_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: debounceTotalMax })),
    },
    {
      additionalProperties: false,
      description:
        'The key of its jobs, as the header x-job-key of an execution: of calls with one key the latest runs, or the ' +
        'first, or one of them once no other has come for a while. null: each call has a job of its own.',
    },
  ),
);

const rateLimit = {
  minimum: 1,
  maximum: 1_000_000,
  description:
    'Calls per minute: at most 60, or the rate_limit of its key where that is larger. The default is 60, or the ' +
    'rate_limit of the key where that is smaller.',
};

const fields = {
  agent_id: Name(),
  name: Name(),
  skill_category: Name(),
  skill_name: Name(),
  skill_version: Name(),
  input: { ...FreeObject, description: 'Default values for fields that the mapping does not set.' },
  mapping: Nullable(
    Type.String({
      minLength: 1,
      maxLength: mappingMax,
      description: 'JSONata from {body, headers, query} to the input of the skill; null: the body.',
    }),
  ),
  event: TriggerEvent,
  job_key: TriggerJobKey,
  priority: {
    ...Nullable(Words(priorities)),
    description: "That of its jobs; null: its agent's.",
  },
  rate_limit: Type.Integer(rateLimit),
  active: Type.Boolean(),
};
const SigningSecret = Nullable(
  Type.String({
    minLength: 16,
    maxLength: 200,
    description: 'Calls have to be signed with it; null: calls need no signature.',
  }),
);

const shownFields = {
  id: Id,
  ...fields,
  has_signing_secret: Type.Boolean({ description: 'Whether calls have to be signed.' }),
  created_at: Timestamp,
  updated_at: Timestamp,
};
const example = {
  id: '019ab0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1',
  agent_id: 'default',
  name: 'Pushes to the handbook',
  skill_category: 'text',
  skill_name: 'word-count',
  skill_version: 'v1.0',
  input: {},
  mapping: '{"text": body.head_commit.message}',
  event: null,
  job_key: null,
  priority: null,
  rate_limit: 60,
  has_signing_secret: true,
  active: true,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};
export const Trigger = Type.Object(
  { ...shownFields, ...optionalRefusal },
  {
    title: 'AgentTrigger',
    description: 'The trigger.',
    examples: [example],
  },
);
const token = `trg_${'x'.repeat(43)}`;
export const CreatedTrigger = Type.Object(
  {
    ...shownFields,
    token: Type.String({ description: 'Shown only here.' }),
    url: Type.String({ description: 'Where to send calls.' }),
  },
  {
    title: 'CreatedAgentTrigger',
    description: 'The trigger, with the address that it is called at.',
    examples: [
      { ...example, token, url: `https://skills.example.com/api/webhooks/agent/${token}` },
    ],
  },
);
const RateLimit = Nullable(
  Type.Integer({ ...rateLimit, description: `${rateLimit.description} Null sets the default.` }),
);
const optionalFields = {
  skill_version: Type.Optional({ ...fields.skill_version, default: 'v1.0' }),
  input: Type.Optional(fields.input),
  mapping: Type.Optional(fields.mapping),
  event: Type.Optional(fields.event),
  job_key: Type.Optional(fields.job_key),
  priority: Type.Optional(fields.priority),
  rate_limit: Type.Optional(RateLimit),
  signing_secret: Type.Optional(SigningSecret),
  active: Type.Optional({ ...fields.active, default: true }),
};
export const NewTrigger = Type.Object(
  {
    agent_id: fields.agent_id,
    name: fields.name,
    skill_category: Type.Optional({ ...fields.skill_category, default: 'agent' }),
    skill_name: Type.Optional({ ...fields.skill_name, default: 'handle-event' }),
    ...optionalFields,
  },
  {
    title: 'NewAgentTrigger',
    additionalProperties: false,
    examples: [
      {
        agent_id: 'default',
        name: 'Pushes to the handbook',
        skill_category: 'text',
        skill_name: 'word-count',
        mapping: '{"text": body.head_commit.message}',
      },
    ],
  },
);
export type NewTrigger = Static<typeof NewTrigger>;

export const TriggerChanges = Type.Object(
  {
    ...Type.Partial(Type.Object(fields)).properties,
    rate_limit: Type.Optional(RateLimit),
    signing_secret: Type.Optional(SigningSecret),
  },
  {
    title: 'AgentTriggerChanges',
    additionalProperties: false,
    examples: [{ active: false }],
  },
);
export type TriggerChanges = Static<typeof TriggerChanges>;

export const TriggerCall = Type.Object(
  {
    id: Id,
    received_at: Timestamp,
    status: Type.Integer({ description: 'HTTP status of the response.' }),
    error: Nullable(Words(Object.keys(errorStatuses) as ErrorCode[])),
    message: Nullable(
      Type.String({
        description: 'Why it was refused; for some 404 the reason that the sender does not get.',
      }),
    ),
    job_id: Nullable(Id),
    event_id: { ...Nullable(Id), description: 'The event that the call became.' },
    duration_ms: Type.Integer(),
    body_bytes: Nullable(
      Type.Integer({ description: 'null if it was refused before its body was read.' }),
    ),
    replayed: Type.Boolean({
      description: 'Whether it was answered with the job or the event of an earlier call.',
    }),
  },
  {
    title: 'AgentTriggerCall',
    examples: [
      {
        id: '019ab0c1-2d3e-7f42-8b1c-5d6e7f8a9b0c',
        received_at: '2026-01-01T00:00:00.000Z',
        status: 401,
        error: 'invalid_signature',
        message: 'The request is not signed',
        job_id: null,
        event_id: null,
        duration_ms: 2,
        body_bytes: 1_204,
        replayed: false,
      },
    ],
  },
);
