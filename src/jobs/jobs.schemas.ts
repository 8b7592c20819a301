/** What jobs look like on the wire (docs/decisions/jobs.md). */
import { Type } from 'typebox';
import { AgentOverrides } from '../agents/agents.schemas.ts';
import {
  approvalStatuses,
  jobStatuses,
  stepStatuses,
  triggerTypes,
  waitKinds,
} from '../database/tables.ts';
import {
  Cost,
  Id,
  Nullable,
  noTokenStats,
  Timestamp,
  TokenStats,
  Tokens,
  Words,
} from '../http/schemas.ts';
import { runErrorCodes } from '../kernel/errors.ts';
import { queueNames } from '../kernel/queues.ts';
import { cancelledError } from './states.ts';

export const JobStatus = Words(jobStatuses);
export const TriggerType = Words(triggerTypes);
export const StepStatus = Words(stepStatuses);

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

/** How a job went, or has gone so far. */
const timing = {
  error: Nullable(JobError),
  attempt: Type.Integer(),
  max_attempts: Type.Integer(),
  trigger_type: TriggerType,
  user_id: Type.String(),
  run_at: Timestamp,
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
  retry_of: null,
  agent_overrides: null,
  agent_version: null,
  progress: null,
  erased_at: null,
  token_stats: noTokenStats,
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
    retry_of: Nullable(Id),
    agent_overrides: {
      ...Nullable(AgentOverrides),
      description:
        'The fields that this job has instead of those that are saved with its agent; null for ' +
        'the agent as it is saved.',
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
    token_stats: TokenStats,
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

const stepExample = {
  step: 2,
  parent_step_id: 1,
  generation_id: 'Zk3v0cXlq8m1T5yWb2dR7A',
  kind: 'tool',
  name: 'text/v1.0/word-count',
  turn: 1,
  status: 'completed',
  error: null,
  message_id: '01990a5e-7c1b-7002-8f1e-0c5a7e9b2d13',
  prompt_tokens: null,
  completion_tokens: null,
  cache_read_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  estimated_tokens: 0,
  cost_usd: null,
  estimated_cost_usd: 0,
  price: null,
  waits_for: null,
  due_at: null,
  started_at: '2026-01-01T00:00:01.000Z',
  finished_at: '2026-01-01T00:00:01.004Z',
  duration_ms: 4,
};

const Rate = Type.Number({ description: 'US dollars for a million tokens.' });
const StepPrice = Type.Object(
  {
    from: Type.String({ format: 'date', description: 'The first day of the price.' }),
    source: Words(['built-in', 'operator']),
    input: Rate,
    cache_read: Rate,
    cache_write: Rate,
    output: Rate,
    reasoning: Rate,
  },
  { title: 'ModelPrice' },
);

const WaitedFor = Type.Object(
  {
    event: Type.Optional(Type.String()),
    key: Type.Optional({
      ...Nullable(Type.String()),
      description: 'Null where the run waits for the event without a key.',
    }),
    approval_id: Type.Optional(Id),
    job_id: Type.Optional({ ...Id, description: 'The job that the step started.' }),
    agent_id: Type.Optional(Type.String({ description: 'The agent of that job.' })),
    skill: Type.Optional(Type.String({ description: 'Of that job: category/version/name.' })),
    token_stats: Type.Optional({
      ...TokenStats,
      description: 'The tokens of that job, which are no part of those of this one.',
    }),
    status: Type.Optional({
      ...Words([...approvalStatuses, ...jobStatuses.filter((status) => status !== 'cancelled')]),
      description: 'Of the approval, or of the job.',
    }),
  },
  { title: 'WaitedFor', examples: [{ event: 'order.paid', key: '4711' }] },
);

/**
 * One thing that a job did: a call of a model, a tool that the model called, a skill that its code called, a named
 * step of its code, or a wait.
 */
export const JobStep = Type.Object(
  {
    step: Type.Integer({ description: 'Counts from 1 inside the job.' }),
    parent_step_id: Nullable(
      Type.Integer({
        description:
          'The step that caused this one: for a tool the call of the model, for an action ' +
          "of a tool or called skill its step. Null for an action of the job's own skill.",
      }),
    ),
    generation_id: Nullable(
      Type.String({
        description: 'The same for all turns and tools of one request to a model.',
      }),
    ),
    kind: Words(['model', 'summary', 'tool', 'generate', 'skill', 'step', ...waitKinds]),
    name: Type.String({
      description:
        'The model, the skill, or the tool of the agent itself; the name that the code gave ' +
        'a step or a wait.',
    }),
    turn: Type.Integer({
      description:
        'For a tool the turn of the model call that requested it; for what code takes its ' +
        'number among equal names.',
    }),
    status: StepStatus,
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String() })),
    message_id: Nullable(Id),
    prompt_tokens: Tokens,
    completion_tokens: Tokens,
    cache_read_tokens: Tokens,
    cache_write_tokens: Tokens,
    reasoning_tokens: Tokens,
    estimated_tokens: Type.Integer({
      description: 'Charged to budgets in place of tokens that the provider did not report.',
    }),
    cost_usd: Cost('US dollars for the reported tokens; null where it is unknown, and for a tool.'),
    estimated_cost_usd: Type.Number({ description: 'US dollars for the estimated tokens.' }),
    price: {
      ...Nullable(StepPrice),
      description: 'The price when the call began; null where it is unknown, and for a tool.',
    },
    waits_for: {
      ...Nullable(WaitedFor),
      description:
        'What ends a wait: an event, as long as the run waits for it; an approval; a job. ' +
        'Null for a sleep and for what is no wait.',
    },
    due_at: {
      ...Nullable(Timestamp),
      description: 'When a wait ends by itself; null for what is no wait.',
    },
    started_at: Timestamp,
    finished_at: Nullable(Timestamp),
    duration_ms: Nullable(Type.Integer()),
  },
  { title: 'JobStep', examples: [stepExample] },
);
