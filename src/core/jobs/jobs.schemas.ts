/** The wire format of jobs (docs/decisions/jobs.md). */
import { Type } from 'typebox';
import { jobStatuses, triggerTypes } from '../../adapters/database/tables.ts';
import {
  FreeObject,
  Id,
  Nullable,
  noTokenSums,
  Timestamp,
  tokenSums,
  Words,
} from '../../adapters/http/schemas.ts';
import { runErrorCodes } from '../../kernel/errors.ts';
import { priorities } from '../../kernel/priority.ts';
import { queueNames } from '../../kernel/queues.ts';
import { AgentOverrides } from '../agents/agents.schemas.ts';
import { cancelledError } from './states.ts';

export const JobStatus = Words(jobStatuses);
export const TriggerType = Words(triggerTypes);

const listed = {
  job_id: Id,
  status: JobStatus,
  conversation_id: Id,
  agent_id: Type.String(),
  skill_category: Type.String(),
  skill_name: Type.String(),
  skill_version: Type.String(),
  created_at: Timestamp,
};
const listedExample = {
  job_id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
  status: 'queued',
  conversation_id: '01990a5e-7c1b-7001-9a2f-4b8d6c0e1f23',
  agent_id: 'default',
  skill_category: 'util',
  skill_name: 'echo',
  skill_version: 'v1.0',
  created_at: '2026-01-01T00:00:00.000Z',
};

export const ListedJob = Type.Object(listed, {
  title: 'ListedJob',
  description: 'The accepted job.',
  examples: [listedExample],
});

const parent = {
  parent_job_id: {
    ...Nullable(Id),
    description:
      'The job whose run started this one, also once that job is deleted; null for other jobs.',
  },
};

export const JobError = Type.Object({ code: Words(runErrorCodes), message: Type.String() });

/** The input of `agent/v1.0/run-task`, whose own schema checks it. */
export const NewTask = Type.Object(
  {
    task: Type.String({ maxLength: 65_536, description: 'What the agent is to do.' }),
    files: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 2_048 }), {
        maxItems: 20,
        description: 'What the task is about: ids of files, or urls.',
      }),
    ),
    schema: Type.Optional({
      ...FreeObject,
      description: 'A JSON Schema of the data that the answer is to be.',
    }),
    max_turns: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'Most calls of the model.' }),
    ),
    timeout_ms: Type.Optional(
      Type.Integer({ minimum: 1_000, maximum: 86_400_000, description: 'Time of one attempt.' }),
    ),
  },
  {
    title: 'NewTask',
    additionalProperties: false,
    examples: [{ task: 'When is the harbour open?' }],
  },
);

export const NewTrial = Type.Object(
  {
    agent: AgentOverrides,
    input: Type.Unknown({ description: 'The input of agent/v1.0/run-task.' }),
  },
  {
    title: 'NewTrial',
    additionalProperties: false,
    examples: [
      {
        agent: { instructions: 'Answer in one sentence.' },
        input: { task: 'When is the harbour open?' },
      },
    ],
  },
);

export const JobChanges = Type.Object(
  {
    run_at: Type.Optional({
      ...Nullable(Timestamp),
      description:
        'When the job may begin: in the future, within 365 days, before it expires. null: as soon as it can.',
    }),
    priority: Type.Optional({
      ...Words(priorities),
      description: 'Its place in the order of the jobs of the organization.',
    }),
  },
  {
    title: 'JobChanges',
    additionalProperties: false,
    examples: [{ run_at: '2027-01-01T00:00:00Z' }],
  },
);

/** How a job went, or has gone so far. */
const timing = {
  error: Nullable(JobError),
  attempt: Type.Integer(),
  max_attempts: Type.Integer(),
  trigger_type: TriggerType,
  user_id: Type.String(),
  run_at: {
    ...Timestamp,
    description: 'When its next attempt may begin; once it has begun, when its last one might.',
  },
  expires_at: {
    ...Nullable(Timestamp),
    description:
      'If it has not begun by then, it ends as cancelled with the code expired; null for a job that does not expire.',
  },
  started_at: Nullable(Timestamp),
  finished_at: Nullable(Timestamp),
  duration_ms: {
    ...Nullable(Type.Integer()),
    description: 'From started_at to finished_at, the time of waits included.',
  },
  is_trial: Type.Boolean({
    description: 'Whether it has fields of its own instead of those that are saved with its agent.',
  }),
};
const timingExample = {
  error: null,
  attempt: 1,
  max_attempts: 3,
  trigger_type: 'api',
  user_id: 'nightly reports',
  run_at: '2026-01-01T00:00:00.000Z',
  expires_at: null,
  started_at: '2026-01-01T00:00:00.001Z',
  finished_at: '2026-01-01T00:00:00.003Z',
  duration_ms: 2,
  is_trial: false,
};

