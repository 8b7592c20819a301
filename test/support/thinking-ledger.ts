/**
 * Holds what is recorded of agents that think against itself and against the provider's own record.
 * It may be asked at any moment at which nothing runs.
 */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { DialogueMessage } from '../../src/adapters/models/model.ts';
import type { MessageRow } from '../../src/core/conversations/conversations.store.ts';
import { Conversations, type TokenStats } from '../../src/core/conversations/conversations.ts';
import { Files } from '../../src/core/files/files.ts';
import { isFinal } from '../../src/core/jobs/states.ts';
import type { StepRow } from '../../src/core/journal/step-queries.ts';
import { contextOf } from './context.ts';
import type { RecordedRequest, ScriptedProvider } from './scripted-provider.ts';
import { memoriesOf, type Plan, planState, requestAnswered } from './thinking-plans.ts';

type AssistantMessage = Extract<DialogueMessage, { role: 'assistant' }>;
type ToolMessage = Extract<DialogueMessage, { role: 'tool' }>;

/** All that is recorded. */
type Ledger = Awaited<ReturnType<typeof readLedger>>;

async function readLedger(database: Database) {
  const db = database.read.kysely;
  return {
    jobs: await db.selectFrom('jobs').selectAll().execute(),
    conversations: await db.selectFrom('conversations').selectAll().execute(),
    messages: await db.selectFrom('messages').selectAll().orderBy('id').execute(),
    steps: await db.selectFrom('job_steps').selectAll().orderBy('job_id').orderBy('n').execute(),
    usage: await db.selectFrom('token_usage').selectAll().execute(),
    runs: await db.selectFrom('scheduled_runs').select(['job_id', 'scheduled_job_id']).execute(),
  };
}

/**
 * Everything that was counted is counted once, everywhere the same: steps, messages, jobs,
 * conversations, the use of agents, keys and schedules. With the provider that was asked, and
 * answers by `followingPlans`: what it answered and what is recorded of it agree, and no turn was
 * asked for again once it was recorded. Looks at nothing that retention has deleted.
 */
export async function expectBalanced(
  database: Database,
  provider?: Pick<ScriptedProvider, 'requests'>,
): Promise<void> {
  const ledger = await readLedger(database);
  expectSteps(ledger);
  expectMessages(ledger);
  expectUse(ledger);
  await expectShown(database, ledger);
  if (provider !== undefined) expectAnswersOnce(ledger, provider.requests);
}

/** A final job has no step under way; a step's result is its message, and its tokens are there. */
function expectSteps({ jobs, steps, messages }: Ledger): void {
  const jobOf = new Map(jobs.map((job) => [job.id, job]));
  const messageOf = new Map(messages.map((message) => [message.id, message]));
  const numbers = new Map<string, number>();
  for (const step of steps) {
    const about = `step ${step.n} (${step.name}, ${step.status}) of job ${step.job_id}`;
    const job = jobOf.get(step.job_id);
    expect(job, about).toBeDefined();
    const n = (numbers.get(step.job_id) ?? 0) + 1;
    numbers.set(step.job_id, n);
    expect(step.n, `${about} follows the one before`).toBe(n);
    expect(step.epoch, about).toBeLessThanOrEqual(job?.epoch ?? 0);
    if (job?.status !== 'active') expect(step.status, about).not.toBe('active');
    if (step.status === 'active') continue;
    expect(step.reserved, `${about} holds nothing back`).toBe(0);
    expect(step.finished_at, about).not.toBeNull();
    if (job?.status === 'completed' && step.kind === 'tool') {
      expect(step.status, `${about} has an answer`).not.toBe('interrupted');
    }
    const message = step.message_id === null ? undefined : messageOf.get(step.message_id);
    expect(message !== undefined, `${about} has its message`).toBe(step.message_id !== null);
    if (step.status === 'completed') expect(message, about).toBeDefined();
    if (step.kind === 'model' && step.error?.includes('"worker_lost"')) {
      expect(message?.unreported, `${about}: its cost is unknown`).toBe(3);
    }
    if (message === undefined) continue;
    expect(message.job_id, about).toBe(step.job_id);
    expect(message.role, about).toBe(step.kind === 'model' ? 'assistant' : 'tool');
    const tokens = step.kind === 'model' ? tokensOf(message) : [null, null];
    expect([step.prompt_tokens, step.completion_tokens], about).toEqual(tokens);
    expect(step.reserved_cost, `${about} holds no money back`).toBe(0);
    if (step.kind !== 'model') continue;
    expect(step.cost, `${about}: its cost`).toBe(message.cost);
    for (const part of parts) expect(step[part] ?? 0, `${about}: ${part}`).toBe(message[part]);
  }
  const results = steps.flatMap(({ message_id }) => message_id ?? []);
  expect(new Set(results).size, 'a message is the result of one step').toBe(results.length);
}

