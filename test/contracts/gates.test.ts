/** Limits of skills: work beyond one waits at its gate, and begins when a place is free. */
import { CompiledQuery, sql } from 'kysely';
import { describe, expect, test, vi } from 'vitest';
import type { Statement } from '../../src/adapters/database/statement.ts';
import { lockGates } from '../../src/core/jobs/gates/gate-locks.ts';
import { listGatedWorks, moveHeld } from '../../src/core/jobs/gates/held-jobs.store.ts';
import type { ClaimedJob, JobRow } from '../../src/core/jobs/jobs.store.ts';
import { readQueuedJobs } from '../../src/core/jobs/queued-jobs/queued-jobs.ts';
import {
  limitOfAgent,
  limitOfKey,
  limitOfOrganization,
  pauseOfAgent,
  pauseOfOrganization,
  pauseOfSkill,
  settableLimits,
} from '../../src/core/limits/limit-names.ts';
import { LimitSettings } from '../../src/core/limits/limit-settings.ts';
import type { LimitScope, SkillConcurrency } from '../../src/core/skills/definition.ts';
import { newId } from '../../src/kernel/ids.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';
import { rounds } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

const facts = (name: string, concurrency: SkillConcurrency | SkillConcurrency[] = []) => ({
  category: 'test',
  name,
  version: 'v1.0',
  displayName: name,
  description: name,
  parameters: { type: 'object' },
  output: {},
  concurrency,
});
const limited = { category: 'test', name: 'limited', version: 'v1.0' };
const words = 'concurrency of test/v1.0/limited';
/** The gate of this limit. */
const gate = words;
/** A place of a job at it. */
const placeAt = (job_id: string) => ({
  ...{ gate, job_id, n: 0, organization_id: 'default' },
  ...{ is_held: 1, since: newId() },
});

/** What a gate records has to fit the jobs: places only of jobs that may begin or run, and a row for each gate with waits. */
async function expectGatesConsistent({ database }: JobsWorld) {
  await expectConsistent(database);
  const db = database.read.kysely;
  const jobs = new Map((await db.selectFrom('jobs').selectAll().execute()).map((j) => [j.id, j]));
  const places = await db.selectFrom('places').selectAll().execute();
  for (const { job_id, is_held } of places) {
    expect(['queued', 'active']).toContain(jobs.get(job_id)?.status);
    // Gates have passed over only what waits.
    const held_by = is_held === -2 ? expect.any(String) : null;
    expect(jobs.get(job_id)).toMatchObject({ held_by, gated: 1 });
  }
  const gates = new Set((await db.selectFrom('gates').select('name').execute()).map((g) => g.name));
  for (const { held_by, status } of jobs.values()) {
    if (held_by === null) continue;
    expect(gates).toContain(held_by);
    expect(['queued', 'waiting']).toContain(status);
  }
}

