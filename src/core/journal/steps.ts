/** The steps of jobs, as clients read them, and their deletion together with jobs. */

import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import type { ApprovalStatus, JobStatus, StepKind } from '../../adapters/database/tables.ts';
import type { GivenFile } from '../../adapters/models/model.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { usdOf, usdOrNull } from '../../kernel/money.ts';
import type { GuardVerdict } from '../agents/guards.ts';
import type { RuleDecision } from '../agents/tool-rules.ts';
import {
  type CountedTokens,
  type TokenStats,
  tokenStats,
  tokensBelow,
} from '../conversations/conversations.ts';
import { deletePrompts, listStates } from './prompts/prompts.store.ts';
import { type ShownPromptState, stateWithout } from './prompts/read-prompts.ts';
import { deleteSteps, type ListedStep, listSteps, type StepsPage } from './step-queries.ts';
import { type StepError, thoughtKinds } from './step-rows.ts';
import { listApprovalsOfSteps, listEventsWaitedFor, listJobsOfSteps } from './waited-for.store.ts';

/** What ends a wait before its time. */
interface WaitedFor {
  readonly event?: string;
  /** Null where the run waits for an event without a key. */
  readonly key?: string | null;
  readonly approval_id?: string;
  readonly job_id?: string;
  /** Of the job: `category/version/name`. */
  readonly skill?: string;
  readonly agent_id?: string;
  readonly token_stats?: TokenStats;
  /** With the tokens of the jobs below it. */
  readonly total_token_stats?: TokenStats;
  /** Of the approval or of the job. */
  readonly status?: ApprovalStatus | JobStatus;
}

/** Dollars for a million tokens of a model, as the step of its call recorded them. */
interface StepPrice {
  readonly from: string;
  readonly source: 'built-in' | 'operator';
  readonly input: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly output: number;
  readonly reasoning: number;
  readonly long_prompts?: Omit<StepPrice, 'from' | 'source' | 'long_prompts'> & {
    readonly over: number;
  };
}

/** A page of a job's steps, in order. */
export async function stepsOfJob(database: Database, jobId: string, page: StepsPage) {
  const { steps, total } = await listSteps(database.read, jobId, page);
  const waits = await waitedForBy(database.read, jobId, steps);
  const prompts = await promptsOf(database.read, jobId, steps);
  const bodyOf = (row: ListedStep) =>
    stepBody(row, waits.get(row.n) ?? null, prompts.get(row.n) ?? null);
  return { steps: steps.map(bodyOf), total };
}

/** Deletes the steps of jobs, with what their models were sent. */
export async function removeSteps(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  await deletePrompts(tx, jobIds);
  await deleteSteps(tx, jobIds);
}

/** What is kept of the prompts of the calls of models, by their steps. */
async function promptsOf(
  db: Handle,
  jobId: string,
  steps: readonly ListedStep[],
): Promise<Map<number, ShownPromptState>> {
  const calls = steps.filter(({ kind }) => kind === 'model');
  const [first, last] = [calls[0], calls.at(-1)];
  if (first === undefined || last === undefined) return new Map();
  const kept = await listStates(db, { job_id: jobId, first: first.n, last: last.n });
  return new Map<number, ShownPromptState>([
    ...calls.map((step) => [step.n, stateWithout(step)] as const),
    ...kept.map(({ n, state }) => [n, state] as const),
  ]);
}

/** What waits wait for, by the numbers of their steps. Most pages have none, and then nothing is read. */
async function waitedForBy(db: Handle, jobId: string, steps: readonly ListedStep[]) {
  const numbersOf = (requested: StepKind) =>
    steps.filter(({ kind }) => kind === requested).map(({ n }) => n);
  const approvals = numbersOf('approval');
  const runs = numbersOf('run');
  const isWaiting = steps.some(({ kind, status }) => kind === 'event' && status === 'waiting');
  const [events, questions, started] = await Promise.all([
    isWaiting ? listEventsWaitedFor(db, jobId) : [],
    approvals.length > 0 ? listApprovalsOfSteps(db, jobId, approvals) : [],
    runs.length > 0 ? listJobsOfSteps(db, jobId, runs) : [],
  ]);
  const below = await tokensBelow(
    db,
    started.map(({ id }) => id),
  );
  return new Map<number, WaitedFor>([
    ...events.map(({ n, event, key }) => [n, { event, key: key === '' ? null : key }] as const),
    ...questions.map(({ n, id, status }) => [n, { approval_id: id, status }] as const),
    ...started.map(({ n, id, agent_id, status, ...job }) => {
      const skill = [job.skill_category, job.skill_version, job.skill_name].join('/');
      const own = countsOf(job);
      const nested = below.get(id);
      const token_stats = tokenStats([own]);
      const total_token_stats = tokenStats(nested === undefined ? [own] : [own, nested]);
      const sums = { token_stats, total_token_stats };
      return [n, { job_id: id, agent_id, skill, status, ...sums }] as const;
    }),
  ]);
}

/** PostgreSQL sums to text. */
function countsOf(job: CountedTokens): CountedTokens {
  return {
    prompt_tokens: Number(job.prompt_tokens),
    completion_tokens: Number(job.completion_tokens),
    unreported: Number(job.unreported),
    cache_read_tokens: Number(job.cache_read_tokens),
    cache_write_tokens: Number(job.cache_write_tokens),
    reasoning_tokens: Number(job.reasoning_tokens),
    cost: Number(job.cost),
    unpriced: Number(job.unpriced),
  };
}

function ruleBody({ rule, then, message }: RuleDecision) {
  return { number: rule, then, message };
}

function stepBody(row: ListedStep, waitsFor: WaitedFor | null, prompt: ShownPromptState | null) {
  const { n, parent, generation, error, due_at, started_at, finished_at, ...more } = row;
  const { estimated, cost, estimated_cost, price, rule, guard, files, ...rest } = more;
  const { attempt: _, ...listed } = rest;
  const isThought = thoughtKinds.has(row.kind);
  return {
    step: n,
    parent_step_id: parent,
    generation_id: isThought ? generation : null,
    ...listed,
    estimated_tokens: estimated,
    cost_usd: usdOrNull(cost),
    estimated_cost_usd: usdOf(estimated_cost),
    price: price === null ? null : (JSON.parse(price) as StepPrice),
    // A summary belongs to no turn.
    kind: row.kind === 'model' && row.turn === 0 ? ('summary' as const) : row.kind,
    error: error === null ? null : (JSON.parse(error) as StepError),
    rule: rule === null ? null : ruleBody(JSON.parse(rule) as RuleDecision),
    guard: guard === null ? null : (JSON.parse(guard) as GuardVerdict),
    files: files === null ? null : (JSON.parse(files) as GivenFile[]),
    waits_for: waitsFor,
    prompt,
    due_at: timestampOrNull(due_at),
    started_at: timestamp(started_at),
    finished_at: timestampOrNull(finished_at),
    // The clock may have been set back during the step.
    duration_ms: finished_at === null ? null : Math.max(0, finished_at - started_at),
  };
}