const parts = ['cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens'] as const;

/** Null for what was not reported. */
function tokensOf({ prompt_tokens, completion_tokens, unreported }: MessageRow) {
  return [unreported & 1 ? null : prompt_tokens, unreported & 2 ? null : completion_tokens];
}

/** Ids occur once, every call of a tool has one step, every answer of a tool its call before it. */
function expectMessages({ jobs, messages, steps }: Ledger): void {
  expect(new Set(messages.map(({ id }) => id)).size, 'ids of messages').toBe(messages.length);
  const stepOf = new Map(steps.map((step) => [step.message_id, step]));
  const stepsOf = Map.groupBy(steps, ({ job_id }) => job_id);
  const said = Map.groupBy(messages, ({ job_id }) => job_id);
  for (const job of jobs) {
    const about = `job ${job.id}, ${job.status}`;
    const own = said.get(job.id) ?? [];
    expect(own[0]?.role, `${about} begins with the user`).toBe('user');
    const ownSteps = stepsOf.get(job.id) ?? [];
    const called = new Set<StepRow>();
    for (const message of own) {
      const step = stepOf.get(message.id);
      const isCounted = message.prompt_tokens + message.completion_tokens > 0;
      if (isCounted || message.unreported > 0 || message.data !== null) {
        expect(step?.job_id, `${about}: message ${message.id} is of a step`).toBe(job.id);
      }
      if (step === undefined || message.data === null) continue;
      if (step.kind === 'tool') {
        const { callId } = JSON.parse(message.data) as ToolMessage;
        expect(callId, about).toBe(step.call_id);
        expect(called.has(step), `${about}: ${callId} was called before`).toBe(true);
        continue;
      }
      const { toolCalls } = JSON.parse(message.data) as AssistantMessage;
      const wanted = ownSteps.filter((one) => one.kind === 'tool' && isTurnOf(one, step));
      expect(
        wanted.map(({ call_id }) => call_id),
        `${about}: tools of step ${step.n}`,
      ).toEqual(toolCalls.map(({ id }) => id));
      for (const one of wanted) called.add(one);
    }
    if (job.skill_name === 'run-task') expectTold(job, own, ownSteps);
    const turns = ownSteps.filter(({ kind, status }) => kind === 'model' && status === 'completed');
    const distinct = new Set(turns.map(({ generation, turn }) => `${generation} ${turn}`));
    expect(distinct.size, `${about} has each turn once`).toBe(turns.length);
    expect(ownSteps.filter(({ kind }) => kind === 'tool').length, about).toBe(called.size);
  }
}

/** The conversation of a task is the user's message and what steps resulted in, the answer last. */
function expectTold(
  { id, output }: Ledger['jobs'][number],
  own: readonly MessageRow[],
  steps: readonly StepRow[],
): void {
  const results = steps.filter(({ message_id }) => message_id !== null);
  expect(own.length, `job ${id}: messages`).toBe(1 + results.length);
  if (output === null) return;
  expect(own.at(-1)?.content, `job ${id}: the last message`).toBe(JSON.parse(output).answer);
}

function isTurnOf(tool: StepRow, call: StepRow): boolean {
  return tool.generation === call.generation && tool.turn === call.turn;
}