describe.each(await engines())('on $name', (engine) => {
  async function worldOf(
    concurrency: SkillConcurrency | SkillConcurrency[],
    options: Parameters<typeof jobsWorld>[1] = {},
  ) {
    const world = await jobsWorld(engine, options);
    await limitTo(world, concurrency);
    return world;
  }
  const limitTo = (world: JobsWorld, concurrency: SkillConcurrency | SkillConcurrency[]) =>
    world.skills.register([facts('echo'), facts('limited', concurrency)]);
  const submit = (world: JobsWorld, fields: Parameters<JobsWorld['submit']>[0] = {}) =>
    world.submit({ skill: limited, ...fields });
  const waitingFor = async (world: JobsWorld, id: string) =>
    (await world.jobs.get('default', id)).waiting_for;
  const placesOf = async ({ database }: JobsWorld, jobs: readonly { id: string }[]) => {
    const places = database.read.kysely.selectFrom('places').where('is_held', '=', 1);
    const rows = await places.select('job_id').execute();
    return jobs.map(({ id }) => rows.filter(({ job_id }) => job_id === id).length);
  };
  const heldBy = async (world: JobsWorld, jobs: readonly { id: string }[]) =>
    Promise.all(jobs.map(async ({ id }) => (await world.row(id)).held_by));

  test('a job beyond the limit waits, says for what, and is announced when a place is free', async () => {
    const world = await worldOf({ limit: 2 });
    const [first, second, third] = [await submit(world), await submit(world), await submit(world)];
    expect(await waitingFor(world, first.id)).toBeNull();
    expect(await waitingFor(world, third.id)).toBe(words);
    expect(world.hints.map(({ id }) => id)).toEqual([first.id, second.id]);
    expect(await world.attempt(third.id, completed())).toBe(false);
    const { run, ended } = await world.begin(second.id);

    run.end(completed());
    await ended;

    expect(await waitingFor(world, third.id)).toBeNull();
    expect(world.hints.map(({ id }) => id)).toEqual([first.id, second.id, third.id]);
    await world.attempt(first.id, completed());
    await world.attempt(third.id, completed());
    await expectGatesConsistent(world);
    const { kysely } = world.database.read;
    expect(await kysely.selectFrom('places').selectAll().execute()).toEqual([]);
    expect(await kysely.selectFrom('gates').selectAll().execute()).toEqual([]);
  });

  test('of a batch as many jobs as the limit may begin, also where they begin as they are accepted', async () => {
    const world = await worldOf({ limit: 2 }, { freeSlots: () => 9 });

    const accepted = await world.database.write((tx) =>
      world.acceptor.acceptWithin(
        tx,
        Array.from({ length: 5 }, () => world.request({ skill: limited })),
      ),
    );

    const ids = accepted.map((one) => (one as { job: { id: string } }).job.id);
    expect(world.begun.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(
      await heldBy(
        world,
        ids.map((id) => ({ id })),
      ),
    ).toEqual([null, null, words, words, words]);
    await expectGatesConsistent(world);
  });

  test.each<[LimitScope, Parameters<JobsWorld['submit']>[0]]>([
    ['user', { userId: 'another' }],
    ['agent', { agentId: 'another' }],
    ['client-key', { concurrencyKey: 'another' }],
  ])('a limit per %s counts what is alike', async (per, other) => {
    const world = await worldOf({ limit: 1, per });

    const jobs = [await submit(world), await submit(world), await submit(world, other)];

    const [first, second, third] = await Promise.all(jobs.map(({ id }) => waitingFor(world, id)));
    expect([first, second, third]).toEqual([null, `${words} per ${per}`, null]);
  });

  test.each(['organization', 'key'] as const)(
    'a limit per %s counts what is alike',
    async (per) => {
      const world = await worldOf({ limit: 1, per });
      const { organizationId, keyId: apiKeyId } = await world.callerOf('acme');
      const other = { organizationId, apiKeyId };

      const jobs = [await submit(world), await submit(world), await submit(world, other)];

      const [first, second, third] = await heldBy(world, jobs);
      expect([first, third]).toEqual([null, null]);
      expect(second).toContain(`${words} per ${per}`);
    },
  );

  test('the smallest of several limits counts', async () => {
    const world = await worldOf([{ limit: 3 }, { limit: 1, per: 'user' }]);

    const jobs: { id: string }[] = [];
    for (const userId of ['a', 'a', 'b', 'c', 'd']) jobs.push(await submit(world, { userId }));

    const waiting = await Promise.all(jobs.map(({ id }) => waitingFor(world, id)));
    expect(waiting).toEqual([null, `${words} per user`, null, null, words]);
  });

  test('a job gets the places of all its gates or none, and the next one that can have all goes before it', async () => {
    const world = await worldOf([{ limit: 2 }, { limit: 1, per: 'user' }]);
    const [a, b] = [{ userId: 'a' }, { userId: 'b' }];
    const [ofA, ofB] = [await submit(world, a), await submit(world, b)];
    const [x, y] = [await submit(world, a), await submit(world, b)];
    expect(await heldBy(world, [x, y])).toEqual([words, words]);

    await world.attempt(ofB.id, completed());

    expect(await heldBy(world, [x, y])).toEqual([words, null]);
    expect(await placesOf(world, [ofA, x, y])).toEqual([2, 0, 2]);
    expect(world.hints.map(({ id }) => id)).not.toContain(x.id);
    await world.attempt(ofA.id, completed());
    expect(await placesOf(world, [x, y])).toEqual([2, 2]);
    expect(await world.attempt(x.id, completed())).toBe(true);
    expect(await world.attempt(y.id, completed())).toBe(true);
    await expectGatesConsistent(world);
  });

  test('a job that lacks a place at another gate waits there and has none', async () => {
    const world = await worldOf([{ limit: 2 }, { limit: 1, per: 'user' }]);
    const [ofA, ofB] = [await submit(world, { userId: 'a' }), await submit(world, { userId: 'b' })];
    const waiting = [await submit(world, { userId: 'a' }), await submit(world, { userId: 'a' })];

    await world.attempt(ofB.id, completed());

    const perUser = await Promise.all(waiting.map(({ id }) => waitingFor(world, id)));
    expect(perUser).toEqual([`${words} per user`, `${words} per user`]);
    expect(await placesOf(world, [ofA, ...waiting])).toEqual([2, 0, 0]);
    await world.attempt(ofA.id, completed());
    expect(await placesOf(world, waiting)).toEqual([2, 0]);
    for (const { id } of waiting) expect(await world.attempt(id, completed())).toBe(true);
    await expectGatesConsistent(world);
  });

  test('a place for which no work may begin takes one turn, and the sweep finds what may begin behind it', async () => {
    const world = await worldOf([{ limit: 2 }, { limit: 1, per: 'user' }]);
    const [, ofB] = [await submit(world, { userId: 'a' }), await submit(world, { userId: 'b' })];
    await world.database.write((tx) =>
      world.acceptor.acceptWithin(
        tx,
        Array.from({ length: 200 }, () => world.request({ skill: limited, userId: 'a' })),
      ),
    );
    const free = await submit(world, { userId: 'c' });
    const { kysely } = world.database.read;

    await world.attempt(ofB.id, completed());

    const turns = kysely.selectFrom('gates').select('turn').where('name', '=', words);
    expect((await turns.executeTakeFirst())?.turn).toBe(1);
    expect(await heldBy(world, [free])).toEqual([words]);
    await world.recovery.sweep();
    expect(await heldBy(world, [free])).toEqual([null]);
    await expectGatesConsistent(world);
  });

  test.runIf(engine.name === 'PostgreSQL')(
    'a job that another transaction is claiming keeps its places',
    async () => {
      const world = await worldOf({ limit: 1 });
      const first = await submit(world);
      const [locked, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const claiming = world.database.write(async (tx) => {
        await sql`select id from jobs where id = ${first.id} for update`.execute(tx.kysely);
        locked.resolve();
        await mayCommit.promise;
      });
      await locked.promise;
      await world.settler.parts.places.setPlaces(pauseOfOrganization('default'), 0);

      expect(await world.attempt(first.id, completed())).toBe(false);
      mayCommit.resolve();
      await claiming;

      expect(await placesOf(world, [first])).toEqual([1]);
      expect(await heldBy(world, [first])).toEqual([null]);
    },
  );

  test.runIf(engine.name === 'PostgreSQL')(
    'a job of which another transaction has locked a gate goes once that transaction has ended',
    async () => {
      const world = await worldOf({ limit: 1 });
      const { places } = world.settler.parts;
      await places.setPlaces(limitOfOrganization('default'), 5);
      const [first, second] = [await submit(world), await submit(world)];
      const { run, ended } = await world.begin(first.id);
      const [locked, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const holding = world.database.write(async (tx) => {
        await lockGates(tx, [limitOfOrganization('other'), pauseOfAgent('default', 'x')]);
        await sql`select 1`.execute(tx.kysely);
        locked.resolve();
        await mayCommit.promise;
      });
      await locked.promise;
      await world.database.write((tx) =>
        tx.kysely.deleteFrom('places').where('gate', '=', limitOfOrganization('default')).execute(),
      );

      run.end(completed());
      await ended;

      expect(await heldBy(world, [second])).toEqual([words]);
      mayCommit.resolve();
      await holding;
      await waitFor(async () => (await heldBy(world, [second]))[0] === null, {
        describe: 'the second job goes',
      });
      expect(await placesOf(world, [second])).toEqual([2]);
    },
  );

  test.runIf(engine.name === 'PostgreSQL')(
    'of two transactions that claim at once jobs that were queued before their limit one waits for the place of the other',
    async () => {
      const world = await worldOf([]);
      const [first, second] = [await submit(world), await submit(world)];
      await limitTo(world, { limit: 1 });
      const [claimed, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const claimOf = (id: string, then?: () => Promise<void>) =>
        world.database.write(async (tx) => {
          const [job] = await world.admission.claim(tx, [id]);
          await then?.();
          return job as ClaimedJob | null;
        });
      const one = claimOf(first.id, async () => {
        claimed.resolve();
        await mayCommit.promise;
      });
      await claimed.promise;
      const other = claimOf(second.id);
      const waits = sql<{ n: number }>`select count(*) as n from pg_locks where not granted
        and database = (select oid from pg_database where datname = current_database())`;
      await waitFor(
        async () => Number((await waits.execute(world.database.read.kysely)).rows[0]?.n) > 0,
        { describe: 'the second one waits for the gate' },
      );

      mayCommit.resolve();

      const job = await one;
      expect([job?.id, await other]).toEqual([first.id, null]);
      expect(await heldBy(world, [first, second])).toEqual([null, words]);
      await world.settle({ job: job as ClaimedJob, outcome: completed(), messages: [] });
      expect(await world.attempt(second.id, completed())).toBe(true);
      await expectGatesConsistent(world);
    },
  );

  test('a job begins that has a place although it was read before it was marked', async () => {
    const world = await worldOf([]);
    const job = await submit(world);
    await limitTo(world, { limit: 1 });
    await world.database.write((tx) =>
      tx.kysely.insertInto('places').values(placeAt(job.id)).execute(),
    );
    expect((await world.row(job.id)).gated).toBe(0);

    expect(await world.attempt(job.id, completed())).toBe(true);

    expect(await placesOf(world, [job])).toEqual([0]);
  });

  test('a job that is not due is held at no gate', async () => {
    const world = await worldOf({ limit: 1 });
    const [first, second] = [await submit(world), await submit(world)];
    const run_at = new Date(world.clock.now() + 60_000).toISOString();
    await world.jobs.change('default', second.id, { run_at });

    expect(await world.attempt(second.id, completed())).toBe(false);

    expect(await heldBy(world, [first, second])).toEqual([null, null]);
    await expectGatesConsistent(world);
  });

  test('places go round over organizations, and to the higher priority within one', async () => {
    const world = await worldOf({ limit: 1 });
    const { organizationId, keyId: apiKeyId } = await world.callerOf('quiet');
    const quiet = { organizationId, apiKeyId };
    const names = new Map<string, string>();
    const add = async (name: string, fields = {}) => {
      names.set((await submit(world, fields)).id, name);
    };
    for (const name of ['a', 'b', 'c', 'd']) await add(name, { priority: 1 });
    await add('urgent', { priority: 0 });
    await add('quiet 1', quiet);
    await add('quiet 2', quiet);

    const order: (string | undefined)[] = [];
    for (let i = 0; i < 7; i++) {
      const id = world.hints.at(-1)?.id ?? '';
      order.push(names.get(id));
      await world.attempt(id, completed());
    }

    expect(order).toEqual(['a', 'urgent', 'quiet 1', 'b', 'quiet 2', 'c', 'd']);
    await expectGatesConsistent(world);
  });

  test('the place of a process that died goes to the next job when its lease has ended', async () => {
    const world = await worldOf({ limit: 1 });
    const [lost, next] = [await submit(world), await submit(world)];
    await world.worker('dead').begin(lost.id);
    world.clock.advance(leaseMs);

    await world.recovery.sweep();

    expect(await heldBy(world, [next])).toEqual([null]);
    expect(world.hints.map(({ id }) => id)).toContain(next.id);
    world.clock.advance(leaseMs);
    // It waits behind the other for its second attempt.
    expect(await world.attempt(lost.id, completed())).toBe(false);
    expect(await waitingFor(world, lost.id)).toBe(words);
    await world.attempt(next.id, completed());
    expect(await world.attempt(lost.id, completed())).toBe(true);
    await expectGatesConsistent(world);
  });

  test('a failed attempt gives its place back until the next one', async () => {
    const world = await worldOf({ limit: 1 });
    const [first, second] = [await submit(world), await submit(world)];

    await world.attempt(first.id, failed());

    expect(await heldBy(world, [second])).toEqual([null]);
    await expectGatesConsistent(world);
  });

  test('a cancelled job gives its place back, and a held one leaves the gate', async () => {
    const world = await worldOf({ limit: 1 });
    const jobs = [await submit(world), await submit(world), await submit(world)];
    const [first, second, third] = jobs as [JobRow, JobRow, JobRow];

    await world.jobs.cancel('default', second.id);
    expect(await heldBy(world, jobs)).toEqual([null, null, words]);
    await world.jobs.cancel('default', first.id);

    expect(await heldBy(world, jobs)).toEqual([null, null, null]);
    expect(await world.attempt(third.id, completed())).toBe(true);
    await expectGatesConsistent(world);
  });

  test('a job that is put off gives its place back, and finds its gate when it is due', async () => {
    const world = await worldOf({ limit: 1 });
    const [first, second] = [await submit(world), await submit(world)];
    const later = new Date(world.clock.now() + 60_000).toISOString();

    await world.jobs.change('default', first.id, { run_at: later });

    expect(await heldBy(world, [first, second])).toEqual([null, null]);
    const { run, ended } = await world.begin(second.id);
    world.clock.advance(60_000);
    expect(await world.attempt(first.id, completed())).toBe(false);
    expect(await waitingFor(world, first.id)).toBe(words);
    run.end(completed());
    await ended;
    expect(await world.attempt(first.id, completed())).toBe(true);
    await expectGatesConsistent(world);
  });

  test('a limit that is raised lets jobs go at the next sweep, and one that is removed all of them', async () => {
    const world = await worldOf({ limit: 1 });
    const jobs: { id: string }[] = [];
    for (let i = 0; i < 12; i++) jobs.push(await submit(world));
    const heldCount = async () => (await heldBy(world, jobs)).filter((one) => one !== null).length;
    expect(await heldCount()).toBe(11);

    await limitTo(world, { limit: 4 });
    await world.recovery.sweep();
    expect(await heldCount()).toBe(8);
    await limitTo(world, []);
    await world.recovery.sweep();

    expect(await heldCount()).toBe(0);
    for (const { id } of jobs) await world.attempt(id, completed());
    await expectGatesConsistent(world);
  });

  test('a limit that is raised, lowered and removed while many jobs wait is observed at once, and all go', {
    timeout: 240_000,
  }, async () => {
    const many = rounds(300, 10_000);
    const world = await worldOf({ limit: 1 });
    for (let n = 0; n < many; n += 100) {
      await world.database.write((tx) =>
        world.acceptor.acceptWithin(
          tx,
          Array.from({ length: 100 }, () => world.request({ skill: limited })),
        ),
      );
    }
    const { kysely } = world.database.read;
    const going = async () => {
      const rows = await kysely
        .selectFrom('jobs')
        .select('id')
        .where('status', '=', 'queued')
        .where('held_by', 'is', null)
        .execute();
      return rows.map(({ id }) => id);
    };
    expect(await going()).toHaveLength(1);

    await limitTo(world, { limit: 50 });
    await world.recovery.sweep();
    expect(await going()).toHaveLength(50);
    await limitTo(world, { limit: 5 });
    for (const id of await going()) await world.attempt(id, completed());
    expect(await going()).toHaveLength(5);
    await limitTo(world, []);
    for (let left = many; left > 0; left -= 1_000) await world.recovery.sweep();

    expect(await going()).toHaveLength(many - 50);
    for (const id of (await going()).slice(0, 20)) await world.attempt(id, completed());
    await expectGatesConsistent(world);
  });

  test('a limit that is lowered lets no job begin until enough have ended', async () => {
    const world = await worldOf({ limit: 3 });
    const jobs: { id: string }[] = [];
    for (let i = 0; i < 5; i++) jobs.push(await submit(world));
    const runs: Awaited<ReturnType<JobsWorld['begin']>>[] = [];
    for (const { id } of jobs.slice(0, 3)) runs.push(await world.begin(id));
    await limitTo(world, { limit: 1 });

    const left: number[] = [];
    for (const { run, ended } of runs) {
      run.end(completed());
      await ended;
      left.push((await heldBy(world, jobs)).filter((one) => one !== null).length);
    }

    expect(left).toEqual([2, 2, 1]);
    await expectGatesConsistent(world);
  });

  test.each<[string, SkillConcurrency[]]>([
    ['one limit', [{ limit: 3 }]],
    ['two limits', [{ limit: 3 }, { limit: 1, per: 'user' }]],
  ])(
    'processes that claim at once never run more jobs than %s, and all of them end',
    async (_, limits) => {
      const world = await worldOf(limits);
      const workers = ['a', 'b', 'c'].map((name) =>
        world.worker(name, { yieldSlot: () => () => {} }),
      );
      const ids: string[] = [];
      const users = ['a', 'b', 'c', 'd'];
      const userOf = new Map<string, string>();
      await Promise.all(
        Array.from({ length: 40 }, async (_one, i) => {
          const userId = users[i % 4] as string;
          const { id } = await submit(world, { userId });
          ids.push(id);
          userOf.set(id, userId);
        }),
      );
      let running = 0;
      let most = 0;
      const runningOf = new Map<string, number>();
      let mostOfUser = 0;
      let ended = 0;

      const work = async (worker: (typeof workers)[number], id: string) => {
        const done = await worker.attempt(id, completed(), async () => {
          const user = userOf.get(id) as string;
          running += 1;
          most = Math.max(most, running);
          runningOf.set(user, 1 + (runningOf.get(user) ?? 0));
          mostOfUser = Math.max(mostOfUser, runningOf.get(user) ?? 0);
          await world.database.read.kysely.selectFrom('jobs').select('id').execute();
          running -= 1;
          runningOf.set(user, (runningOf.get(user) ?? 0) - 1);
        });
        if (done) ended += 1;
      };
      for (let round = 0; ended < 40 && round < 200; round++) {
        await Promise.all(ids.flatMap((id) => workers.map((worker) => work(worker, id))));
      }

      expect(ended).toBe(40);
      expect(most).toBeLessThanOrEqual(3);
      expect(mostOfUser).toBeLessThanOrEqual(limits[1]?.limit ?? 3);
      await expectGatesConsistent(world);
    },
  );

  test.runIf(engine.name === 'PostgreSQL')(
    'a job that is accepted beside an open transaction waits for the place that this one takes',
    async () => {
      const world = await worldOf({ limit: 1 });
      const [taken, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const first = world.database.write(async (tx) => {
        const [accepted] = await world.acceptor.acceptWithin(tx, [
          world.request({ skill: limited }),
        ]);
        taken.resolve();
        await mayCommit.promise;
        return (accepted as { job: { id: string } }).job;
      });
      await taken.promise;
      const second = submit(world);
      const waits = sql<{ n: number }>`select count(*) as n from pg_locks where not granted`;
      await waitFor(
        async () => Number((await waits.execute(world.database.read.kysely)).rows[0]?.n) > 0,
        { describe: 'the second one waits for a lock' },
      );

      mayCommit.resolve();

      expect(await heldBy(world, [await first, await second])).toEqual([null, words]);
    },
  );

  test.runIf(engine.name === 'PostgreSQL')(
    'requests with one key that wait for a gate have changed no counts, for these are locked after gates',
    async () => {
      const world = await worldOf({ limit: 1, per: 'user' });
      const { database, acceptor, settler, request } = world;
      const keyed = (userId: string) =>
        request({ skill: limited, userId, jobKey: { key: 'orders', mode: 'replace' } });
      const first = await world.submit(keyed('ada'));
      const [gates] = await Promise.all([
        Promise.withResolvers<void>(),
        acceptor.accept(request({ skill: limited, userId: 'bob' })),
      ]);
      const mayGoOn = Promise.withResolvers<void>();
      const holding = database.write(async (tx) => {
        const ofBob = { ...(await world.row(first.id)), user_id: 'bob' };
        await settler.parts.places.lockGatesOf(tx, [ofBob], []);
        // The lock is sent with the next statement that has a result.
        await sql`select 1`.execute(tx.kysely);
        gates.resolve();
        await mayGoOn.promise;
        await sql`select * from job_counts for update nowait`.execute(tx.kysely);
      });
      await gates.promise;
      const accepted = database.write((tx) =>
        acceptor.acceptWithin(tx, [keyed('ada'), keyed('bob')]),
      );
      // Other tests use other databases of the server.
      const waits = sql<{ n: number }>`select count(*) as n from pg_locks where not granted
        and database = (select oid from pg_database where datname = current_database())`;
      await waitFor(
        async () => Number((await waits.execute(database.read.kysely)).rows[0]?.n) > 0,
        { describe: 'the requests wait for the gate' },
      );

      mayGoOn.resolve();

      await holding;
      const [ofAda, ofBob] = (await accepted) as { job: { id: string }; replaces: string }[];
      expect([ofAda?.replaces, ofBob?.replaces]).toEqual([first.id, ofAda?.job.id]);
      await expectGatesConsistent(world);
    },
  );

  test.runIf(engine.name === 'PostgreSQL')(
    'requests that wait for a gate have no conversation locked, for these are locked after gates',
    async () => {
      const world = await worldOf({ limit: 1, per: 'user' });
      const { database, acceptor, settler, request } = world;
      const earlier = await world.submit();
      const id = earlier.conversation_id;
      const mayGoOn = Promise.withResolvers<void>();
      const locked = Promise.withResolvers<void>();
      const holding = database.write(async (tx) => {
        const ofBob = { ...(await world.row(earlier.id)), user_id: 'bob', skill_name: 'limited' };
        await settler.parts.places.lockGatesOf(tx, [ofBob], []);
        // The lock is sent with the next statement that has a result.
        await sql`select 1`.execute(tx.kysely);
        locked.resolve();
        await mayGoOn.promise;
        await sql`select * from conversations where id = ${id} for update nowait`.execute(
          tx.kysely,
        );
      });
      await locked.promise;
      const accepted = database.write((tx) =>
        acceptor.acceptWithin(tx, [
          request({ conversationId: id }),
          request({ skill: limited, userId: 'bob' }),
        ]),
      );
      const waits = sql<{ n: number }>`select count(*) as n from pg_locks where not granted
        and database = (select oid from pg_database where datname = current_database())`;
      await waitFor(
        async () => Number((await waits.execute(database.read.kysely)).rows[0]?.n) > 0,
        { describe: 'the requests wait for the gate' },
      );

      mayGoOn.resolve();

      await holding;
      expect((await accepted).map(({ kind }) => kind)).toEqual(['conversation_active', 'accepted']);
    },
  );

  test('a job that replaces one of its key waits in its place, before those that came in between', async () => {
    const world = await worldOf({ limit: 1 });
    const jobKey = { key: 'orders', mode: 'replace' } as const;
    const running = await world.begin((await submit(world)).id);
    const replaced = await submit(world, { jobKey });
    world.clock.advance(1_000);
    const between = await submit(world);
    world.clock.advance(1_000);
    const later = await submit(world, { jobKey });
    expect(await heldBy(world, [replaced, between, later])).toEqual([null, words, words]);

    running.run.end(completed());
    await running.ended;

    expect(await heldBy(world, [later, between])).toEqual([null, words]);
    await expectGatesConsistent(world);
  });

  test('jobs that were queued before their skill had a limit are held when their turn comes', async () => {
    const world = await worldOf([]);
    const jobs = [await submit(world), await submit(world), await submit(world)];
    await limitTo(world, { limit: 1 });
    const [first, second, third] = jobs as [JobRow, JobRow, JobRow];

    const { run, ended } = await world.begin(first.id);
    expect(await world.attempt(second.id, completed())).toBe(false);
    expect(await world.attempt(third.id, completed())).toBe(false);
    expect(await heldBy(world, jobs)).toEqual([null, words, words]);
    run.end(completed());
    await ended;

    expect(await heldBy(world, jobs)).toEqual([null, null, words]);
    await expectGatesConsistent(world);
  });

  describe('a limit or a pause that an operator sets', () => {
    const acme = 'default';
    const cases = (world: JobsWorld): [name: string, words: string][] => [
      [limitOfOrganization(acme), 'max_concurrency of organization'],
      [limitOfAgent(acme, 'default'), 'max_concurrency of agent'],
      [limitOfKey(world.caller.keyId), 'max_concurrency of API key'],
    ];

    test.each([0, 1, 2])('number %i counts what goes on at a time', async (i) => {
      const world = await worldOf([]);
      const [name, said] = cases(world)[i] as [string, string];
      const { places } = world.settler.parts;
      await places.setPlaces(name, 1);
      const jobs = [await world.submit(), await world.submit(), await world.submit()];
      const [first, second, third] = jobs as [JobRow, JobRow, JobRow];

      expect(await waitingFor(world, second.id)).toBe(said);
      expect(await world.attempt(second.id, completed())).toBe(false);
      await world.attempt(first.id, completed());
      expect(await heldBy(world, [second, third])).toEqual([null, name]);
      await places.setPlaces(name, null);

      expect(await heldBy(world, [second, third])).toEqual([null, null]);
      await world.attempt(second.id, completed());
      await world.attempt(third.id, completed());
      await expectGatesConsistent(world);
    });

    test.each([
      ['organization', pauseOfOrganization(acme), 'pause of organization'],
      ['skill', pauseOfSkill('test/v1.0/echo'), 'pause of test/v1.0/echo'],
      ['agent', pauseOfAgent(acme, 'default'), 'pause of agent queue'],
    ])(
      'a pause of the %s holds jobs until it ends, those too that were queued',
      async (_, name, said) => {
        const world = await worldOf({ limit: 1 });
        const { places } = world.settler.parts;
        const earlier = await world.submit();
        await places.setPlaces(name, 0);
        const later = await world.submit();

        expect(await world.attempt(earlier.id, completed())).toBe(false);
        expect(await waitingFor(world, earlier.id)).toBe(said);
        expect(await waitingFor(world, later.id)).toBe(said);
        await places.setPlaces(name, null);

        expect(world.hints.map(({ id }) => id).slice(-2)).toEqual([earlier.id, later.id]);
        expect(await world.attempt(earlier.id, completed())).toBe(true);
        expect(await world.attempt(later.id, completed())).toBe(true);
        await expectGatesConsistent(world);
      },
    );

    test('each of them is known to the query for jobs that have gates', async () => {
      const world = await worldOf([]);
      const job = await world.submit();
      const listed = () =>
        world.database.write((tx) =>
          listGatedWorks(tx, { ids: [job.id], skills: [], due_by: world.clock.now() }),
        );
      expect(await listed()).toEqual([]);
      const names = settableLimits(await world.row(job.id));
      const { settings } = world.settler.parts.places;

      const found: string[] = [];
      for (const name of names) {
        await settings.set(name, 1);
        if ((await listed()).length > 0) found.push(name);
        await settings.set(name, null);
      }

      expect(found).toEqual(names);
    });

    test('another process learns of it', async () => {
      const world = await worldOf([]);
      const other = new LimitSettings(world.context);
      await world.settler.parts.places.setPlaces(limitOfOrganization(acme), 1);

      await other.refresh();

      expect([...other.byName.values()]).toEqual([1]);
    });

    test('another process learns of two changes in one millisecond, beside thousands of settings', async () => {
      const world = await worldOf([]);
      const { settings } = world.settler.parts.places;
      const other = new LimitSettings(world.context);
      const updated_at = world.clock.now();
      const rows = Array.from({ length: 6_000 }, (_, i) => ({
        name: `${i}`,
        places: 1,
        updated_at,
      }));
      await world.database.write(async (tx) => {
        for (let i = 0; i < rows.length; i += 500)
          await tx.insert('gate_settings', rows.slice(i, i + 500));
      });

      await settings.set('one', 2);
      await other.refresh();
      await settings.set('one', 3);
      await other.refresh();

      expect(other.byName.get('one')).toBe(3);
    });

    test('those of the agents of one organization are bounded, and end with their agent', async () => {
      const world = await worldOf([]);
      const { settings } = world.settler.parts.places;
      const further = limitOfAgent(acme, 'further');
      for (let i = 0; i < 999; i++) await settings.set(limitOfAgent(acme, `${i}`), 1);
      settings.requireRoomForAgent(acme, further);
      await settings.set(pauseOfAgent(acme, 'last'), 0);

      expect(() => settings.requireRoomForAgent(acme, further)).toThrow('1000 limits and pauses');
      settings.requireRoomForAgent(acme, limitOfAgent(acme, '0'));
      settings.requireRoomForAgent(`${acme}-other`, further);
      await world.database.write((tx) => settings.forgetAgent(tx, acme, 'last'));

      settings.requireRoomForAgent(acme, further);
    });
  });

  describe('a job that was let go and is not claimed', () => {
    const waitMs = 10_000;
    async function worldOfTwo() {
      const world = await worldOf({ limit: 1 }, { clock: manualClock(new Date().toISOString()) });
      const { organizationId, keyId: apiKeyId } = await world.callerOf('quiet');
      return { world, quiet: { organizationId, apiKeyId } };
    }

    test('leaves its place to the work of others, and keeps its rank', async () => {
      const { world, quiet } = await worldOfTwo();
      const loud = [await submit(world), await submit(world)];
      const [first, second] = loud as [JobRow, JobRow];
      const other = await submit(world, quiet);
      await world.recovery.sweep();
      expect(await heldBy(world, [...loud, other])).toEqual([null, words, words]);
      world.clock.advance(waitMs);

      await world.recovery.sweep();

      expect(await heldBy(world, [...loud, other])).toEqual([words, words, null]);
      expect(await placesOf(world, [...loud, other])).toEqual([0, 0, 1]);
      await world.attempt(other.id, completed());
      expect(await heldBy(world, loud)).toEqual([null, words]);
      expect(await world.attempt(first.id, completed())).toBe(true);
      expect(await world.attempt(second.id, completed())).toBe(true);
      await expectGatesConsistent(world);
    });

    test('leaves its place also to its own organization where it is not due, and asks for one when it is', async () => {
      const { world } = await worldOfTwo();
      const jobs = [await submit(world), await submit(world)];
      const [first] = jobs as [JobRow, JobRow];
      // As where it was put off while a gate gave it the place.
      await world.database.write((tx) =>
        tx.kysely
          .updateTable('jobs')
          .set({ due_at: world.clock.now() + 60_000, run_at: world.clock.now() + 60_000 })
          .where('id', '=', first.id)
          .execute(),
      );
      world.clock.advance(waitMs);

      await world.recovery.sweep();

      expect(await heldBy(world, jobs)).toEqual([null, null]);
      expect(await placesOf(world, jobs)).toEqual([0, 1]);
      world.clock.advance(60_000);
      expect(await world.attempt(first.id, completed())).toBe(false);
      expect(await heldBy(world, jobs)).toEqual([words, null]);
      await expectGatesConsistent(world);
    });

    test('leaves it also where the clock was set back', async () => {
      const { world, quiet } = await worldOfTwo();
      const jobs = [await submit(world), await submit(world, quiet)];
      world.clock.jumpTo(world.clock.now() - 3_600_000);
      await world.database.write((tx) =>
        tx.kysely.updateTable('jobs').set({ due_at: world.clock.now() }).execute(),
      );

      await world.recovery.sweep();

      expect(await heldBy(world, jobs)).toEqual([words, null]);
    });

    test.runIf(engine.name === 'PostgreSQL')(
      'keeps it where those that waited have left, and another transaction has closed the gate',
      async () => {
        const { world, quiet } = await worldOfTwo();
        const first = await submit(world);
        const other = await submit(world, quiet);
        world.clock.advance(waitMs);
        const [locked, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const closing = world.database.write(async (tx) => {
          await lockGates(tx, [gate]);
          await sql`select 1`.execute(tx.kysely);
          locked.resolve();
          await mayCommit.promise;
          await tx.kysely
            .updateTable('jobs')
            .set({ held_by: null })
            .where('id', '=', other.id)
            .execute();
          await tx.kysely.deleteFrom('gates').where('name', '=', gate).execute();
        });
        await locked.promise;

        const swept = world.recovery.sweep();
        const waits = sql<{ n: number }>`select count(*) as n from pg_locks where not granted
          and database = (select oid from pg_database where datname = current_database())`;
        await waitFor(
          async () => Number((await waits.execute(world.database.read.kysely)).rows[0]?.n) > 0,
          { describe: 'the sweep waits for the gate' },
        );
        mayCommit.resolve();
        await Promise.all([closing, swept]);

        expect(await heldBy(world, [first])).toEqual([null]);
        expect(await placesOf(world, [first])).toEqual([1]);
        await expectGatesConsistent(world);
      },
    );

    test('leaves its place to the job that replaces it, however often, and not to those that wait', async () => {
      const { world } = await worldOfTwo();
      const keyed = { jobKey: { key: 'orders', mode: 'replace' } } as const;
      const [first, other] = [await submit(world, keyed), await submit(world)];

      const second = await submit(world, keyed);
      const third = await submit(world, keyed);

      const all = [first, second, third, other];
      expect(await heldBy(world, all)).toEqual([null, null, null, words]);
      expect(await placesOf(world, all)).toEqual([0, 0, 1, 0]);
      expect((await world.row(second.id)).replaced_by).toBe(third.id);
      await expectGatesConsistent(world);
      expect(await world.attempt(third.id, completed())).toBe(true);
      expect(await heldBy(world, [other])).toEqual([null]);
    });

    test('gives its place back where the job that replaces it has other gates, or begins later', async () => {
      const world = await worldOf({ limit: 1, per: 'user' });
      const keyed = { jobKey: { key: 'orders', mode: 'replace' }, userId: 'a' } as const;
      const [first, other] = [await submit(world, keyed), await submit(world, { userId: 'a' })];

      const second = await submit(world, { ...keyed, userId: 'b' });
      expect(await placesOf(world, [first, second, other])).toEqual([0, 1, 1]);
      const third = await submit(world, { ...keyed, userId: 'b', timing: { delayMs: 60_000 } });

      expect(await placesOf(world, [second, third, other])).toEqual([0, 0, 1]);
      await expectGatesConsistent(world);
    });

    test('keeps it from no job of its own organization, nor once it is claimed', async () => {
      const { world, quiet } = await worldOfTwo();
      const [first, second] = [await submit(world), await submit(world)];
      world.clock.advance(waitMs);
      await world.recovery.sweep();
      expect(await heldBy(world, [first, second])).toEqual([null, words]);
      const { run, ended } = await world.begin(first.id);
      const other = await submit(world, quiet);
      world.clock.advance(waitMs);

      await world.ownRecovery.sweep();

      expect(await placesOf(world, [first, second, other])).toEqual([1, 0, 0]);
      run.end(completed());
      await ended;
    });
  });

  test('what makes one gate fail keeps no other gate waiting', async () => {
    const world = await worldOf({ limit: 1, per: 'user' }, { freeSlots: () => 0 });
    const ofA = [await submit(world, { userId: 'a' }), await submit(world, { userId: 'a' })];
    const ofB = [await submit(world, { userId: 'b' }), await submit(world, { userId: 'b' })];
    const [a, b] = [ofA[1] as JobRow, ofB[1] as JobRow];
    const gateOfA = (await world.row(a.id)).held_by ?? '';
    await world.database.write(async (tx) => {
      await tx.kysely.deleteFrom('places').execute();
      // The job would get this one a second time.
      await tx.kysely
        .insertInto('places')
        .values({ ...placeAt(a.id), gate: gateOfA, is_held: -1 })
        .execute();
    });

    await world.recovery.sweep();

    expect(await heldBy(world, [b])).toEqual([null]);
  });

  describe('calls of skills within runs', () => {
    /** A run under way, which calls skills at gates by name. */
    async function runIn(
      world: JobsWorld,
      organizationId = 'default',
      fields: Parameters<JobsWorld['submit']>[0] = {},
    ) {
      const caller =
        organizationId === 'default' ? undefined : await world.callerOf(organizationId);
      const { id } = await world.submit({
        ...fields,
        organizationId,
        ...(caller === undefined ? {} : { apiKeyId: caller.keyId }),
      });
      const [claimed] = await world.database.write((tx) => world.admission.claim(tx, [id]));
      const claim = claimed as ClaimedJob;
      const { places } = world.settler.parts;
      const gatesOf = (names: readonly string[]) => names.map((name) => ({ name, limit: 1 }));
      return {
        id,
        take: (n: number, ...names: string[]) =>
          places.takeForCall({ claim, n, within: [], gates: gatesOf(names) }),
        /** The same for a call within those of the numbers. */
        takeWithin: (within: number[], n: number, name: string) =>
          places.takeForCall({ claim, n, within, gates: gatesOf([name]) }),
        give: (n: number) => places.releaseCall(claim, n),
        placed: async () =>
          [...(await places.callsOf(id))].flatMap(([n, isPlaced]) => (isPlaced ? [n] : [])),
        calls: async () => Object.fromEntries(await places.callsOf(id)),
        end: () => world.settle({ job: claim, outcome: completed(), messages: [] }),
      };
    }
    async function worldWith(...names: string[]) {
      const world = await worldOf([]);
      for (const name of names) await world.settler.parts.places.setPlaces(name, 1);
      return world;
    }
    const rowsLeft = async ({ database: { read } }: JobsWorld) => [
      ...(await read.kysely.selectFrom('places').selectAll().execute()),
      ...(await read.kysely.selectFrom('gates').selectAll().execute()),
    ];

    test('a call has the places of all its gates, or waits where one is missing and has none', async () => {
      const world = await worldWith('a', 'b');
      const [one, two, three] = [await runIn(world), await runIn(world), await runIn(world)];
      expect(await one.take(1, 'b')).toBe(true);
      expect(await two.take(1, 'a', 'b')).toBe(false);
      expect(await three.take(1, 'a')).toBe(true);

      await one.give(1);
      expect(await two.placed()).toEqual([]);
      expect(await one.take(2, 'b')).toBe(true);
      await three.give(1);
      expect(await two.placed()).toEqual([]);
      for (const organizationId of ['default', null]) {
        const { organizations } = await readQueuedJobs(world.context, organizationId);
        expect(organizations.data.map(({ calls }) => [...calls])).toEqual([[['b', 1]]]);
      }
      await one.give(2);

      expect(await two.placed()).toEqual([1]);
      for (const run of [one, two, three]) await run.end();
      expect(await rowsLeft(world)).toEqual([]);
    });

    test('the end of a call searches for work at all of its gates in one statement', async () => {
      const world = await worldWith('a', 'b', 'c');
      const run = await runIn(world);
      expect(await run.take(1, 'a', 'b', 'c')).toBe(true);
      const { database } = world;
      const searches: string[] = [];
      const write = database.write.bind(database);
      vi.spyOn(database, 'write').mockImplementation((work) =>
        write((tx) => {
          const all = tx.all.bind(tx);
          vi.spyOn(tx, 'all').mockImplementation((declared, params) => {
            const { text } = declared.compiledFor(database.read.kysely, tx.dialect);
            if (text.includes('from "gates"')) searches.push(text);
            return all(declared, params);
          });
          return work(tx);
        }),
      );

      await run.give(1);

      expect(searches).toHaveLength(1);
      await run.end();
    });

    test('a call that may have its place gets it behind many that wait for another gate', async () => {
      const world = await worldWith('a', 'b');
      const [holder, many, last] = [await runIn(world), await runIn(world), await runIn(world)];
      expect(await holder.take(1, 'a')).toBe(true);
      expect(await holder.take(2, 'b')).toBe(true);
      for (let n = 1; n <= 20; n++) expect(await many.take(n, 'a', 'b')).toBe(false);
      expect(await last.take(1, 'a')).toBe(false);

      await holder.give(1);

      expect(await last.placed()).toEqual([1]);
      for (const run of [holder, many, last]) await run.end();
      expect(await rowsLeft(world)).toEqual([]);
    });

    test('places go round over organizations, to calls as to jobs', async () => {
      const world = await worldWith('a');
      const [loud, quiet] = [await runIn(world), await runIn(world, 'quiet')];
      expect(await loud.take(1, 'a')).toBe(true);
      for (const n of [2, 3, 4]) expect(await loud.take(n, 'a')).toBe(false);
      for (const n of [1, 2]) expect(await quiet.take(n, 'a')).toBe(false);

      const order: string[] = [];
      for (let n = await loud.give(1); n === undefined && order.length < 5; ) {
        for (const [name, run] of Object.entries({ loud, quiet })) {
          for (const placed of await run.placed()) {
            order.push(`${name} ${placed}`);
            await run.give(placed);
          }
        }
      }

      expect(order).toEqual(['loud 2', 'quiet 1', 'loud 3', 'quiet 2', 'loud 4']);
      for (const run of [loud, quiet]) await run.end();
      expect(await rowsLeft(world)).toEqual([]);
    });

    test.each([
      ['after a while', 10_000],
      ['once the clock was set back', -3_600_000],
    ])(
      'of runs that wait for each other the latest call fails %s, and the others go on',
      async (_, ms) => {
        const world = await worldOf([], { clock: manualClock(new Date().toISOString()) });
        const echo = 'concurrency of test/v1.0/echo';
        await world.skills.register([facts('echo', { limit: 1 }), facts('limited', { limit: 1 })]);
        const one = await runIn(world, 'default', { skill: limited });
        const two = await runIn(world);
        expect(await one.take(1, echo)).toBe(false);
        expect(await two.take(1, words)).toBe(false);
        await world.recovery.sweep();
        expect([await one.calls(), await two.calls()]).toEqual([{ 1: false }, { 1: false }]);
        world.clock.jumpTo(world.clock.now() + ms);

        await world.recovery.sweep();

        expect([await one.calls(), await two.calls()]).toEqual([{ 1: false }, {}]);
        await two.end();
        expect(await one.calls()).toEqual({ 1: true });
        await one.end();
        expect(await rowsLeft(world)).toEqual([]);
      },
    );

    test('of runs that wait for each other with calls within calls the latest one fails', async () => {
      const world = await worldOf([], { clock: manualClock(new Date().toISOString()) });
      for (const name of ['a', 'b']) await world.settler.parts.places.setPlaces(name, 1);
      const [one, two] = [await runIn(world), await runIn(world)];
      expect(await one.take(1, 'a')).toBe(true);
      expect(await two.take(1, 'b')).toBe(true);
      expect(await one.takeWithin([1], 2, 'b')).toBe(false);
      expect(await two.takeWithin([1], 2, 'a')).toBe(false);
      world.clock.advance(10_000);

      await world.recovery.sweep();

      expect(await one.calls()).toEqual({ 1: true, 2: false });
      expect(await two.calls()).toEqual({ 1: true });
      await two.give(1);
      expect(await one.calls()).toEqual({ 1: true, 2: true });
      for (const run of [one, two]) await run.end();
    });

    test('a circle is found behind hundreds of other calls that wait', async () => {
      const world = await worldOf([], { clock: manualClock(new Date().toISOString()) });
      for (const name of ['a', 'b', 'x']) await world.settler.parts.places.setPlaces(name, 1);
      const [other, one, two] = [await runIn(world), await runIn(world), await runIn(world)];
      expect(await other.take(1, 'x')).toBe(true);
      expect(await one.take(1, 'a')).toBe(true);
      expect(await two.take(1, 'b')).toBe(true);
      expect(await one.takeWithin([1], 2, 'b')).toBe(false);
      await world.database.write((tx) => {
        const row = { gate: 'x', job_id: other.id, organization_id: 'default', is_held: 0 };
        const numbers = Array.from({ length: 600 }, (_, i) => i + 10);
        return tx.insert(
          'places',
          numbers.map((n) => ({ ...row, n, since: newId() })),
        );
      });
      expect(await two.takeWithin([1], 2, 'a')).toBe(false);
      world.clock.advance(10_000);

      await world.recovery.sweep();
      await world.recovery.sweep();

      expect(await two.calls()).toEqual({ 1: true });
      for (const run of [one, two, other]) await run.end();
    });

    test('the end of a run ends the waits of its calls', async () => {
      const world = await worldWith('a', 'b');
      const [one, two, three] = [await runIn(world), await runIn(world), await runIn(world)];
      expect(await one.take(1, 'a')).toBe(true);
      expect(await two.take(1, 'a', 'b')).toBe(false);
      expect(await three.take(1, 'a')).toBe(false);

      await two.end();
      await one.end();

      expect(await three.placed()).toEqual([1]);
      await three.end();
      expect(await rowsLeft(world)).toEqual([]);
    });
  });

  test.runIf(engine.name === 'SQLite')(
    'the jobs that a gate lets go are found by their ids, however many wait there',
    async () => {
      const { kysely } = (await worldOf({ limit: 1 })).database.read;
      const plans: string[] = [];
      const explaining = {
        async all(declared: Statement<unknown, unknown>, params: unknown) {
          const query = declared.compiledFor(kysely, 'sqlite');
          const values = query.bind(params);
          const explained = CompiledQuery.raw(`explain query plan ${query.text}`, values);
          const { rows } = await kysely.executeQuery<{ detail: string }>(explained);
          plans.push(...rows.map(({ detail }) => detail));
          return [];
        },
      };

      await moveHeld(explaining as never, { ids: ['a'], gate: 'g', to: null });

      const ofJobs = plans.filter((plan) => plan.includes(' jobs '));
      expect(ofJobs).toEqual(['SEARCH jobs USING PRIMARY KEY (id=?)']);
    },
  );

  test('a job of another skill begins beside those that wait', async () => {
    const world = await worldOf({ limit: 1 });
    await submit(world);
    await submit(world);

    const other = await world.submit();

    expect(await world.attempt(other.id, completed())).toBe(true);
    await expectGatesConsistent(world);
  });
});
