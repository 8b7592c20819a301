/** What waits in the queues of jobs, on both databases. */
import { describe, expect, test } from 'vitest';
import { jobCounts } from '../../src/core/jobs/jobs.store.ts';
import {
  countQueues,
  countUnendedKinds,
} from '../../src/core/jobs/queued-jobs/queued-jobs.store.ts';
import { readQueuedJobs } from '../../src/core/jobs/queued-jobs/queued-jobs.ts';
import { newId } from '../../src/kernel/ids.ts';
import { engines } from '../support/databases.ts';
import { completed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { plansOf, recording, rowsOf } from '../support/query-plans.ts';

const hour = 3_600_000;

/** Adds so many queued copies of a queued job, and counts them. */
async function copyQueued(world: JobsWorld, id: string, copies: number): Promise<void> {
  const row = await world.row(id);
  const change = { kind: row, from: null, to: 'queued' as const };
  await world.database.write(async (tx) => {
    for (let i = 0; i < copies; i += 500) {
      const n = Math.min(500, copies - i);
      await tx.insert(
        'jobs',
        Array.from({ length: n }, () => ({ ...row, id: newId() })),
      );
    }
    await jobCounts.change(
      tx,
      'copies',
      Array.from({ length: copies }, () => change),
    );
  });
}

describe.each(await engines())('on $name', (engine) => {
  test('counts by queue, organization, skill and agent what waits, runs and comes later', async () => {
    const world = await jobsWorld(engine);
    const { submit, clock, begin, callerOf, context } = world;
    const acme = await callerOf('acme');
    const ofAcme = { organizationId: 'acme', apiKeyId: acme.keyId };
    const running = await submit();
    const { run, ended } = await begin(running.id);
    const oldest = await submit(ofAcme);
    clock.advance(1_000);
    await submit({ ...ofAcme, skill: { category: 'test', name: 'other', version: 'v1.0' } });
    await submit({ ...ofAcme, triggerType: 'scheduled' });
    await submit({ ...ofAcme, timing: { delayMs: hour } });

    const all = await readQueuedJobs(context, null);
    const own = await readQueuedJobs(context, 'acme');
    run.end(completed());
    await ended;

    const since = clock.now() - 1_000;
    const later = { later: 1, nextAt: clock.now() + hour };
    expect(all.queues).toMatchObject([
      { name: 'skill-execution', waiting: 2, running: 1, later: 1, oldest: { id: oldest.id } },
      { name: 'scheduled-jobs', waiting: 1, running: 0, later: 0 },
    ]);
    expect(all.organizations).toMatchObject({
      data: [
        { name: 'acme', waiting: 3, running: 0, ...later, oldest: { id: oldest.id, since } },
        { name: 'default', waiting: 0, running: 1, later: 0, oldest: null, nextAt: null },
      ],
      total: 2,
    });
    expect(all.skills.data).toMatchObject([
      { name: 'test/v1.0/echo', waiting: 2, running: 1, ...later },
      { name: 'test/v1.0/other', waiting: 1, running: 0, later: 0 },
    ]);
    expect(all.agents.data).toMatchObject([
      { name: 'default', organizationId: 'acme', waiting: 3 },
      { name: 'default', organizationId: 'default', waiting: 0, running: 1 },
    ]);
    expect(own.organizations.data.map(({ name }) => name)).toEqual(['acme']);
    expect(own.queues.map(({ waiting, running: n }) => [waiting, n])).toEqual([
      [2, 0],
      [1, 0],
    ]);
  });

  test('counts the jobs that a limit holds, by the limit in words', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const row = await world.row(job.id);
    const gate = 'concurrency of test/v1.0/echo per user = default someone';
    const held = [1, 2].map(() => ({ ...row, id: newId(), held_by: gate }));
    const change = { kind: row, from: null, to: 'queued' as const };
    await world.database.write(async (tx) => {
      await tx.insert('jobs', held);
      await jobCounts.change(tx, 'copies', [change, change]);
    });

    const { skills, queues } = await readQueuedJobs(world.context, 'default');

    const limits = new Map([['concurrency of test/v1.0/echo per user', 2]]);
    expect(skills.data).toMatchObject([{ waiting: 3, read: 3, limits }]);
    expect(queues[0]?.byQueue['skill-execution']).toEqual({ waiting: 3, running: 0, held: 2 });
  });

  test('a run whose wait has ended waits for a slot, others are suspended', async () => {
    const world = await jobsWorld(engine);
    const { submit, attempt, clock, context } = world;
    const job = await submit();
    await attempt(job.id, completed());
    const row = await world.row(job.id);
    const change = (to: 'waiting') => ({ kind: row, from: null, to });
    const copy = { ...row, status: 'waiting' as const, finished_at: null };
    await world.database.write(async (tx) => {
      await tx.insert('jobs', [
        { ...copy, id: newId(), due_at: clock.now() - 1 },
        { ...copy, id: newId(), due_at: clock.now() + hour },
      ]);
      await jobCounts.change(tx, 'copies', [change('waiting'), change('waiting')]);
    });

    const { organizations } = await readQueuedJobs(context, null);

    expect(organizations.data).toMatchObject([
      { waiting: 1, suspended: 1, oldest: { since: clock.now() - 1 } },
    ]);
  });

  test('jobs that begin later count as later for their skill and agent, however many jobs are due', async () => {
    const world = await jobsWorld(engine);
    const { submit, context, clock } = world;
    const other = { category: 'test', name: 'other', version: 'v1.0' };
    const due = await submit();
    const delayed = await submit({ timing: { delayMs: hour } });
    const ofOther = await submit({ skill: other, timing: { delayMs: 2 * hour } });
    const expectCounts = async (waiting: number, later: number, laterOfOther: number) => {
      for (const id of [null, 'default']) {
        const { queues, organizations, skills, agents } = await readQueuedJobs(context, id);
        const all = { waiting, later: later + laterOfOther, isAtLeast: false };
        const nextAt = clock.now() + hour;
        expect(queues[0]).toMatchObject({ ...all, nextAt });
        expect(queues[0]?.byQueue['skill-execution'].waiting).toBe(waiting);
        expect(organizations.data).toMatchObject([{ ...all, nextAt }]);
        expect(agents.data).toMatchObject([all]);
        expect(skills.data).toMatchObject([
          { name: 'test/v1.0/echo', waiting, later, nextAt },
          { name: 'test/v1.0/other', waiting: 0, later: laterOfOther },
        ]);
      }
    };

    await expectCounts(1, 1, 1);
    // More of them than the next ones that are read for when they begin.
    await copyQueued(world, delayed.id, 1_200);
    await copyQueued(world, ofOther.id, 1_200);
    await expectCounts(1, 1_201, 1_201);
    await copyQueued(world, due.id, 2_500);
    await expectCounts(2_501, 1_201, 1_201);
  });

  test('of many organizations it shows those with the most due jobs and those that run the most', async () => {
    const world = await jobsWorld(engine);
    const { submit, context, database, clock, begin, callerOf } = world;
    const { keyId } = await callerOf('zz-busy');
    const running = await submit({ organizationId: 'zz-busy', apiKeyId: keyId });
    const { run, ended } = await begin(running.id);
    const row = await world.row((await submit()).id);
    const later = { run_at: clock.now() + hour, due_at: clock.now() + hour };
    // 120 organizations with three delayed jobs each, behind them ten with one due job.
    const names = Array.from({ length: 120 }, (_, i) => `delayed-${String(i).padStart(3, '0')}`);
    const jobs = [
      ...names.flatMap((name) => [1, 2, 3].map(() => ({ ...later, organization_id: name }))),
      ...Array.from({ length: 10 }, (_, i) => ({ organization_id: `late-${i}` })),
    ].map((fields) => ({ ...row, ...fields, id: newId() }));
    await database.write(async (tx) => {
      await tx.insert('jobs', jobs);
      await jobCounts.change(
        tx,
        'copies',
        jobs.map((kind) => ({ kind, from: null, to: 'queued' as const })),
      );
    });

    const { organizations, queues } = await readQueuedJobs(context, null);
    run.end(completed());
    await ended;

    const shown = organizations.data.map(({ name }) => name);
    expect(organizations.total).toBe(132);
    expect(shown).toHaveLength(100);
    for (let i = 0; i < 10; i++) expect(shown).toContain(`late-${i}`);
    expect(shown).toContain('zz-busy');
    // Those that are not shown count, too.
    expect(queues[0]).toMatchObject({ waiting: 11, later: 360, isAtLeast: false });
  });

  test('of each queue counts the jobs of clients among those that were counted, however many schedules start', async () => {
    const world = await jobsWorld(engine);
    const { submit, clock } = world;
    for (const more of [{}, { timing: { delayMs: hour } }]) {
      for (let i = 0; i < 3; i++) await submit(more);
    }
    for (const more of [{}, { timing: { delayMs: 2 * hour } }]) {
      for (let i = 0; i < 4; i++) await submit({ ...more, triggerType: 'scheduled' });
    }
    clock.advance(1_000);
    const count = (max: number) => countQueues(world.database.read, clock.now(), max);

    const cut = await count(4);
    const whole = await count(100);

    expect(cut['skill-execution']).toMatchObject({ later: 3, isCut: true });
    expect(cut['skill-execution'].due).toBeGreaterThan(0);
    expect(cut['scheduled-jobs']).toEqual({ due: 4, later: 4, isCut: true });
    expect(whole['skill-execution']).toEqual({ due: 3, later: 3, isCut: false });
    expect(whole['scheduled-jobs']).toEqual({ due: 4, later: 4, isCut: false });
  });

  test('of kept counts that are cut it counts whole kinds alone', async () => {
    const world = await jobsWorld(engine);
    const { database, submit } = world;
    const kind = await world.row((await submit()).id);
    // One process has counted what comes, and another one what goes.
    await database.write(async (tx) => {
      for (const agent_id of ['x', 'y']) {
        const changes = [1, 2, 3].map(() => ({
          kind: { ...kind, agent_id },
          from: null,
          to: 'queued' as const,
        }));
        await jobCounts.change(tx, 'a', changes);
        const back = changes
          .slice(1)
          .map((change) => ({ ...change, from: 'queued' as const, to: null }));
        await jobCounts.change(tx, 'b', back);
      }
    });
    const count = async (rowsMax: number) => {
      const { kinds, isCut } = await countUnendedKinds(database.read, ['default'], rowsMax);
      return { counts: kinds.map(({ agent_id, n }) => [agent_id, n]), isCut };
    };
    const first = ['default', 1];

    expect(await count(2)).toEqual({ counts: [first], isCut: true });
    expect(await count(4)).toEqual({ counts: [first, ['x', 1]], isCut: true });
    expect(await count(5)).toEqual({ counts: [first, ['x', 1]], isCut: true });
    expect(await count(100)).toEqual({ counts: [first, ['x', 1], ['y', 1]], isCut: false });
  });

  test('the woken runs of an organization are found behind those of another one', async () => {
    const world = await jobsWorld(engine);
    const { submit, attempt, clock, context, database } = world;
    const job = await submit();
    await attempt(job.id, completed());
    const row = await world.row(job.id);
    const copy = { ...row, status: 'waiting' as const, finished_at: null, due_at: clock.now() - 2 };
    await database.write(async (tx) => {
      const loud = Array.from({ length: 1_500 }, () => ({ ...copy, id: newId() }));
      await tx.insert('jobs', loud.slice(0, 750));
      await tx.insert('jobs', loud.slice(750));
      await tx.insert('jobs', [
        { ...copy, organization_id: 'quiet', id: newId(), due_at: clock.now() - 1 },
      ]);
    });
    const { handle, asked } = recording(database);

    const { organizations } = await readQueuedJobs(
      { ...context, database: { ...database, read: handle } as typeof database },
      'quiet',
    );

    expect(organizations.data).toMatchObject([{ name: 'quiet', waiting: 1 }]);
    for (const query of asked) {
      if (engine.name === 'PostgreSQL') expect(await rowsOf(database, query)).toBeLessThan(10);
      else {
        const plans = await plansOf(database, 'jobs', query);
        for (const plan of plans) expect(plan).toMatch(/organization_id=\?|\(id=\?\)/);
      }
    }
  });

  test('reads few rows of many, and finds the oldest job of a quiet organization behind them', async () => {
    const world = await jobsWorld(engine);
    const { submit, clock, callerOf, context, database } = world;
    const loud = await submit();
    const later = await submit({ timing: { delayMs: hour } });
    await copyQueued(world, loud.id, 4_000);
    await copyQueued(world, later.id, 4_000);
    clock.advance(1_000);
    const { keyId } = await callerOf('quiet');
    const quiet = await submit({ organizationId: 'quiet', apiKeyId: keyId });
    const { handle, asked } = recording(database);

    const { queues, organizations } = await readQueuedJobs(
      { ...context, database: { ...database, read: handle } as typeof database },
      null,
    );

    expect(organizations.data).toMatchObject([
      { name: 'default', later: 1_000, isAtLeast: true },
      { name: 'quiet', waiting: 1, oldest: { id: quiet.id } },
    ]);
    expect(queues[0]).toMatchObject({ waiting: 1_001, later: 1_000, isAtLeast: true });
    for (const query of asked) {
      if (engine.name === 'PostgreSQL') {
        // Later jobs of all organizations are counted to 10,000 in an index.
        expect(await rowsOf(database, query), query.sql).toBeLessThan(
          query.sql.includes('count(*)') ? 5_100 : 2_500,
        );
      } else {
        const plans = await plansOf(database, 'jobs', query);
        expect(plans.filter((plan) => plan.startsWith('SCAN jobs'))).toEqual([]);
      }
    }
    expect(asked.length).toBeGreaterThan(5);
  });
});