/** What agents, keys, schedules, users and skills have used is what the calls of their jobs have. */
function expectUse({ jobs, messages, steps, usage, runs }: Ledger): void {
  const scheduleOf = new Map(runs.map((run) => [run.job_id, run.scheduled_job_id]));
  const ownersOf = new Map(
    jobs.map((job) => {
      const schedule = scheduleOf.get(job.id);
      const owners = [`agent ${job.agent_id}`, `api_key ${job.api_key_id}`];
      if (schedule !== undefined) owners.push(`scheduled_job ${schedule}`);
      return [job.id, owners.map((owner) => `${job.organization_id} ${owner}`)];
    }),
  );
  const countedOf = new Map(
    jobs.map((job) => {
      const skill = `${job.skill_category}/${job.skill_version}/${job.skill_name}`;
      const owners = [`user ${job.user_id}`, `skill ${skill}`];
      return [job.id, owners.map((owner) => `${job.organization_id} ${owner}`)];
    }),
  );
  const messageOf = new Map(messages.map((message) => [message.id, message]));
  const expected = new Map<string, Use>();
  const calls = steps.filter(({ kind }) => kind === 'model');
  for (const step of calls) {
    const message = messageOf.get(step.message_id ?? '');
    const isUnused = step.cost === 0 || step.status === 'active';
    const owners = [
      ...(ownersOf.get(step.job_id) ?? []),
      // These are counted when a call has ended.
      ...(step.status === 'active' ? [] : (countedOf.get(step.job_id) ?? [])),
    ];
    for (const owner of owners) {
      add(expected, owner, {
        cache_read_tokens: step.cache_read_tokens ?? 0,
        cache_write_tokens: step.cache_write_tokens ?? 0,
        reasoning_tokens: step.reasoning_tokens ?? 0,
        cost: step.cost ?? 0,
        estimated_cost: step.estimated_cost,
        reserved_cost: step.reserved_cost,
        unpriced_calls: step.price === null && !isUnused ? 1 : 0,
        prompt_tokens: message?.prompt_tokens ?? 0,
        completion_tokens: message?.completion_tokens ?? 0,
        estimated_tokens: step.estimated,
        reserved_tokens: step.reserved,
        calls: 1,
        unreported_calls: (message?.unreported ?? 0) > 0 ? 1 : 0,
      });
    }
  }
  const recorded = new Map<string, Use>();
  for (const { organization_id, owner_kind, owner_id, day: _, ...use } of usage) {
    add(recorded, `${organization_id} ${owner_kind} ${owner_id}`, use);
  }
  expect(sorted(recorded), 'use of agents, keys and schedules').toEqual(sorted(expected));
}

interface Use {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly estimated_tokens: number;
  readonly reserved_tokens: number;
  readonly calls: number;
  readonly unreported_calls: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly reasoning_tokens: number;
  readonly cost: number;
  readonly estimated_cost: number;
  readonly reserved_cost: number;
  readonly unpriced_calls: number;
}

function add(sums: Map<string, Use>, key: string, use: Use): void {
  const before = sums.get(key);
  const sum = Object.entries(use).map(([column, n]) => [
    column,
    Number(n) + (before?.[column as keyof Use] ?? 0),
  ]);
  sums.set(key, Object.fromEntries(sum) as Use);
}

