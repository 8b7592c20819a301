import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/adapters/models/model.ts';
import { ModelError, nothingReported } from '../../src/adapters/models/model.ts';
import { RunObservers } from '../../src/core/context/run-observer.ts';
import { PromptSettings } from '../../src/core/journal/prompts/prompt-settings.ts';
import { bytesKept } from '../../src/core/journal/prompts/prompts.store.ts';
import { promptOfStep } from '../../src/core/journal/prompts/read-prompts.ts';
import { removeSteps } from '../../src/core/journal/steps.ts';
import type { PlannedTool } from '../../src/core/thinking/recorded-generation.ts';
import { PromptOfCall } from '../../src/core/thinking/sent-calls.ts';
import { replaceBudget } from '../../src/core/usage/usage.store.ts';
import { dayMs } from '../../src/kernel/clock.ts';
import { insertRuns, newRun } from '../../src/platform/schedules/runs.store.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import {
  asked,
  begun,
  expectLedger,
  gave,
  model,
  said,
  saying,
  stepsOf,
  thinkingWorld,
  usageRows,
  type World,
  wanted,
} from '../support/thinking-journal.ts';

const unlimited = { tokens_per_month: null, cost_per_day: null, cost_per_month: null };

describe.each(await engines())('on $name', (engine) => {
  describe('what a call is sent', () => {
    const sending = (text: string, turn = 1) => ({
      turn,
      sends: new PromptOfCall((output) => ({
        model,
        max_tokens: output,
        messages: Array.from({ length: turn }, (_, i) => ({
          role: 'user',
          content: `${text} ${i}`,
        })),
      })),
    });
    const prompt = ({ database }: World, jobId: string, n: number) =>
      promptOfStep(database, jobId, n, 'whole');
    const keptBytes = ({ database }: World) => bytesKept(database.read, 'default');
    const long = 'x'.repeat(10_000);

    test('is kept in the commit of its step, with the tokens that the budget leaves it', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);

      await begun(journal, sending(long));
      await begun(journal, { ...sending(long, 2), generation: 'other' });
      await begun(journal, sending(long, 3));

      const bodies = [1, 2, 3].map((turn) => sending(long, turn).sends.bodyFor(50));
      for (const [i, body] of bodies.entries()) {
        const kept = await prompt(world, job.id, i + 1);
        expect(kept).toMatchObject({ state: 'kept', body, since_step: i === 2 ? 1 : null });
        expect(kept.bytes).toBe(Buffer.byteLength(JSON.stringify(body)));
      }
      // Each of the three messages is stored once.
      expect(await keptBytes(world)).toBeLessThan(31_000);
      expect(await keptBytes(world)).toBeGreaterThan(30_000);
    });

    test('goes on from what an earlier claim has kept', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      await begun(world.journalOf(job), sending(long, 3));
      const before = await keptBytes(world);
      const later = world.journalOf(await world.lose(job));

      await begun(later, sending(long, 3));

      expect(await prompt(world, job.id, 2)).toMatchObject({
        body: sending(long, 3).sends.bodyFor(50),
      });
      expect((await keptBytes(world)) - before).toBeLessThan(300);
    });

    test('of more than 4 MiB, or of which no request can be made, is not kept, and the step says so', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);

      await begun(journal, sending('x'.repeat(4 * 1024 * 1024)));
      await begun(journal, { sends: null });
      await begun(journal, {});
      const unsent = new PromptOfCall(() => {
        throw new ModelError('refused', 'The request cannot be made');
      });
      await begun(journal, { sends: unsent });

      const states = [1, 2, 3, 4].map(async (n) => (await prompt(world, job.id, n)).state);
      expect(await Promise.all(states)).toEqual(['too_large', 'not_sent', 'off', 'not_sent']);
      expect(await keptBytes(world)).toBe(0);
    });

    test('is not kept beyond what the organization may have, also by calls that begin at once', async () => {
      const world = await thinkingWorld(engine);
      const config = { ...contextOf(world).config, promptsMaxMb: 1 };
      const jobs = await Promise.all(Array.from({ length: 8 }, () => world.claimed()));
      const text = 'x'.repeat(250_000);

      await Promise.all(jobs.map((job) => begun(world.journalOf(job, { config }), sending(text))));

      const kept = await Promise.all(jobs.map(({ id }) => prompt(world, id, 1)));
      const states = kept.map(({ state }) => state).toSorted();
      expect(states).toEqual([...Array(4).fill('cap_reached'), ...Array(4).fill('kept')]);
      expect(await keptBytes(world)).toBeLessThanOrEqual(1024 * 1024);
    });

    test('is removed when its days have passed since the last one of its job; and with the job', async () => {
      const world = await thinkingWorld(engine);
      const settings = new PromptSettings(contextOf(world));
      const [old, young] = [await world.claimed(), await world.claimed()];
      const journals = { old: world.journalOf(old), young: world.journalOf(young) };
      await begun(journals.old, sending(long));
      await begun(journals.young, sending(long));
      world.clock.advance(6 * dayMs);
      await begun(journals.young, sending(long, 2));
      expect(await settings.expire()).toBe(0);
      world.clock.advance(dayMs + 1);

      expect(await settings.expire()).toBe(1);

      expect(await prompt(world, old.id, 1)).toMatchObject({ state: 'expired', body: null });
      const { body } = await prompt(world, young.id, 2);
      expect(body).toMatchObject({ messages: [{}, {}] });
      expect(await keptBytes(world)).toBeGreaterThan(20_000);
      // A call after that is kept whole again.
      await begun(world.journalOf(await world.lose(old)), sending(long));
      expect(await prompt(world, old.id, 2)).toMatchObject({ state: 'kept' });
      await world.database.write((tx) => removeSteps(tx, [old.id, young.id]));
      expect(await keptBytes(world)).toBe(0);
    });
  });

  describe('a call of a model', () => {
    test('is recorded before it is made, with its reservation', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();

      const call = await begun(world.journalOf(job));

      expect(call).toMatchObject({
        n: 1,
        generation: 'g',
        model: 'openai/test',
        expected: 60,
        turn: 1,
        startedAt: world.clock.now(),
        reserved: 150,
        output: 50,
      });
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
        // It is shown as one that broke off.
        dialogue: 4,
        unreported: 3,
      });
      expect(await journal.recorded(asked('g'))).toMatchObject({ messages: [], turns: 0 });
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
          replaceBudget(tx, { ...owner, ...unlimited, tokens_per_day, updated_at: 0 }),
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
      const run = newRun(
        { id: 'nightly', organization_id: scheduled.organization_id },
        { slot: null, outcome: 'run_now', slots: 1, message: null },
        scheduled.id,
        world.clock.now(),
      );
      await world.database.write((tx) => insertRuns(tx, [run]));
      const journal = world.journalOf(scheduled);

      await journal.endCall(await begun(journal), said(saying('x')));

      const row = { prompt_tokens: 10, completion_tokens: 5, reserved_tokens: 0, calls: 1 };
      expect(await usageRows(world)).toMatchObject([
        { ...row, owner_kind: 'agent', owner_id: 'default' },
        { ...row, owner_kind: 'api_key', owner_id: world.caller.keyId },
        { ...row, owner_kind: 'scheduled_job', owner_id: 'nightly' },
        { ...row, owner_kind: 'skill', owner_id: 'test/v1.0/echo' },
        { ...row, owner_kind: 'user', owner_id: scheduled.user_id },
      ]);
    });

    test('costs what its tokens cost when it began, in its step, its message and for all its owners', async () => {
      const world = await thinkingWorld(engine);
      const journal = world.journalOf(await world.claimed());
      const priced = { model: 'a/model' };
      const usage = { prompt: 100, completion: 20, cacheRead: 60, reasoning: 5 };

      await journal.endCall(await begun(journal, priced), said(saying('x'), { usage }));
      await journal.endCall(
        await begun(journal, { ...priced, turn: 2 }),
        said(saying('y'), { usage: { prompt: 50, completion: null }, estimated: 7 }),
      );
      await journal.endCall(await begun(journal, { turn: 3 }), said(saying('z')));
      await begun(journal, { ...priced, turn: 4 });

      const [first, second, third, fourth] = await stepsOf(world);
      expect(first).toMatchObject({
        cache_read_tokens: 60,
        cache_write_tokens: null,
        reasoning_tokens: 5,
        cost: 140_000,
        estimated_cost: 0,
        reserved_cost: 0,
      });
      expect(JSON.parse(first?.price ?? '')).toMatchObject({
        source: 'operator',
        input: 1,
        output: 2,
      });
      expect(second).toMatchObject({ cost: 50_000, estimated_cost: 14_000 });
      expect(third).toMatchObject({ price: null, cost: null, estimated_cost: 0 });
      expect(fourth).toMatchObject({ cost: null, reserved_cost: 200_000 });
      const messages = await world.database.read.kysely
        .selectFrom('messages')
        .selectAll()
        .execute();
      const costs = messages.filter(({ role }) => role === 'assistant').map(({ cost }) => cost);
      expect(costs).toEqual([140_000, 50_000, null]);
      for (const row of await usageRows(world)) {
        const isPaying = row.owner_kind === 'agent' || row.owner_kind === 'api_key';
        expect(row).toMatchObject({
          calls: isPaying ? 4 : 3,
          cost: 190_000,
          estimated_cost: 14_000,
          reserved_cost: isPaying ? 200_000 : 0,
          unpriced_calls: 1,
          cache_read_tokens: 60,
          reasoning_tokens: 5,
        });
      }
    });
  });

  describe('a tool', () => {
    test('is observed once its end is on record, with its error', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const observed: unknown[] = [];
      const observers = new RunObservers();
      observers.add({ toolEnded: (_, tool) => void observed.push(tool) });
      const journal = world.journalOf(job, { observers });
      const [first, second] = await journal.endCall(
        await begun(journal),
        said(saying('', 'a', 'b')),
      );

      const startedAt = world.clock.now();
      world.clock.advance(1_000);
      await journal.endTool(first as PlannedTool, gave('a'));
      const error = { code: 'upstream_unavailable', message: 'it is down' };
      await journal.restartTool(second as PlannedTool);
      await journal.endTool(second as PlannedTool, gave('b', { status: 'failed', error }));

      expect(observed).toEqual([
        { n: first?.n, startedAt, name: 'a/v1.0/b', error: null },
        { n: second?.n, startedAt: startedAt + 1_000, name: 'a/v1.0/b', error: error.code },
      ]);
    });

    test('ends with its message and its changes of the memory', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      await journal.recorded(asked('g'));
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
      expect(await journal.recorded(asked('g'))).toMatchObject({ memory });
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
      const recorded = await world.journalOf(again).recorded(asked('g'));
      expect(recorded.open.size).toBe(0);
      expect(recorded.messages).toHaveLength(2);
    });
  });
});
