/** The wire format of the steps of a job. */
import { Type } from 'typebox';
import {
  approvalStatuses,
  jobStatuses,
  stepStatuses,
  waitKinds,
} from '../../adapters/database/tables.ts';
import {
  Cost,
  Id,
  Nullable,
  Timestamp,
  TokenStats,
  Tokens,
  Words,
} from '../../adapters/http/schemas.ts';
import { guardActions, guardStages } from '../agents/guards.ts';
import { ruleOutcomes } from '../agents/tool-rules.ts';
import { PromptStateWord, promptStateWords } from './prompts/prompts.schemas.ts';

export const StepStatus = Words(stepStatuses);

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
  rule: null,
  guard: null,
  files: null,
  waits_for: null,
  prompt: null,
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
    long_prompts: Type.Optional(
      Type.Object(
        {
          over: Type.Integer({ description: 'Tokens of the prompt.' }),
          ...{ input: Rate, cache_read: Rate, cache_write: Rate, output: Rate, reasoning: Rate },
        },
        { description: 'The rates for all tokens of a call whose prompt is longer.' },
      ),
    ),
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
      description: 'The tokens of that job, which are no part of the token_stats of this one.',
    }),
    total_token_stats: Type.Optional({
      ...TokenStats,
      description: 'The same with those of the jobs below it.',
    }),
    status: Type.Optional({
      ...Words([...approvalStatuses, ...jobStatuses.filter((status) => status !== 'cancelled')]),
      description: 'Of the approval, or of the job.',
    }),
  },
  { title: 'WaitedFor', examples: [{ event: 'order.paid', key: '4711' }] },
);

const StepFile = Type.Object(
  {
    id: { ...Nullable(Id), description: 'Null of a url whose file is gone.' },
    name: Type.String(),
    as: {
      ...Words(['file', 'text', 'note']),
      description: 'As it is, as its text, or as a line that says why it is neither.',
    },
    reason: {
      ...Nullable(Type.String()),
      description: 'What that line says, or that only the beginning of a text was sent; else null.',
    },
  },
  { title: 'GivenFile' },
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
    kind: Words(['model', 'summary', 'tool', 'guard', 'generate', 'skill', 'step', ...waitKinds]),
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
    rule: {
      ...Nullable(
        Type.Object({
          number: Nullable(Type.Integer()),
          then: Words(ruleOutcomes),
          message: Nullable(Type.String()),
        }),
      ),
      description:
        'Of a tool: what the tool_rules of the agent decided about the call, and which of them, from 1; null where none concerns the tool. A number of null is approvals alone.',
    },
    guard: {
      ...Nullable(
        Type.Object({
          on: Words(guardStages),
          tool: Nullable(Type.String({ description: 'The tool whose result the text is.' })),
          action: {
            ...Nullable(Words(guardActions)),
            description: 'null where the guard failed; pass where its agent lets texts pass then.',
          },
          reason: Nullable(Type.String()),
        }),
      ),
      description: 'Of a guard: which text it judged, and what it decided; null while it has not.',
    },
    files: {
      ...Nullable(Type.Array(StepFile)),
      description:
        'Of a call of a model: how it gave the model the files of its messages, the last 40; null without any.',
    },
    waits_for: {
      ...Nullable(WaitedFor),
      description:
        'What ends a wait: an event, as long as the run waits for it; an approval; a job. ' +
        'Null for a sleep and for what is no wait.',
    },
    prompt: {
      ...Nullable(PromptStateWord),
      description: `Whether what the model was sent can be read at /prompt of the step; null where none was called. ${promptStateWords}`,
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