/** A job in the list of jobs. */
export const JobListItem = Type.Object(
  { ...listed, ...parent, ...Type.Partial(Type.Object(timing)).properties },
  {
    title: 'JobListItem',
    description: 'The fields after parent_job_id are present with include=timing.',
    examples: [{ ...listedExample, parent_job_id: null }],
  },
);

const completedJob = {
  ...listedExample,
  parent_job_id: null,
  status: 'completed',
  input: { text: 'hello' },
  output: { text: 'hello' },
  ...timingExample,
  queue: 'skill-execution',
  priority: 'normal',
  retry_of: null,
  is_resumed: false,
  batch_id: null,
  waiting_for: null,
  job_key: null,
  replaced_by: null,
  delivered_to: null,
  agent_overrides: null,
  instruction_values: null,
  agent_version: null,
  progress: null,
  erased_at: null,
  ...noTokenSums,
};

/** Example of a job that is under way. */
export const activeJob = {
  ...completedJob,
  status: 'active',
  output: null,
  finished_at: null,
  duration_ms: null,
};

/** Example of a job that was cancelled. */
export const cancelledJob = {
  ...completedJob,
  status: 'cancelled',
  output: null,
  error: cancelledError,
};

export const FullJob = Type.Object(
  {
    ...listed,
    ...parent,
    input: Type.Unknown(),
    output: Type.Unknown({ description: 'null until the job has completed.' }),
    ...timing,
    queue: Words(queueNames),
    priority: Words(priorities),
    retry_of: Nullable(Id),
    is_resumed: Type.Boolean({
      description: 'Whether it goes on from what the job of retry_of has recorded.',
    }),
    batch_id: {
      ...Nullable(Id),
      description: 'The batch with which it was accepted; null for other jobs.',
    },
    waiting_for: {
      ...Nullable(Type.String()),
      description:
        'The limit that it waits for, such as "concurrency of web/v1.0/http-request", the provider of models, such as "openai: rate limit, next try at 2026-01-01T00:05:00.000Z", or what its run waits for, such as "a decision of a person (step ship), until 2026-01-08T00:00:00.000Z", an event, a time or a job that it has started; null for a job that waits for none.',
    },
    job_key: {
      ...Nullable(Type.String()),
      description: 'The x-job-key with which it was accepted; null for other jobs.',
    },
    replaced_by: {
      ...Nullable(Id),
      description: 'Of a job that ended with the code replaced: the later job of its key.',
    },
    delivered_to: {
      ...Nullable(Id),
      description:
        'Of a job that was accepted with x-conversation-mode: steer: the job whose run has taken its message. It waits for the end of that job, and ends as it does, with its output or its error. null for other jobs, and as long as none has taken it.',
    },
    agent_overrides: {
      ...Nullable(AgentOverrides),
      description:
        'The fields that this job has instead of those that are saved with its agent; null for ' +
        'the agent as it is saved.',
    },
    instruction_values: {
      ...Nullable(Type.Record(Type.String(), Type.String())),
      description:
        "What the names in double braces in the agent's instructions stand for in this job; null for none.",
    },
    agent_version: {
      ...Nullable(Type.Integer()),
      description:
        'The version of the agent at the last request of the job to a model; null where it has asked none.',
    },
    progress: Nullable(Type.Object({ fraction: Type.Number(), note: Nullable(Type.String()) })),
    erased_at: {
      ...Nullable(Timestamp),
      description:
        'When its input, output and record were erased on behalf of its user; else null.',
    },
    ...tokenSums,
    scheduled_job_id: Type.Optional({
      ...Nullable(Id),
      description: 'With include=origin: the scheduled job that started it, until that is deleted.',
    }),
    trigger_id: Type.Optional({
      ...Nullable(Id),
      description:
        'With include=origin: the trigger whose call started it, as long as that call ' +
        'is kept.',
    }),
  },
  {
    title: 'Job',
    description: 'The job.',
    examples: [completedJob],
  },
);