function sorted(uses: Map<string, Use>): [string, Use][] {
  return [...uses].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** What clients see of a job, of a conversation and of its messages adds up. */
async function expectShown(database: Database, { jobs, conversations, messages }: Ledger) {
  const shown = new Conversations(
    contextOf({ database }),
    new Files(contextOf({ database }), null),
  );
  const said = Map.groupBy(messages, ({ conversation_id }) => conversation_id);
  const jobsOf = Map.groupBy(jobs, ({ conversation_id }) => conversation_id);
  for (const { id, organization_id } of conversations) {
    const own = said.get(id) ?? [];
    const about = `conversation ${id}`;
    const { usage } = await shown.tokenUsage(id);
    const { breakdown, conversation_id: _, ...totals } = usage;
    const sumsOf = (entries: readonly Counted[]) => expect.objectContaining(sumOf(entries));
    expect(
      breakdown.map(({ message_id }) => message_id),
      about,
    ).toEqual(own.map((message) => message.id));
    const tokens = new Map(breakdown.map((entry) => [entry.message_id, entry]));
    expect(totals, about).toEqual(sumsOf(breakdown));
    expect((await shown.get(organization_id, id)).token_stats, about).toEqual(totals);
    for (const job of jobsOf.get(id) ?? []) {
      const entries = own
        .filter(({ job_id }) => job_id === job.id)
        .flatMap((message) => tokens.get(message.id) ?? []);
      const { token_stats } = await shown.tokensOfJob(id, job.id);
      expect(token_stats, `job ${job.id}`).toEqual(sumsOf(entries));
    }
  }
}

type Counted = Pick<TokenStats, 'prompt_tokens' | 'completion_tokens' | 'cost_usd'>;

/** The sums of what is known; null where something is not, and nothing is. */
function sumOf(entries: readonly Counted[]) {
  const sum = (parts: readonly (number | null)[]): number | null => {
    const total = parts.reduce<number>((all, tokens) => all + (tokens ?? 0), 0);
    return total === 0 && parts.includes(null) ? null : total;
  };
  const prompts = entries.map(({ prompt_tokens }) => prompt_tokens);
  const completions = entries.map(({ completion_tokens }) => completion_tokens);
  const tokens_are_partial = [...prompts, ...completions].includes(null);
  const costs = entries.map(({ cost_usd }) => cost_usd);
  return {
    prompt_tokens: sum(prompts),
    completion_tokens: sum(completions),
    total_tokens: sum([...prompts, ...completions]),
    tokens_are_partial,
    cost_is_partial: tokens_are_partial || costs.includes(null),
  };
}

/** What is recorded as answered was answered, for as much as it cost, and never asked for again. */
function expectAnswersOnce(
  { messages, steps }: Ledger,
  requests: readonly RecordedRequest[],
): void {
  const calls = steps.filter(({ kind }) => kind === 'model');
  expect(requests.length, 'requests, each of which has a step').toBeLessThanOrEqual(calls.length);
  const messageOf = new Map(messages.map((message) => [message.id, message]));
  const recorded = new Set<number>();
  for (const step of calls.filter(({ status }) => status === 'completed')) {
    const message = messageOf.get(step.message_id ?? '');
    const index = requestAnswered(JSON.parse(message?.data ?? '{}') as AssistantMessage) ?? -1;
    const about = `request ${index}, recorded as step ${step.n} of job ${step.job_id}`;
    expect(recorded.has(index), `${about} and elsewhere`).toBe(false);
    recorded.add(index);
    const request = requests[index] as RecordedRequest;
    expect(request?.endedBy, about).toBe('answered');
    const { unreported } = planState(request).plan;
    const cost = unreported ? [null, null] : [request.cost?.prompt, request.cost?.completion];
    expect([step.prompt_tokens, step.completion_tokens], about).toEqual(cost);
  }
  const last = new Map<string, number>();
  for (const request of requests) last.set(dialogueOf(request), request.index);
  for (const index of recorded) {
    const again = last.get(dialogueOf(requests[index] as RecordedRequest));
    expect(again, `request ${index} was recorded and is the last of its turn`).toBe(index);
  }
}

/** What the model was shown, whichever way round the results of tools stand. */
function dialogueOf({ model, messages }: RecordedRequest): string {
  const parts = messages.flatMap(({ role, content, ...more }) => {
    const list = Array.isArray(content) ? content : [content];
    return list.map((part) => JSON.stringify([role, part, more]));
  });
  return `${model} ${parts.sort().join('\n')}`;
}

/**
 * Every `ledger/v1.0/note` that is on record as ended ran in the claim that recorded it, once, and
 * never after it. `log` is the file into which all of them wrote. For platforms that are killed only:
 * there a claim is an attempt.
 */
export async function expectNotesOnce(database: Database, log: string): Promise<void> {
  const { steps, messages } = await readLedger(database);
  const messageOf = new Map(messages.map((message) => [message.id, message]));
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  const written = Map.groupBy(lines, (line) => line.split(' ')[1] as string);
  let notes = 0;
  for (const step of steps) {
    const message = messageOf.get(step.message_id ?? '');
    if (step.name !== 'ledger/v1.0/note' || message === undefined) continue;
    notes += 1;
    const { id } = JSON.parse(message.content).input as { id: string };
    const own = written.get(id) ?? [];
    const about = `${id}, recorded by claim ${step.epoch} as ${step.status}: ${own.join(', ')}`;
    const attempts = own
      .filter((line) => line.startsWith('begin '))
      .map((line) => Number(line.split(' ')[2]));
    expect(new Set(attempts).size, `${about}: once in each attempt`).toBe(attempts.length);
    expect(Math.max(...attempts), `${about}: never after it was recorded`).toBe(step.epoch);
    expect(own, about).toContain(`end ${id} ${step.epoch}`);
  }
  expect(notes, 'notes on record').toBeGreaterThan(0);
}

/** Of the jobs that carried out plans: those that completed are remembered, once, the others not. */
export async function expectMemoriesOnce(database: Database): Promise<void> {
  const db = database.read.kysely;
  const jobs = await db.selectFrom('jobs').select(['id', 'status', 'input']).execute();
  const known = await db.selectFrom('memories').select('content').execute();
  const expected = jobs
    .filter(({ status }) => status === 'completed')
    .flatMap(({ input }) => memoriesOf(planOf(input)));
  expect(known.map(({ content }) => content).sort()).toEqual(expected.sort());
}

function planOf(input: string): Plan {
  const { task } = JSON.parse(input) as { task?: string };
  return task === undefined ? { id: '', turns: [] } : (JSON.parse(task) as Plan);
}

/** Waits for nothing: every job has ended. */
export async function expectAllEnded(database: Database): Promise<void> {
  const { jobs } = await readLedger(database);
  const left = jobs.filter(({ status }) => !isFinal(status));
  expect(left.map(({ id, status }) => `${id} ${status}`)).toEqual([]);
}
