import { expect } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { DialogueMessage, Usage } from '../../src/adapters/models/model.ts';
import type { Context } from '../../src/core/context/context.ts';
import { type ClaimedJob, jobCounts } from '../../src/core/jobs/jobs.store.ts';
import { claimJobs } from '../../src/core/jobs/turns/admission.store.ts';
import type {
  BegunCall,
  CallEnd,
  CallRequest,
  ToolEnd,
} from '../../src/core/thinking/generations.ts';
import { serviceUnavailable } from './broken-database.ts';
import type { Engine } from './databases.ts';
import { type JobsWorld, jobsWorld, leaseMs } from './jobs-world.ts';
import { type Journal, openWholeJournal } from './whole-journal.ts';

export const model = 'openai/test';
const usage: Usage = { prompt: 10, completion: 5 };
export const wanted = {
  generation: 'g',
  parent: null,
  turn: 1,
  model,
  agentVersion: 1,
  prompt: 100,
  expected: 60,
  output: 50,
};

/** A request to a model, of the run itself. */
export const asked = (id: string) => ({ id, parent: null, nth: 1 });

export type AssistantMessage = Extract<DialogueMessage, { role: 'assistant' }>;
export const saying = (text: string, ...ids: string[]): AssistantMessage => ({
  role: 'assistant',
  text,
  toolCalls: ids.map((id) => ({ id, name: 'a__b__v1_0', input: `{"of":"${id}"}` })),
});
export const said = (message: AssistantMessage, more: Partial<CallEnd> = {}): CallEnd => ({
  status: 'completed',
  error: null,
  message,
  isDialogue: true,
  usage,
  estimated: 0,
  tools: message.toolCalls.map((call) => ({ call, name: 'a/v1.0/b' })),
  ...more,
});
export const gave = (callId: string, more: Partial<ToolEnd> = {}) => ({
  messages: [],
  status: 'completed' as const,
  error: null,
  message: {
    role: 'tool' as const,
    callId,
    name: 'a__b__v1_0',
    text: `of ${callId}`,
    isError: false,
  },
  content: `content of ${callId}`,
  isDialogue: true,
  memory: [],
  ...more,
});

export interface World extends JobsWorld {
  /** A journal of the claim, on another database or with other parts when they are given. */
  journalOf(job: ClaimedJob, more?: Partial<Context>): Journal;
  /** A job that is claimed. */
  claimed(fields?: Parameters<JobsWorld['submit']>[0]): Promise<ClaimedJob>;
  /** Lets the claim's lease end, and claims the job again. */
  lose(job: ClaimedJob): Promise<ClaimedJob>;
}

export async function thinkingWorld(engine: Engine, on?: Database): Promise<World> {
  const world = await jobsWorld(engine, {
    freeSlots: () => 1_000,
    ...(on === undefined ? {} : { database: on }),
  });
  const { database, clock } = world;
  return {
    ...world,
    journalOf: (job, more) => openWholeJournal(world, job, more),

    async claimed(fields) {
      const { id } = await world.submit(fields);
      const job = world.begun.find((one) => one.id === id);
      if (job === undefined) throw new Error('It was not claimed.');
      return job;
    },

    async lose({ id }) {
      clock.advance(leaseMs + 1);
      await world.recovery.sweep();
      clock.advance(60_000);
      const [job] = await database.write(async (tx) => {
        const claimed = await claimJobs(tx, [id], {
          by: 1,
          now: clock.now(),
          leaseUntil: clock.now() + leaseMs,
        });
        const changes = claimed.map((kind) => ({ kind, from: 'queued', to: 'active' }) as const);
        await jobCounts.change(tx, 'first', changes);
        return claimed;
      });
      if (job === undefined) throw new Error('It was not to be claimed.');
      return job;
    },
  };
}

export async function begun(journal: Journal, more: Partial<CallRequest> = {}): Promise<BegunCall> {
  const beginning = await journal.beginCall({ ...wanted, ...more });
  if (beginning.kind !== 'begun') throw new Error(`It has not begun: ${beginning.kind}`);
  return beginning.call;
}

export const stepsOf = ({ database }: JobsWorld, jobId?: string) =>
  database.read.kysely
    .selectFrom('job_steps')
    .selectAll()
    .$if(jobId !== undefined, (query) => query.where('job_id', '=', jobId ?? ''))
    .orderBy('job_id')
    .orderBy('n')
    .execute();
export const usageRows = ({ database }: JobsWorld) =>
  database.read.kysely.selectFrom('token_usage').selectAll().orderBy('owner_kind').execute();

/** Steps, messages and what budgets were charged all tell the same; nothing is held back in vain. */
export async function expectLedger(world: JobsWorld): Promise<void> {
  const steps = await stepsOf(world);
  const calls = steps.filter(({ kind }) => kind === 'model');
  const messages = await world.database.read.kysely.selectFrom('messages').selectAll().execute();
  const sum = <T>(rows: readonly T[], of: (row: T) => number | null) =>
    rows.reduce((all, row) => all + (of(row) ?? 0), 0);
  const spent = {
    prompt_tokens: sum(calls, (one) => one.prompt_tokens),
    completion_tokens: sum(calls, (one) => one.completion_tokens),
  };
  expect({
    prompt_tokens: sum(messages, (one) => one.prompt_tokens),
    completion_tokens: sum(messages, (one) => one.completion_tokens),
  }).toEqual(spent);
  const ended = calls.filter(({ status }) => status !== 'active');
  const isUnknown = (one: (typeof calls)[number]) =>
    one.prompt_tokens === null || one.completion_tokens === null;
  const active = calls.filter(({ status }) => status === 'active');
  for (const row of await usageRows(world)) {
    if (row.owner_kind === 'scheduled_job') continue;
    // Of users and skills, calls are counted when they have ended.
    const isPaying = row.owner_kind === 'agent' || row.owner_kind === 'api_key';
    expect(row, row.owner_kind).toMatchObject({
      ...spent,
      calls: isPaying ? calls.length : ended.length,
      unreported_calls: ended.filter(isUnknown).length,
      estimated_tokens: sum(ended, (one) => one.estimated),
      reserved_tokens: isPaying ? sum(active, (one) => one.reserved) : 0,
    });
  }
  const unknown = messages.filter(({ unreported }) => unreported !== 0);
  expect(unknown).toHaveLength(ended.filter(isUnknown).length);
  expect(sum(ended, (one) => one.reserved)).toBe(0);
  // Every message of a model or tool is of one step.
  const ids = steps.flatMap(({ message_id }) => message_id ?? []);
  expect(new Set(ids).size).toBe(ids.length);
  const dialogue = messages.filter(({ data, unreported }) => data !== null || unreported !== 0);
  for (const { id } of dialogue) expect(ids).toContain(id);
}

/** A database on which the writes of these numbers, counted from 1, fail before or after their commit. */
export function breaking(
  database: Database,
  when: 'before' | 'after',
  ...numbers: number[]
): Database {
  let n = 0;
  return {
    ...database,
    async write(unit) {
      n += 1;
      const isBroken = numbers.includes(n);
      if (isBroken && when === 'before') throw serviceUnavailable();
      const value = await database.write(unit);
      if (isBroken) throw serviceUnavailable();
      return value;
    },
  };
}
