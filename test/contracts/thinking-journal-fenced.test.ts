/** The journal of claims that lost their job, that lose the database, and that write at once. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Transaction } from '../../src/adapters/database/database.ts';
import { RunObservers } from '../../src/core/context/run-observer.ts';
import { endAbandonedSteps } from '../../src/core/journal/abandoned-steps.ts';
import { LeaseLostError } from '../../src/core/journal/claim-writes.ts';
import { isHeld } from '../../src/core/journal/record-queries.ts';
import type { PlannedTool } from '../../src/core/thinking/recorded-generation.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import type { JobsWorld } from '../support/jobs-world.ts';
import {
  begun,
  breaking,
  expectLedger,
  gave,
  said,
  saying,
  stepsOf,
  thinkingWorld,
  usageRows,
  wanted,
} from '../support/thinking-journal.ts';
import { waitFor } from '../support/wait-for.ts';
import { anyWriter } from '../support/writers.ts';

describe.each(await engines())('on $name', (engine) => {
  describe('a claim that has lost its job', () => {
    test('records nothing', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const observed: unknown[] = [];
      const observers = new RunObservers();
      observers.add({
        modelCalled: (_, call) => void observed.push(call),
        toolEnded: (_, tool) => void observed.push(tool),
      });
      const late = world.journalOf(job, { observers });
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

      await world.settle({
        job,
        outcome: { kind: 'cancelled' },
        messages: [],
        openedJournal: true,
      });

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
        const slow = world.journalOf(job);
        slow.steps.isHeld = async (tx) => {
          const held = await isHeld(tx, job);
          if (isSlow) {
            reached.resolve();
            await gate.promise;
          }
          return held;
        };
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
      expect(call).toMatchObject({
        n: 1,
        generation: 'g',
        turn: 1,
        model: 'openai/test',
        startedAt: world.clock.now(),
        reserved: 150,
        expected: 60,
        output: 50,
      });
      const [tool] = await journal.endCall(call, said(saying('', 'a')));
      await journal.endTool(tool as PlannedTool, gave('a'));
      const failed = await begun(journal, { turn: 2 });
      // Without a message, of which an id would tell.
      await journal.endCall(failed, {
        ...said(saying('')),
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

      const journal = world.journalOf(job);
      journal.steps.isHeld = isHeldNever;

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
      for (const id of ['a', 'c']) await world.agents.create(anyWriter(), { id });
      const fields = { triggerType: 'scheduled', maxAttempts: 1 } as const;
      const first = await world.claimed({ ...fields, agentId: 'a' });
      const second = await world.claimed({ ...fields, agentId: 'c', apiKeyId: other.keyId });
      const between = await world.claimed({ agentId: 'c' });
      for (const job of [first, second]) await begun(world.journalOf(job));
      const journal = world.journalOf(between);
      const call = await begun(journal);
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      /** Stops before it reads which schedule pays for the second job. */
      const stopping = (tx: Transaction): Transaction =>
        Object.create(tx, {
          first: {
            async value(...[statement, params]: Parameters<Transaction['first']>) {
              if ((params as { job_id?: string }).job_id === second.id) {
                reached.resolve();
                await gate.promise;
              }
              return tx.first(statement, params);
            },
          },
        });

      const ended = world.database.write((tx) =>
        endAbandonedSteps(
          stopping(tx),
          [first, second].map((job) => ({ job, isCancelled: false })),
          world.clock.now(),
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
    for (const id of agents) await world.agents.create(anyWriter(), { id });
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
          ? journal.endCall(beside, said(saying('beside')))
          : world.settle({
              job,
              outcome: { kind: 'failed', ...interruption, retryable: false },
              messages: [],
              openedJournal: true,
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
    const sums = { calls: count * 2, reserved: 0, estimated: (count / 2) * 60 };
    expect(totals).toEqual([
      { owner_kind: 'agent', ...sums },
      { owner_kind: 'api_key', ...sums },
      { owner_kind: 'skill', ...sums },
      { owner_kind: 'user', ...sums },
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
