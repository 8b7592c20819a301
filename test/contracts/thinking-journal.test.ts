/** The journal of runs that think on every database, after an interruption at any point. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { LeaseLostError } from '../../src/agents/claim-writes.ts';
import {
  type BegunCall,
  type CallEnd,
  createJournals,
  type Journal,
  type ToolEnd,
} from '../../src/agents/journal.ts';
import type { PlannedTool } from '../../src/agents/recorded-generation.ts';
import type { Database } from '../../src/database/database.ts';
import { claimJobs } from '../../src/jobs/admission.store.ts';
import { type ClaimedJob, changeJobCounts } from '../../src/jobs/jobs.store.ts';
import { isHeld } from '../../src/jobs/leases.store.ts';
import type { DialogueMessage, Usage } from '../../src/models/model.ts';
import { nothingReported } from '../../src/models/model.ts';
import { createReservations } from '../../src/usage/reservations.ts';
import { replaceBudget } from '../../src/usage/usage.store.ts';
import { serviceUnavailable } from '../support/broken-database.ts';
import { expectConsistent } from '../support/consistency.ts';
import { type Engine, engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import { type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import { waitFor } from '../support/wait-for.ts';

const model = 'openai/test';
const usage: Usage = { prompt: 10, completion: 5 };
const wanted = { generation: 'g', parent: null, turn: 1, model, prompt: 100, output: 50 };

type AssistantMessage = Extract<DialogueMessage, { role: 'assistant' }>;
const saying = (text: string, ...ids: string[]): AssistantMessage => ({
  role: 'assistant',
  text,
  toolCalls: ids.map((id) => ({ id, name: 'a__b__v1_0', input: `{"of":"${id}"}` })),
});
const said = (message: AssistantMessage, more: Partial<CallEnd> = {}): CallEnd => ({
  generation: 'g',
  turn: 1,
  status: 'completed',
  error: null,
  message,
  isDialogue: true,
  usage,
  estimated: 0,
  tools: message.toolCalls.map((call) => ({ call, name: 'a/v1.0/b' })),
  ...more,
});
const gave = (callId: string, more: Partial<ToolEnd> = {}) => ({
  said: [],
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

interface World extends JobsWorld {
  /** A journal of the claim, on another database or with other parts when they are given. */
  journalOf(job: ClaimedJob, more?: Partial<Parameters<typeof createJournals>[0]>): Journal;
  /** A job that is claimed. */
  claimed(fields?: Parameters<JobsWorld['submit']>[0]): Promise<ClaimedJob>;
  /** Lets the claim's lease end, and claims the job again. */
  lose(job: ClaimedJob): Promise<ClaimedJob>;
}

async function thinkingWorld(engine: Engine, on?: Database): Promise<World> {
  const world = await jobsWorld(engine, {
    freeSlots: () => 1_000,
    ...(on === undefined ? {} : { database: on }),
  });
  const { database, clock, conversations } = world;
  return {
    ...world,
    journalOf: (job, more) =>
      createJournals({
        database,
        conversations,
        reservations: createReservations(),
        clock,
        isHeld,
        scheduledJobOf: async () => 'nightly',
        ...more,
      }).open(job),

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
        const claimed = await claimJobs(tx, [id], clock.now(), clock.now() + leaseMs);
        const changes = claimed.map((kind) => ({ kind, from: 'queued', to: 'active' }) as const);
        await changeJobCounts(tx, 'first', changes);
        return claimed;
      });
      if (job === undefined) throw new Error('It was not to be claimed.');
      return job;
    },
  };
}

async function begun(journal: Journal, more: Partial<typeof wanted> = {}): Promise<BegunCall> {
  const beginning = await journal.beginCall({ ...wanted, ...more });
  if (beginning.kind !== 'begun') throw new Error(`It has not begun: ${beginning.kind}`);
  return beginning.call;
}

const stepsOf = ({ database }: JobsWorld, jobId?: string) =>
  database.read.kysely
    .selectFrom('job_steps')
    .selectAll()
    .$if(jobId !== undefined, (query) => query.where('job_id', '=', jobId ?? ''))
    .orderBy('job_id')
    .orderBy('n')
    .execute();
