/** The memory changes of an attempt on every database (docs/decisions/memories.md). */
import { describe, expect, test, vi } from 'vitest';
import type { ClaimedJob } from '../../src/core/jobs/jobs.store.ts';
import { PartChanges } from '../../src/core/memories/part-changes.ts';
import { RunMemories, type RunMemory } from '../../src/core/memories/run-memory.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { anyWriter } from '../support/writers.ts';

const own = { organizationId: 'default', agentId: 'default' };
const page = { limit: 200, offset: 0 };

const known = async ({ memories }: JobsWorld, filter = {}) =>
  (await memories.list(own, filter, page)).memories.map(({ content }) => content);
const remember = async (run: ScriptedRun, content: string) =>
  (await run.ask('remember', { content })) as { id: string };
const newMemoryOf = ({ memories }: JobsWorld) => memories.create(own, { content: 'of a client' });
const contents = (recalled: unknown) =>
  (recalled as { content: string }[]).map(({ content }) => content);

const noting = (changes: PartChanges) => ({ step: null, changes });

describe.each(await engines())('on $name', (engine) => {
  test('an attempt that completes records it together with its job', async () => {
    const world = await jobsWorld(engine);
    const stored = await world.memories.create(own, { content: 'old tea' });
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      await remember(run, 'new tea');
      expect(await run.ask('forget', stored.id)).toBe(true);
      expect(contents(await run.ask('recall', { query: 'tea' }))).toEqual(['new tea']);
      expect(await known(world)).toEqual(['old tea']);
    });

    expect((await world.row(job.id)).status).toBe('completed');
    expect(await known(world)).toEqual(['new tea']);
    expect(await known(world, { q: 'tea' })).toEqual(['new tea']);
    await expectConsistent(world.database);
  });

  test.each([
    ['fails', failed()],
    ['fails for good', failed({ retryable: false })],
    ['times out', { kind: 'timeout', message: 'too long' } as const],
    ['is lost', { kind: 'lost', message: 'it died' } as const],
    ['is displaced', { kind: 'displaced', suspect: true } as const],
    ['is handed back', { kind: 'aborted' } as const],
  ])('an attempt that %s leaves nothing behind', async (_, outcome) => {
    const world = await jobsWorld(engine);
    const stored = await world.memories.create(own, { content: 'old' });
    const job = await world.submit();

    await world.attempt(job.id, outcome, async (run) => {
      await remember(run, 'new');
      await run.ask('forget', stored.id);
    });

    expect(await known(world)).toEqual(['old']);
  });

  test('an attempt with a requested cancellation records nothing, even when it completes', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run, ended } = await world.begin(job.id);
    await remember(run, 'new');

    await world.jobs.cancel('default', job.id);
    run.end(completed());
    await ended;

    expect((await world.row(job.id)).status).toBe('cancelled');
    expect(await known(world)).toEqual([]);
  });

  test('an attempt that has lost its lease records nothing, the holder’s memories are kept once', async () => {
    const world = await jobsWorld(engine);
    const other = world.worker('second');
    const job = await world.submit();
    const late = await world.begin(job.id);
    await remember(late.run, 'once');
    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
    world.clock.advance(60_000);

    await other.attempt(job.id, completed(), (run) => remember(run, 'once'));
    late.run.end(completed());
    await late.ended;

    expect((await world.row(job.id)).status).toBe('completed');
    expect(await known(world)).toEqual(['once']);
    await expectConsistent(world.database);
  });

  test('what cannot be recorded leaves the job as it was', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run, ended } = await world.begin(job.id);
    await remember(run, 'new');
    await world.database.write((tx) => tx.kysely.schema.dropTable('memory_tags').execute());

    run.end(completed());

    await expect(ended).rejects.toThrow();
    expect((await world.row(job.id)).status).toBe('active');
    expect(await known(world)).toEqual([]);
  });

  test('50 runs that complete together keep all that each remembers', async () => {
    const world = await jobsWorld(engine);
    const stored = await world.memories.create(own, { content: 'old' });
    const jobs = await Promise.all(Array.from({ length: 50 }, () => world.submit()));
    const runs = await Promise.all(jobs.map(({ id }) => world.begin(id)));

    for (const [i, { run }] of runs.entries()) {
      await remember(run, `of ${i}`);
      // All of them forget the same one.
      expect(await run.ask('forget', stored.id)).toBe(true);
    }
    for (const { run } of runs) run.end(completed());
    await Promise.all(runs.map(({ ended }) => ended));

    expect((await known(world)).sort()).toEqual(runs.map((_, i) => `of ${i}`).sort());
    expect((await world.memories.list(own, { tag: 'fact' }, page)).total).toBe(50);
    expect((await world.memories.list(own, { q: 'old' }, page)).total).toBe(0);
    await expectConsistent(world.database);
  });

  test('calls that are not awaited are applied before the end', async () => {
    const world = await jobsWorld(engine);
    const stored = await world.memories.create(own, { content: 'old' });
    const job = await world.submit();

    await world.attempt(job.id, completed(), (run) => {
      void run.ask('remember', { content: 'new' });
      void run.ask('forget', stored.id);
    });

    expect(await known(world)).toEqual(['new']);
  });

  test('an agent of the same id that was created later gets nothing', async () => {
    const world = await jobsWorld(engine);
    const { id: agentId } = await world.agents.create(anyWriter(), { id: 'brief' });
    const brief = { organizationId: 'default', agentId };
    const job = await world.submit({ agentId });

    await world.attempt(job.id, completed(), async (run) => {
      await remember(run, 'lost');
      await world.agents.remove(anyWriter(), agentId);
      world.clock.advance(1);
      await world.agents.create(anyWriter(), { id: agentId });
    });

    expect((await world.row(job.id)).status).toBe('completed');
    expect((await world.memories.list(brief, {}, page)).total).toBe(0);
    await expectConsistent(world.database);
  });

  test('a query recalls every match, also those that are too long to be ranked', async () => {
    const world = await jobsWorld(engine);
    for (let i = 0; i < 12; i += 1) {
      await world.memories.create(own, { content: `tea${' tea'.repeat(9_990)} ${i}` });
    }
    await world.memories.create(own, { content: 'tea' });
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      await remember(run, 'tea too');
      const recalled = contents(await run.ask('recall', { query: 'tea', limit: 200 }));
      expect(recalled).toHaveLength(14);
      expect(new Set(recalled).size).toBe(14);
      expect(contents(await run.ask('recall', { query: 'tea', limit: 3 }))).toHaveLength(3);
    });

    expect((await world.memories.list(own, { q: 'tea' }, page)).total).toBe(14);
  });

  test('forgotten memories do not displace others from the ranking', async () => {
    const world = await jobsWorld(engine);
    await world.memories.create(own, { content: 'tea, short' });
    const long: string[] = [];
    for (let i = 0; i < 7; i += 1) {
      const { id } = await world.memories.create(own, { content: `tea${' x'.repeat(9_998)}` });
      long.push(id);
    }
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      for (const id of long.slice(0, 2)) expect(await run.ask('forget', id)).toBe(true);
      const recalled = contents(await run.ask('recall', { query: 'tea' }));
      expect(recalled).toHaveLength(6);
      expect(recalled[0]).toBe('tea, short');
    });

    const { total } = await world.memories.list(own, { q: 'tea' }, page);
    expect(total).toBe(6);
    await expectConsistent(world.database);
  });

  test('a run may remember and forget 400 times', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      for (let i = 0; i < 200; i += 1) {
        const { id } = await remember(run, 'x');
        await run.ask('forget', id);
      }
      await expect(run.ask('forget', (await newMemoryOf(world)).id)).rejects.toThrow(
        'a run may remember and forget 400 times',
      );
      await expect(remember(run, 'x')).rejects.toThrow('a run may remember 200 memories');
    });

    expect(await known(world)).toEqual(['of a client']);
  });

  test('a run may remember 20,000 words, and forget memories of as many', async () => {
    const world = await jobsWorld(engine);
    const words = (count: number) => 'tea '.repeat(count);
    const stored: string[] = [];
    for (const count of [9_999, 10_000, 2, 1]) {
      stored.push((await world.memories.create(own, { content: 'milk '.repeat(count) })).id);
    }
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      await remember(run, words(9_999));
      await remember(run, words(10_000));
      await expect(remember(run, words(2))).rejects.toThrow('a run may remember 20000 words');
      await remember(run, words(1));
      for (const id of stored.slice(0, 2)) expect(await run.ask('forget', id)).toBe(true);
      await expect(run.ask('forget', stored[2])).rejects.toThrow(
        'a run may forget memories of 20000 words',
      );
      expect(await run.ask('forget', stored[3])).toBe(true);
    });

    expect((await world.memories.list(own, {}, page)).total).toBe(4);
    await expectConsistent(world.database);
  });

  test('a memory that is refused for its size or number is not split into words', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      for (let i = 0; i < 200; i += 1) await remember(run, 'x');
      const split = vi.spyOn(Intl.Segmenter.prototype, 'segment');
      const attempts = [{ content: '東京都庁' }, { content: '漢'.repeat(65_536) }];
      for (const payload of attempts) await expect(run.ask('remember', payload)).rejects.toThrow();
      expect(split).not.toHaveBeenCalled();
      split.mockRestore();
    });
  });

  test('between any two answers the process is free for others', async () => {
    const world = await jobsWorld(engine);
    const jobs = [await world.submit(), await world.submit()];
    const runs = await Promise.all(jobs.map(({ id }) => world.begin(id)));
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };

    setImmediate(count);
    const answeredIn = await Promise.all(
      runs.flatMap(({ run }) =>
        Array.from({ length: 50 }, async () => {
          await run.ask('recall', { query: 'tea' });
          return turns;
        }),
      ),
    );
    isOver = true;
    for (const { run } of runs) run.end(completed());
    await Promise.all(runs.map(({ ended }) => ended));

    const ofOne = [answeredIn.slice(0, 50), answeredIn.slice(50)];
    for (const answered of ofOne) expect(new Set(answered).size).toBe(50);
    // Elsewhere an answer comes over the network, and two of them may well arrive together.
    if (engine.name === 'SQLite') expect(new Set(answeredIn).size).toBe(100);
  });

  test('questions are answered in the order in which they are asked', async () => {
    const world = await jobsWorld(engine);
    const stored = await world.memories.create(own, { content: 'old' });
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      const [, recalled, , emptied] = await Promise.all([
        remember(run, 'new'),
        run.ask('recall', {}),
        run.ask('forget', stored.id),
        run.ask('recall', {}),
      ]);
      expect([contents(recalled), contents(emptied)]).toEqual([['new', 'old'], ['new']]);
    });
  });

  test('the rows beside the memories are kept consistent', async () => {
    const world = await jobsWorld(engine);
    await world.memories.create(own, { content: 'tea' });
    await expectConsistent(world.database);

    await world.database.write((tx) =>
      tx.kysely.updateTable('memory_tags').set({ count: 2 }).execute(),
    );

    await expect(expectConsistent(world.database)).rejects.toThrow('counts of tags');
  });

  test('after deletions other writes go on as before', async () => {
    const world = await jobsWorld(engine);
    for (let round = 0; round < 3; round += 1) {
      const made: string[] = [];
      for (let i = 0; i < 20; i += 1) {
        made.push((await world.memories.create(own, { content: `tea ${i}` })).id);
      }
      for (const id of made) await world.memories.remove(own, id);
      const job = await world.submit();
      await world.attempt(job.id, completed());
      expect((await world.row(job.id)).status).toBe('completed');
    }
    expect(await known(world)).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['remember', undefined],
    ['remember', 'x'],
    ['remember', { content: 'a\0b' }],
    ['remember', { content: '\ud800' }],
    ['remember', { content: ['x'] }],
    ['remember', { content: 'x'.repeat(65_537) }],
    ['remember', { content: 'x', tag: '\0' }],
    ['remember', { content: 'x', tag: { length: 3 } }],
    ['remember', { content: 'x', metadata: { a: '\0' } }],
    ['remember', { content: 'x', metadata: { '\udfff': 1 } }],
    ['remember', { content: 'x', metadata: JSON.parse('['.repeat(99) + ']'.repeat(99)) }],
    ['remember', { content: 'x', metadata: { a: JSON.parse('['.repeat(99) + ']'.repeat(99)) } }],
    ['remember', { content: 'x', organization_id: 'other' }],
    ['remember', JSON.parse('{"content":"x","__proto__":{"tag":"t"}}')],
    ['recall', 'tea'],
    ['recall', { query: '\0' }],
    ['recall', { tag: '\ud800' }],
    ['recall', { limit: 1e9 }],
    ['recall', { limit: '1' }],
    ['recall', { agent_id: 'other' }],
    ['forget', null],
    ['forget', { toString: () => 'x' }],
    ['forget', 7],
  ])('a child that asks to %s with %j is refused', async (kind, payload) => {
    const world = await jobsWorld(engine);
    const job = await world.submit();

    await world.attempt(job.id, completed(), async (run) => {
      await expect(run.ask(kind, payload)).rejects.toMatchObject({
        message: expect.stringMatching(/\S/),
        retryable: false,
      });
    });

    expect(await known(world)).toEqual([]);
  });

  describe('a repeated attempt', () => {
    /** A job under way, the memory of each attempt at it, and its end, which keeps what one did. */
    async function attempts() {
      const world = await jobsWorld(engine, { freeSlots: () => 1 });
      await world.submit();
      const job = world.begun[0] as ClaimedJob;
      const { context, memories, agents } = world;
      const runMemories = new RunMemories(context, memories, agents);
      return {
        world,
        begin: () =>
          runMemories.begin({
            ...own,
            userId: null,
            jobId: job.id,
            conversationId: job.conversation_id,
            acceptedAt: job.created_at,
            isTrial: false,
          }),
        complete: async (memory: RunMemory) =>
          world.settle({
            job,
            outcome: { kind: 'completed', output: '1' },
            messages: [],
            memory: await memory.changes(),
          }),
      };
    }

    test('restores the changes of a part that does not run again, under the same ids', async () => {
      const { world, begin, complete } = await attempts();
      const stored = await world.memories.create(own, { content: 'old tea' });
      const noted = new PartChanges(null);
      const note = noting(noted);
      const first = begin();
      const fields = { content: 'new tea', tag: 'drink', metadata: { hot: true } };
      const made = (await first.ask('remember', fields, note)) as Record<string, unknown>;
      const again = await first.ask('remember', { content: 'brief' }, note);
      await first.ask('forget', (again as { id: string }).id, note);
      await first.ask('forget', stored.id, note);
      // Neither of these changes anything.
      await first.ask('forget', stored.id, note);
      await first.ask('recall', {}, note);
      expect(noted.list).toHaveLength(4);
      world.clock.advance(60_000);

      const second = begin();
      // As they come from the record.
      await second.restore(JSON.parse(JSON.stringify(noted.list)));

      expect(await second.ask('recall', {})).toEqual([made]);
      expect(await second.ask('recall', { query: 'tea' })).toEqual([made]);
      expect(await known(world)).toEqual(['old tea']);
      expect(await complete(second)).toBe('completed');
      expect((await world.memories.list(own, {}, page)).memories).toEqual([
        { ...made, agent_id: 'default', source: expect.objectContaining({ step: null }) },
      ]);
      expect(await known(world, { q: 'tea' })).toEqual(['new tea']);
      await expectConsistent(world.database);
    });

    test('has restored memories once, after any number of restores', async () => {
      const { world, begin, complete } = await attempts();
      const noted = new PartChanges(null);
      await begin().ask('remember', { content: 'once' }, noting(noted));

      const second = begin();
      await second.restore(noted.list);
      await second.restore(noted.list);
      await second.ask('remember', { content: 'then' });

      expect(contents(await second.ask('recall', {}))).toEqual(['then', 'once']);
      expect(await complete(second)).toBe('completed');
      expect((await known(world)).sort()).toEqual(['once', 'then']);
    });

    test('skips a memory that another writer has deleted meanwhile', async () => {
      const { world, begin, complete } = await attempts();
      const stored = await world.memories.create(own, { content: 'old' });
      const noted = new PartChanges(null);
      await begin().ask('forget', stored.id, noting(noted));
      await world.memories.remove(own, stored.id);

      const second = begin();
      await second.restore(noted.list);

      expect(await complete(second)).toBe('completed');
      expect(await known(world)).toEqual([]);
      await expectConsistent(world.database);
    });

    test('counts restored changes in the bounds of the run', async () => {
      const { begin } = await attempts();
      const noted = new PartChanges(null);
      const first = begin();
      for (let i = 0; i < 200; i += 1) {
        await first.ask('remember', { content: `x${i}` }, noting(noted));
      }

      const second = begin();
      await second.restore(noted.list);

      await expect(second.ask('remember', { content: 'x' })).rejects.toMatchObject({
        message: 'a run may remember 200 memories',
        retryable: false,
      });
      expect(await second.ask('recall', { limit: 200 })).toHaveLength(200);
    });

    test('reverts the changes of a part that runs again', async () => {
      const { world, begin, complete } = await attempts();
      const stored = await world.memories.create(own, { content: 'old' });
      const memory = begin();
      const kept = (await memory.ask('remember', { content: 'kept' })) as { id: string };
      const noted = new PartChanges(null);
      const note = noting(noted);
      await memory.ask('remember', { content: 'new' }, note);
      await memory.ask('forget', kept.id, note);
      await memory.ask('forget', stored.id, note);
      expect(contents(await memory.ask('recall', {}))).toEqual(['new']);

      await memory.undo(noted.list);

      expect(contents(await memory.ask('recall', {}))).toEqual(['kept', 'old']);
      expect(await complete(memory)).toBe('completed');
      expect((await known(world)).sort()).toEqual(['kept', 'old']);
      await expectConsistent(world.database);
    });
  });

  test('a run that does not use memories makes no query on them', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    await world.database.write(async (tx) => {
      for (const table of ['memories', 'memory_owners', 'memory_tags']) {
        await tx.kysely.schema.dropTable(table).execute();
      }
    });

    await world.attempt(job.id, completed());

    expect((await world.row(job.id)).status).toBe('completed');
  });
});