const usageRows = ({ database }: JobsWorld) =>
  database.read.kysely.selectFrom('token_usage').selectAll().orderBy('owner_kind').execute();

/** Steps, messages and what budgets were charged all tell the same; nothing is held back in vain. */
async function expectLedger(world: JobsWorld): Promise<void> {
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
    expect(row, row.owner_kind).toMatchObject({
      ...spent,
      calls: calls.length,
      unreported_calls: ended.filter(isUnknown).length,
      estimated_tokens: sum(ended, (one) => one.estimated),
      reserved_tokens: sum(active, (one) => one.reserved),
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
function breaking(database: Database, when: 'before' | 'after', ...numbers: number[]): Database {
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

describe.each(await engines())('on $name', (engine) => {
  describe('a call of a model', () => {
    test('is recorded before it is made, with its reservation', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();

      const call = await begun(world.journalOf(job));

      expect(call).toEqual({ n: 1, startedAt: world.clock.now(), reserved: 150, output: 50 });
      expect(await stepsOf(world)).toMatchObject([
        {
          job_id: job.id,
          n: 1,
          epoch: 1,
          generation: 'g',
          turn: 1,
          kind: 'model',
          name: model,
          call_id: null,
          status: 'active',
          message_id: null,
          reserved: 150,
          finished_at: null,
        },
      ]);
      expect(await world.messages(job)).toHaveLength(1);
      await expectLedger(world);
    });

    test('ends with its message, its tokens, and the tools that it called, all at once', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const call = await begun(journal);
      world.clock.advance(1_000);

      const tools = await journal.endCall(call, said(saying('words', 'a', 'b')));

      expect(tools.map(({ n, call: { id }, name }) => [n, id, name])).toEqual([
        [2, 'a', 'a/v1.0/b'],
        [3, 'b', 'a/v1.0/b'],
      ]);
      const [, message] = await world.messages(job);
      expect(message).toMatchObject({
        job_id: job.id,
        role: 'assistant',
        content: 'words',
        prompt_tokens: 10,
        completion_tokens: 5,
        unreported: 0,
        dialogue: 1,
        data: JSON.stringify(saying('words', 'a', 'b')),
      });
      const tool = { kind: 'tool', turn: 1, status: 'active', prompt_tokens: null, reserved: 0 };
      expect(await stepsOf(world)).toMatchObject([
        {
          status: 'completed',
          message_id: message?.id,
          prompt_tokens: 10,
          completion_tokens: 5,
          reserved: 0,
          finished_at: world.clock.now(),
        },
        { ...tool, n: 2, call_id: 'a' },
        { ...tool, n: 3, call_id: 'b' },
      ]);
      await expectLedger(world);
    });

    test.each<[string, Usage, number]>([
      ['nothing', nothingReported, 3],
      ['no prompt', { prompt: null, completion: 5 }, 1],
      ['no completion', { prompt: 10, completion: null }, 2],
    ])('of which the provider reports %s is unknown, not zero', async (_, reported, unreported) => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);

      const end = said(saying('x'), { usage: reported, estimated: 33 });
      await journal.endCall(await begun(journal), end);

      expect(await stepsOf(world)).toMatchObject([
        { prompt_tokens: reported.prompt, completion_tokens: reported.completion, estimated: 33 },
      ]);
      expect((await world.messages(job))[1]).toMatchObject({
        prompt_tokens: reported.prompt ?? 0,
        completion_tokens: reported.completion ?? 0,
        unreported,
      });
      const { usage } = await world.conversations.tokenUsage(job.conversation_id);
      const { breakdown, ...totals } = usage;
      expect(breakdown[1]).toMatchObject({
        prompt_tokens: reported.prompt,
        completion_tokens: reported.completion,
      });
      const known = (reported.prompt ?? 0) + (reported.completion ?? 0);
      expect(totals.total_tokens).toBe(known === 0 ? null : known);
      await expectLedger(world);
    });

    test('that failed and cost nothing leaves no message', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const error = { code: 'upstream_unavailable', message: 'It is overloaded' };

      await journal.endCall(await begun(journal), {
        ...said(saying('')),
        status: 'failed',
        error,
        message: null,
        usage: { prompt: 0, completion: 0 },
      });

      expect(await world.messages(job)).toHaveLength(1);
      expect(await stepsOf(world)).toMatchObject([
        { status: 'failed', error: JSON.stringify(error), message_id: null, reserved: 0 },
      ]);
      await expectLedger(world);
    });

    test('that broke off keeps its partial text, but not for the model', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const end = said(saying('half'), { status: 'interrupted', usage: nothingReported });

      await journal.endCall(await begun(journal), { ...end, estimated: 7 });

      expect((await world.messages(job))[1]).toMatchObject({
        content: 'half',
        data: null,
        dialogue: 0,
        unreported: 3,
      });
      expect(await journal.recorded('g', model)).toMatchObject({ messages: [], turns: 0 });
      await expectLedger(world);
    });

    test('that a budget refuses, or makes wait, is not on record', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const owner = {
        organization_id: 'default',
        owner_kind: 'agent' as const,
        owner_id: 'default',
      };
      const limit = (tokens_per_day: number) =>
        world.database.write((tx) =>
          replaceBudget(tx, { ...owner, tokens_per_day, tokens_per_month: null, updated_at: 0 }),
        );
      await limit(200);
      const first = await begun(journal);

      expect(await journal.beginCall({ ...wanted, turn: 2 })).toMatchObject({ kind: 'wait' });
      await journal.endCall(first, said(saying('x'), { usage: { prompt: 100, completion: 40 } }));
      expect(await journal.beginCall({ ...wanted, turn: 2 })).toMatchObject({ kind: 'exceeded' });
      const short = await begun(journal, { turn: 2, prompt: 20 });

      // As long as is left, and the next number in order.
      expect(short).toMatchObject({ n: 2, output: 40, reserved: 60 });
      expect(await stepsOf(world)).toHaveLength(2);
      await expectLedger(world);
    });

    test.each(['x', 'ß', '漢', '😀'])(
      'keeps 64 KiB of what it said, and cuts no %s in two',
      async (character) => {
        const world = await thinkingWorld(engine);
        const job = await world.claimed();
        const journal = world.journalOf(job);
        const texts = ['', 'a', 'aa', 'aaa'].map((start) => start + character.repeat(66_000));
        const whole = 'y'.repeat(65_536);

        for (const text of [...texts, whole]) {
          await journal.endCall(await begun(journal), said(saying(text)));
        }

        const [, ...messages] = await world.messages(job);
        for (const [i, text] of texts.entries()) {
          const { content = '', data } = messages[i] ?? {};
          expect(Buffer.byteLength(content)).toBeLessThanOrEqual(65_536);
          expect(Buffer.byteLength(content)).toBeGreaterThan(65_536 - 4);
          expect(content.endsWith('\n[cut]')).toBe(true);
          expect(text.startsWith(content.slice(0, -6))).toBe(true);
          // The model is shown the whole of it.
          expect(JSON.parse(data ?? '')).toEqual(saying(text));
        }
        expect(messages[4]?.content).toBe(whole);
      },
    );

    test('of a scheduled run counts for its scheduled job, too', async () => {
      const world = await thinkingWorld(engine);
      const scheduled = await world.claimed({ triggerType: 'scheduled' });
      const journal = world.journalOf(scheduled);

      await journal.endCall(await begun(journal), said(saying('x')));

      const row = { prompt_tokens: 10, completion_tokens: 5, reserved_tokens: 0, calls: 1 };
      expect(await usageRows(world)).toMatchObject([
        { ...row, owner_kind: 'agent', owner_id: 'default' },
        { ...row, owner_kind: 'api_key', owner_id: world.caller.keyId },
        { ...row, owner_kind: 'scheduled_job', owner_id: 'nightly' },
      ]);
    });
  });

  describe('a tool', () => {
    test('ends with its message and its changes of the memory', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      await journal.recorded('g', model);
      const [tool] = await journal.endCall(await begun(journal), said(saying('', 'a')));
      const memory = [{ forgotten: 'm' }];

      await journal.endTool(tool as PlannedTool, gave('a', { memory }));

      const [, , message] = await world.messages(job);
      expect(message).toMatchObject({
        role: 'tool',
        content: 'content of a',
        prompt_tokens: 0,
        unreported: 0,
        dialogue: 1,
        data: JSON.stringify(gave('a').message),
      });
      expect((await stepsOf(world))[1]).toMatchObject({
        status: 'completed',
        message_id: message?.id,
        memory: JSON.stringify(memory),
        finished_at: world.clock.now(),
      });
      expect(await journal.recorded('g', model)).toMatchObject({ memory });
      await expectLedger(world);
    });

    test('that failed has answered', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const [tool] = await journal.endCall(await begun(journal), said(saying('', 'a')));
      const error = { code: 'skill_timeout', message: 'too long' };

      await journal.endTool(tool as PlannedTool, gave('a', { status: 'failed', error }));

      expect((await stepsOf(world))[1]).toMatchObject({
        status: 'failed',
        error: JSON.stringify(error),
      });
      const again = await world.lose(job);
      const recorded = await world.journalOf(again).recorded('g', model);
      expect(recorded.open.size).toBe(0);
      expect(recorded.messages).toHaveLength(2);
    });
  });

  describe('a run that broke off', () => {
    const actions = [
      'begin turn 1',
      'end turn 1',
      'end tool b',
      'end tool a',
      'begin turn 2',
      'end turn 2',
    ] as const;

    /** Does what is not on record yet, as the loop does; at most so many things. */
    async function goOn(journal: Journal, most = Number.POSITIVE_INFINITY): Promise<string[]> {
      const { messages, open, turns } = await journal.recorded('g', model);
      const done: string[] = [];
      const isLeft = () => done.length < most;
      let turn = turns;
      const answered = new Set(messages.flatMap((one) => (one.role === 'tool' ? one.callId : [])));
      let tools = [...open.values()];
      const restarted = new Set(tools);
      while (turn < 2 || tools.length > 0) {
        if (turn === 0 || (tools.length === 0 && answered.size === 2)) {
          if (!isLeft()) return done;
          turn += 1;
          done.push(`begin turn ${turn}`);
          const call = await begun(journal, { turn });
          if (!isLeft()) return done;
          done.push(`end turn ${turn}`);
          const message = turn === 1 ? saying('first', 'a', 'b') : saying('last');
          tools = await journal.endCall(call, said(message, { turn }));
        }
        for (const tool of tools.toReversed()) {
          if (!isLeft()) return done;
          if (restarted.has(tool)) await journal.restartTool(tool);
          done.push(`end tool ${tool.call.id}`);
          await journal.endTool(tool, gave(tool.call.id));
          answered.add(tool.call.id);
        }
        tools = [];
      }
      return done;
    }

    test.each(actions.map((_, i) => i).concat(actions.length))(
      'after %i steps resumes: finished steps are not repeated',
      async (most) => {
        const world = await thinkingWorld(engine);
        const job = await world.claimed();
        const before = await goOn(world.journalOf(job), most);
        expect(before).toEqual(actions.slice(0, most));

        const again = await world.lose(job);
        const after = await goOn(world.journalOf(again));

        // A call that was under way is made again, because its result is unknown.
        const isOpen = before.at(-1)?.startsWith('begin') === true;
        expect(after).toEqual(actions.slice(isOpen ? most - 1 : most));
        const { messages, turns, open, costs } = await world.journalOf(again).recorded('g', model);
        expect(messages).toEqual([
          saying('first', 'a', 'b'),
          gave('a').message,
          gave('b').message,
          saying('last'),
        ]);
        expect([turns, open.size]).toEqual([2, 0]);
        expect(costs).toHaveLength(isOpen ? 3 : 2);
        const steps = await stepsOf(world);
        expect(steps.map(({ n }) => n)).toEqual(steps.map((_, i) => i + 1));
        expect(steps.filter(({ status }) => status !== 'completed')).toMatchObject(
          isOpen ? [{ kind: 'model', status: 'interrupted', estimated: 150 }] : [],
        );
        await expectLedger(world);
      },
    );

    test('leaves calls under way as unknown, charged with all that was held back', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      await journal.endCall(await begun(journal), said(saying('', 'a')));
      await begun(journal, { generation: 'other' });

      await world.lose(job);

      const error = JSON.stringify({
        code: 'worker_lost',
        message: 'The run ended while this was under way',
      });
      const [first, tool, call] = await stepsOf(world);
      expect(first).toMatchObject({ status: 'completed', error: null });
      expect(tool).toMatchObject({ kind: 'tool', status: 'interrupted', error, message_id: null });
      expect(call).toMatchObject({
        status: 'interrupted',
        error,
        prompt_tokens: null,
        completion_tokens: null,
        reserved: 0,
        estimated: 150,
      });
      const messages = await world.messages(job);
      expect(messages.at(-1)).toMatchObject({
        id: call?.message_id,
        role: 'assistant',
        content: '',
        unreported: 3,
        dialogue: 0,
        data: null,
      });
      await expectLedger(world);
    });

    test('is separate from other dialogues of the run', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      for (const generation of ['one', 'two']) {
        const call = await begun(journal, { generation });
        await journal.endCall(call, said(saying(generation, 'a'), { generation }));
      }

      const again = world.journalOf(await world.lose(job));

      for (const generation of ['one', 'two']) {
        const recorded = await again.recorded(generation, model);
        expect(recorded.messages).toEqual([saying(generation, 'a')]);
        expect([...recorded.open.keys()]).toEqual(['a']);
      }
      expect((await again.recorded('three', model)).messages).toEqual([]);
    });

    test('shows opaque parts only to the model that produced them', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const opaque = { ...saying('x', 'a'), opaque: { signature: 's' } };
      await journal.endCall(await begun(journal), said(opaque));

      const again = world.journalOf(await world.lose(job));

      const shownTo = async (name: string) => (await again.recorded('g', name)).messages;
      expect(await shownTo(model)).toEqual([opaque]);
      expect(await shownTo('anthropic/other')).toEqual([saying('x', 'a')]);
    });

    test('has the steps of its own claim only on request', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      await journal.endCall(await begun(journal), said(saying('wrong')));

      expect((await journal.recorded('g', model)).messages).toEqual([]);
      expect((await journal.recorded('g', model)).messages).toEqual([saying('wrong')]);
    });

    test('has its tools’ changes of the memory, in the order of its calls', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const [a, b] = await journal.endCall(await begun(journal), said(saying('', 'a', 'b')));
      await journal.endTool(b as PlannedTool, gave('b', { memory: [{ forgotten: '2' }] }));
      await journal.endTool(a as PlannedTool, gave('a', { memory: [{ forgotten: '1' }] }));

      const again = world.journalOf(await world.lose(job));

      const { memory } = await again.recorded('g', model);
      expect(memory).toEqual([{ forgotten: '1' }, { forgotten: '2' }]);
    });
  });

  describe('a claim that has lost its job', () => {
    test('records nothing', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const observed: unknown[] = [];
      const late = world.journalOf(job, { observe: (_, usage) => observed.push(usage) });
      const [tool] = await late.endCall(await begun(late), said(saying('', 'a')));
      const call = await begun(late, { turn: 2 });
      await world.lose(job);
      // Tokens are counted once they are recorded.
      expect(observed).toHaveLength(1);
      const before = [await stepsOf(world), await world.messages(job), await usageRows(world)];

      for (const act of [
        () => late.beginCall(wanted),
        () => late.endCall(call, said(saying('late', 'b'))),
        () => late.restartTool(tool as PlannedTool),
        () => late.endTool(tool as PlannedTool, gave('a')),
      ]) {
        await expect(act()).rejects.toBeInstanceOf(LeaseLostError);
      }

      expect([await stepsOf(world), await world.messages(job), await usageRows(world)]).toEqual(
        before,
      );
      expect(observed).toHaveLength(1);
      await expectLedger(world);
    });

    test('records nothing once its job has ended', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const late = world.journalOf(job);
      const call = await begun(late);

      await world.settle({ job, outcome: { kind: 'cancelled' }, messages: [], hasSteps: true });

      await expect(late.endCall(call, said(saying('late')))).rejects.toBeInstanceOf(LeaseLostError);
      expect(await stepsOf(world)).toMatchObject([{ status: 'interrupted' }]);
      await expectLedger(world);
      await expectConsistent(world.database);
    });

    // SQLite has one writer at a time.
    test.runIf(engine.name === 'PostgreSQL')(
      'is waited for when it is just recording, and has been in time then',
      async () => {
        const world = await thinkingWorld(engine);
        const job = await world.claimed();
        const reached = Promise.withResolvers<void>();
        const gate = Promise.withResolvers<void>();
        let isSlow = false;
        const slow = world.journalOf(job, {
          async isHeld(tx, claim) {
            const held = await isHeld(tx, claim);
            if (isSlow) {
              reached.resolve();
              await gate.promise;
            }
            return held;
          },
        });
        const call = await begun(slow);
        isSlow = true;

        const ended = slow.endCall(call, said(saying('in time', 'a')));
        await reached.promise;
        const lost = world.lose(job);
        await waitFor(() => someoneWaits(world), { describe: 'settle waits for the recording' });
        gate.resolve();
        await ended;
        await lost;

        expect(await stepsOf(world)).toMatchObject([
          { kind: 'model', status: 'completed' },
          { kind: 'tool', status: 'interrupted' },
        ]);
        await expectLedger(world);
      },
    );

    test.runIf(engine.name === 'PostgreSQL')(
      'waits for the attempt that is just ending it, and is late then',
      async () => {
        const world = await thinkingWorld(engine);
        const job = await world.claimed();
        const journal = world.journalOf(job);
        const call = await begun(journal);
        const held = Promise.withResolvers<void>();
        const gate = Promise.withResolvers<void>();
        const taking = world.database.write(async (tx) => {
          await tx.kysely.updateTable('jobs').set({ epoch: 2 }).where('id', '=', job.id).execute();
          held.resolve();
          await gate.promise;
        });
        await held.promise;

        const ended = journal.endCall(call, said(saying('late')));
        const refused = expect(ended).rejects.toBeInstanceOf(LeaseLostError);
        await waitFor(() => someoneWaits(world), { describe: 'the recording waits' });
        gate.resolve();
        await taking;

        await refused;
        expect(await stepsOf(world)).toMatchObject([{ status: 'active' }]);
      },
    );
  });

  describe('while the database cannot be used', () => {
    test('the record waits, and is written later', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const database = breaking(world.database, 'before', 1, 3, 5);
      const journal = world.journalOf(job, { database });

      const call = await begun(journal);
      const [tool] = await journal.endCall(call, said(saying('', 'a')));
      await journal.endTool(tool as PlannedTool, gave('a'));

      expect(await stepsOf(world)).toMatchObject([
        { n: 1, status: 'completed' },
        { n: 2, status: 'completed' },
      ]);
      await expectLedger(world);
    });

    test('a write whose confirmation was lost is not recorded twice', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const database = breaking(world.database, 'after', 1, 3, 5, 7, 9);
      const journal = world.journalOf(job, { database });

      const call = await begun(journal);
      expect(call).toEqual({ n: 1, startedAt: world.clock.now(), reserved: 150, output: 50 });
      const [tool] = await journal.endCall(call, said(saying('', 'a')));
      await journal.endTool(tool as PlannedTool, gave('a'));
      const failed = await begun(journal, { turn: 2 });
      // Without a message, of which an id would tell.
      await journal.endCall(failed, {
        ...said(saying('')),
        turn: 2,
        status: 'failed',
        message: null,
        usage: { prompt: 0, completion: 0 },
      });

      expect(await stepsOf(world)).toMatchObject([
        { n: 1, status: 'completed' },
        { n: 2, status: 'completed' },
        { n: 3, status: 'failed' },
      ]);
      expect(await world.messages(job)).toHaveLength(3);
      await expectLedger(world);
    });

    test('a claim that was lost meanwhile records nothing', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const database = breaking(world.database, 'before', 2);
      const journal = world.journalOf(job, { database });
      const call = await begun(journal);

      const ended = journal.endCall(call, said(saying('late')));
      const refused = expect(ended).rejects.toBeInstanceOf(LeaseLostError);
      await world.lose(job);

      await refused;
      await expectLedger(world);
    });

    test('any other error is thrown at once', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const isHeldNever = () => Promise.reject(new Error('broken'));

      const journal = world.journalOf(job, { isHeld: isHeldNever });

      await expect(journal.beginCall(wanted)).rejects.toThrow('broken');
    });
  });

  // SQLite has one writer at a time.
  test.runIf(engine.name === 'PostgreSQL')(
    'claims that end together are charged together, so that no call in between waits in a circle',
    async () => {
      const place = await engine.place();
      const world = await thinkingWorld(engine, await place.open());
      const other = await world.callerOf('default');
      for (const id of ['a', 'c']) await world.agents.create('default', { id });
      const fields = { triggerType: 'scheduled', maxAttempts: 1 } as const;
      const first = await world.claimed({ ...fields, agentId: 'a' });
      const second = await world.claimed({ ...fields, agentId: 'c', apiKeyId: other.keyId });
      const between = await world.claimed({ agentId: 'c' });
      for (const job of [first, second]) await begun(world.journalOf(job));
      const journal = world.journalOf(between);
      const call = await begun(journal);
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      const ending = createJournals({
        ...world,
        reservations: createReservations(),
        isHeld,
        async scheduledJobOf(_db, jobId) {
          if (jobId === second.id) {
            reached.resolve();
            await gate.promise;
          }
          return 'nightly';
        },
      });

      const ended = world.database.write((tx) =>
        ending.endAbandonedSteps(
          tx,
          [first, second].map((job) => ({ job, isCancelled: false })),
        ),
      );
      await reached.promise;
      let isOver = false;
      const recorded = journal.endCall(call, said(saying('x'))).finally(() => {
        isOver = true;
      });
      await waitFor(async () => isOver || (await someoneWaits(world)), {
        describe: 'the call between is recorded, or waits',
      });
      gate.resolve();
      await Promise.all([ended, recorded]);

      await world.database.close();
      expect(await deadlocksIn(place.at)).toBe(0);
    },
  );

  test('many runs that record and end at once wait for each other in no circle', async () => {
    const place = await engine.place();
    const world = await thinkingWorld(engine, await place.open());
    const agents = ['a', 'b', 'c', 'd', 'e'];
    for (const id of agents) await world.agents.create('default', { id });
    const keys = [world.caller, await world.callerOf('default'), await world.callerOf('default')];
    const count = 60;
    const jobs = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        world.claimed({
          agentId: agents[i % agents.length] as string,
          apiKeyId: (keys[i % keys.length] as (typeof keys)[number]).keyId,
        }),
      ),
    );
    const runs = await Promise.all(
      jobs.map(async (job) => {
        const journal = world.journalOf(job);
        const tools = await journal.endCall(await begun(journal), said(saying('', 't1', 't2')));
        return { job, journal, tools, beside: await begun(journal, { generation: 'beside' }) };
      }),
    );

    const results = await Promise.allSettled(
      runs.flatMap(({ job, journal, tools, beside }, i) => [
        ...tools.map((tool) => journal.endTool(tool, gave(tool.call.id))),
        i % 2 === 0
          ? journal.endCall(beside, said(saying('beside'), { generation: 'beside' }))
          : world.settle({
              job,
              outcome: { kind: 'failed', ...interruption, retryable: false },
              messages: [],
              hasSteps: true,
            }),
      ]),
    );

    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(LeaseLostError);
    }
    const steps = await stepsOf(world);
    expect(steps).toHaveLength(count * 4);
    expect(steps.filter(({ status }) => status === 'active')).toEqual([]);
    const totals = await world.database.read.kysely
      .selectFrom('token_usage')
      .select([
        'owner_kind',
        sql<number>`sum(calls)`.as('calls'),
        sql<number>`sum(reserved_tokens)`.as('reserved'),
        sql<number>`sum(estimated_tokens)`.as('estimated'),
      ])
      .groupBy('owner_kind')
      .orderBy('owner_kind')
      .execute();
    const sums = { calls: count * 2, reserved: 0, estimated: (count / 2) * 150 };
    expect(totals).toEqual([
      { owner_kind: 'agent', ...sums },
      { owner_kind: 'api_key', ...sums },
    ]);
    await world.database.close();
    if (engine.name === 'PostgreSQL') expect(await deadlocksIn(place.at)).toBe(0);
  });
});

const interruption = { code: 'skill_execution_failed', message: 'it broke' } as const;

/** Whether a session of PostgreSQL waits for a lock in this database. */
async function someoneWaits({ database }: JobsWorld): Promise<boolean> {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  `.execute(database.read.kysely);
  return (rows[0]?.n ?? 0) > 0;
}
