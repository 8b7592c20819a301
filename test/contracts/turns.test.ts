/** Turns, decided from the rows, on both databases and with both queues. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { BullmqQueue } from '../../src/adapters/queue/bullmq.ts';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import type { Queue } from '../../src/adapters/queue/queue.ts';
import { createRedisBus } from '../../src/adapters/redis/bus.ts';
import { Redis } from '../../src/adapters/redis/redis.ts';
import { Acceptor } from '../../src/core/jobs/accept.ts';
import type { JobRow } from '../../src/core/jobs/jobs.store.ts';
import { JobRunner } from '../../src/core/jobs/turns/runner.ts';
import { findDueOrganizations, findTurns } from '../../src/core/jobs/turns/turns.store.ts';
import { Turns } from '../../src/core/jobs/turns/turns.ts';
import type { Bus } from '../../src/kernel/bus.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';

const name = 'skill-execution';
const silent = createLogger('silent');

/** What one process has of a queue. */
interface Stores {
  readonly queue: Queue;
  readonly bus: Bus | null;
}

let server: RedisServer | undefined;
beforeAll(async () => {
  server = findRedis() === undefined ? undefined : await startRedis();
});
afterAll(() => server?.close());

const inMemory = async (): Promise<Stores> => {
  const queue = new MemoryQueue(silent);
  onTestFinished(() => queue.close());
  return { queue, bus: null };
};

const inRedis = async (): Promise<Stores> => {
  const redis = new Redis(server?.url ?? '', silent);
  await waitFor(() => redis.isConnected(), { describe: 'Redis is connected' });
  const queue = new BullmqQueue(redis, silent);
  onTestFinished(async () => {
    await queue.close();
    await redis.close();
  });
  return { queue, bus: createRedisBus(redis) };
};

const queues = findRedis() === undefined ? [inMemory] : [inMemory, inRedis];
const cases = (await engines()).flatMap((engine) =>
  queues.map((open) => ({ engine, open, title: `${engine.name}, a queue ${open.name}` })),
);

async function insertAll(world: JobsWorld, rows: readonly JobRow[]) {
  await world.database.write(async (tx) => {
    for (let i = 0; i < rows.length; i += 500) await tx.insert('jobs', rows.slice(i, i + 500));
  });
}

/** A process that runs jobs of the world in so many slots. */
async function startProcess(
  world: JobsWorld,
  { queue, bus }: Stores,
  slots: number | Turns,
  { of = 'one', takesHints = true } = {},
) {
  const { admission, performer, running, pool, context } = world.worker(of);
  const turns = slots instanceof Turns ? slots : new Turns(slots);
  const parts = { queue: name, turns, admission, performer, running } as const;
  const runner = new JobRunner({ ...context, queue, bus }, parts);
  const consumer = takesHints ? queue.consume(name, (hint) => runner.handleHint(hint)) : undefined;
  const passedOn = bus?.listen('due-jobs', (message) =>
    runner.announceHere(message.split(' ')[1] as string),
  );
  await passedOn?.ready;
  const ended = new Set<string>();
  const jobIds = () => pool.runs.map(({ request }) => request.context.jobId);
  const underWay = () => jobIds().filter((id) => !ended.has(id));
  onTestFinished(async () => {
    passedOn?.stop();
    await consumer?.stop();
  });
  return {
    runner,
    turns,
    jobIds,
    underWay,
    /** Ends the run of a job, or the one that began first. */
    end(id = underWay()[0]) {
      const run = pool.runs.find(({ request }) => request.context.jobId === id);
      if (run === undefined || id === undefined) throw new Error('Nothing runs.');
      ended.add(id);
      run.end(completed());
    },
    /** Waits until so many runs have begun, from the start on. */
    begun: (count: number) =>
      waitFor(() => jobIds().length >= count && jobIds(), { describe: `${count} runs have begun` }),
  };
}

describe.each(cases)('on $title', ({ engine, open }) => {
  async function setUp(slots: number) {
    await server?.command('FLUSHALL');
    const stores = await open();
    const world = await jobsWorld(engine, { queue: stores.queue });
    const process = await startProcess(world, stores, slots);
    const tenant = async (organizationId: string) => {
      const { keyId: apiKeyId } = await world.callerOf(organizationId);
      return { organizationId, apiKeyId };
    };
    /** So many keys of an organization, in the order of their turns. */
    const keysOf = async (organizationId: string, count: number) => {
      const keys: string[] = [];
      for (let i = 0; i < count; i++) keys.push((await world.callerOf(organizationId)).keyId);
      return keys.toSorted();
    };
    return { ...process, world, stores, tenant, keysOf };
  }

  test('the first job of a quiet organization begins beside a thousand of a loud one that has all slots', async () => {
    const { world, tenant, begun, underWay } = await setUp(4);
    const [loud, quiet] = [await tenant('loud'), await tenant('quiet')];
    const row = await world.row((await world.submit(loud)).id);
    await begun(1);
    const waiting = Array.from({ length: 1_000 }, () => ({
      ...{ ...row, id: newId(), status: 'queued' as const, attempt: 0, epoch: 0, due_at: 1 },
    }));
    await world.database.write((tx) => tx.insert('jobs', waiting));
    for (let i = 0; i < 3; i++) await world.submit(loud);
    await begun(4);

    const first = await world.submit(quiet);

    await waitFor(() => underWay().includes(first.id), { describe: 'its job has begun' });
    expect(underWay()).toHaveLength(5);
  });

  test('the first job of a quiet organization begins beside urgent ones of 50 keys and 50 agents of a loud one that has all slots', async () => {
    const { world, tenant, keysOf, begun, underWay } = await setUp(4);
    const [keys, quiet] = [await keysOf('loud', 50), await tenant('quiet')];
    const row = await world.row((await world.submit(await tenant('loud'))).id);
    await begun(1);
    const of = { ...row, status: 'queued' as const, attempt: 0, epoch: 0, due_at: 1, priority: 0 };
    const waiting = keys.flatMap((api_key_id, i) =>
      Array.from({ length: 10 }, () => ({
        ...of,
        id: newId(),
        api_key_id,
        agent_id: `agent-${i}`,
      })),
    );
    await insertAll(world, waiting);
    for (let i = 0; i < 3; i++) await world.submit(await tenant('loud'));
    await begun(4);

    const first = await world.submit({ ...quiet, priority: 2 });
    await waitFor(() => underWay().includes(first.id), { describe: 'its job has begun' });
    expect(underWay()).toHaveLength(5);
  });

  test('of 50 keys a higher priority goes first, each key has its turn within a priority, and every eighth job is the oldest of a lower one', async () => {
    const { world, tenant, keysOf, runner, begun, end } = await setUp(1);
    const keys = await keysOf('acme', 50);
    const row = await world.row((await world.submit(await tenant('acme'))).id);
    await begun(1);
    let due = 0;
    const jobOf = (api_key_id: string | undefined, priority: number) => {
      due += 1;
      const waiting = { status: 'queued' as const, attempt: 0, epoch: 0 };
      return {
        ...row,
        ...waiting,
        id: newId(),
        api_key_id: api_key_id ?? '',
        priority,
        due_at: due,
      };
    };
    const oldest = jobOf(keys[30], 2);
    const rows = [
      ...[oldest, jobOf(keys[0], 2), jobOf(keys[49], 2)],
      ...keys.flatMap((key) => [jobOf(key, 1), jobOf(key, 1)]),
      ...[jobOf(keys[49], 0), jobOf(keys[0], 0), jobOf(keys[20], 0)],
    ];
    await insertAll(world, rows);

    runner.announceHere('acme');
    const shown = new Map(rows.map((one) => [one.id, one]));
    for (let i = 1; i < 60; i++) {
      end();
      await begun(i + 1);
    }

    const order = (await begun(60)).slice(1).map((id) => shown.get(id));
    const priorities = order.map((one) => one?.priority);
    expect(priorities.slice(0, 8)).toEqual([0, 0, 0, 1, 1, 1, 2, 1]);
    expect(order.slice(0, 3).map((one) => one?.api_key_id)).toEqual([keys[0], keys[20], keys[49]]);
    expect(order[6]).toBe(oldest);
    const normal = order.filter((one) => one?.priority === 1).map((one) => one?.api_key_id);
    expect(normal.slice(0, 50)).toEqual(keys);
  });

  test('keys of an organization go round, and jobs of one key begin in their order', async () => {
    const { world, tenant, begun, end, turns } = await setUp(1);
    const { organizationId, apiKeyId: first } = await tenant('acme');
    const { keyId: second } = await world.callerOf(organizationId);
    const owners = new Map<string, string>();
    const submit = async (apiKeyId: string) => {
      world.clock.advance(1);
      const { id } = await world.submit({ organizationId, apiKeyId });
      owners.set(id, apiKeyId);
      return id;
    };
    const ids = [await submit(first)];
    await begun(1);
    for (let i = 0; i < 4; i++) ids.push(await submit(first));
    const others = [await submit(second), await submit(second)];

    await waitFor(() => turns.isWaiting(organizationId), { describe: 'a hint has come' });
    for (let i = 1; i < 7; i++) {
      end();
      await begun(i + 1);
    }

    const order = await begun(7);
    expect(order.map((id) => owners.get(id))).toEqual([
      first,
      second,
      first,
      second,
      first,
      first,
      first,
    ]);
    expect(order.filter((id) => ids.includes(id))).toEqual(ids);
    expect(order.filter((id) => others.includes(id))).toEqual(others);
  });

  test('a higher priority goes first, and every eighth job is of a lower one', async () => {
    const { world, tenant, begun, end, turns } = await setUp(1);
    const acme = await tenant('acme');
    const priorities = new Map<string, number>();
    const submit = async (priority: number) => {
      world.clock.advance(1);
      const { id } = await world.submit({ ...acme, priority });
      priorities.set(id, priority);
    };
    await submit(0);
    await begun(1);
    for (const priority of [2, 1, 1, ...Array.from({ length: 9 }, () => 0)]) await submit(priority);

    await waitFor(() => turns.isWaiting('acme'), { describe: 'a hint has come' });
    for (let i = 1; i < 13; i++) {
      end();
      await begun(i + 1);
    }

    const order = (await begun(13)).map((id) => priorities.get(id));
    expect(order).toEqual([0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 1]);
  });

  test('jobs whose hints were lost begin after a sweep, also one that waits for its retry', async () => {
    const { world, tenant, runner } = await setUp(4);
    const acme = await tenant('acme');
    await runner.stop();
    const { id } = await world.submit({ ...acme, maxAttempts: 2 });
    await world.attempt(id, failed());
    const lost = await world.submit(acme);
    const { queue } = await open();
    const next = await startProcess(world, { queue, bus: null }, 4, { of: 'two' });
    world.clock.advance(60_000);

    const due = await findDueOrganizations(world.database.read, name, {
      ...{ after: '', dueBy: world.clock.now(), limit: 10 },
    });
    for (const { organization_id } of due.due) next.runner.announceHere(organization_id);

    expect((await next.begun(2)).toSorted()).toEqual([id, lost.id].toSorted());
  });
});

describe
  .skipIf(findRedis() === undefined)
  .each((await engines()).filter(({ name }) => name === 'PostgreSQL'))(
  'two processes on $name and Redis',
  (engine) => {
    async function setUp(slots: readonly [number, number], takesHints = true) {
      await server?.command('FLUSHALL');
      const stores = [await inRedis(), await inRedis()] as const;
      const world = await jobsWorld(engine, { queue: stores[0].queue });
      const first = await startProcess(world, stores[0], slots[0]);
      const second = await startProcess(world, stores[1], slots[1], { of: 'two', takesHints });
      return { world, first, second };
    }

    test('claim at once: each job begins once, and none is left', async () => {
      const { world, first, second } = await setUp([8, 8]);
      const all = [first, second];
      const ids = (await Promise.all(Array.from({ length: 200 }, () => world.submit()))).map(
        ({ id }) => id,
      );

      await waitFor(
        () => {
          for (const process of all) for (const id of process.underWay()) process.end(id);
          return all.flatMap(({ jobIds }) => jobIds()).length >= ids.length;
        },
        { describe: 'all jobs have begun' },
      );

      expect(all.flatMap(({ jobIds }) => jobIds()).toSorted()).toEqual(ids.toSorted());
      await Promise.all(all.map(({ runner }) => runner.stop()));
      await expectConsistent(world.database);
    });

    test('begin a free job behind those that another transaction has locked, and the locked ones after its end', async () => {
      const world = await jobsWorld(engine);
      const row = await world.row((await world.submit()).id);
      const rows = Array.from({ length: 10 }, (_, i) => ({
        ...{ ...row, id: newId(), organization_id: 'acme', due_at: i },
      }));
      await insertAll(world, rows);
      const { queue } = await inMemory();
      const { runner, turns, begun, end } = await startProcess(world, { queue, bus: null }, 1);
      const endClaim = vi.spyOn(turns, 'endClaim');

      const locked = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      const locking = world.database.write(async (tx) => {
        const ids = rows.slice(0, 3).map(({ id }) => id);
        await tx.kysely
          .selectFrom('jobs')
          .select('id')
          .where('id', 'in', ids)
          .forUpdate()
          .execute();
        locked.resolve();
        await release.promise;
      });
      await locked.promise;

      runner.announceHere('acme');
      expect(await begun(1)).toEqual([rows[3]?.id]);
      for (let count = 2; count <= 7; count++) {
        end();
        await begun(count);
      }
      end();
      // All that is left is locked: three claims get nothing, and the organization waits for the next event.
      await waitFor(() => endClaim.mock.calls.length >= 10, { describe: 'claims were tried' });
      expect(turns.isWaiting('acme')).toBe(true);
      release.resolve();
      await locking;
      runner.announceHere('other');

      expect((await begun(8)).at(-1)).toBe(rows[0]?.id);
    });

    test('pass on what one of them has no slot for', async () => {
      const { world, first, second } = await setUp([1, 30], false);
      for (let i = 0; i < 20; i++) await world.submit();

      await second.begun(19);
      expect(first.jobIds()).toHaveLength(1);
    });

    test('pass on what a stopping one knows', async () => {
      const { world, first, second } = await setUp([2, 30], false);
      const row = await world.row((await world.submit()).id);
      await first.begun(1);
      const waiting = { status: 'queued', attempt: 0, epoch: 0, due_at: 1 } as const;
      const job = { ...row, id: newId(), organization_id: 'acme', ...waiting };
      await insertAll(world, [job]);
      const locked = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      const locking = world.database.write(async (tx) => {
        const rows = tx.kysely.selectFrom('jobs').select('id').where('id', '=', job.id);
        await rows.forUpdate().execute();
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      const endClaim = vi.spyOn(first.turns, 'endClaim');
      const claims = () =>
        endClaim.mock.calls.filter(([read]) => read.some((one) => one.organization_id === 'acme'));
      first.runner.announce('acme');
      await waitFor(() => claims().length >= 3, { describe: 'claims were tried' });
      release.resolve();
      await locking;

      const stopped = first.runner.stop();

      expect(await second.begun(1)).toEqual([job.id]);
      first.end();
      await stopped;
    });
  },
);

describe.each((await engines()).filter(({ name }) => name === 'SQLite'))(
  'one process on $name',
  (engine) => {
    test('gives its only slot to one of two jobs that are accepted and claimed in one commit', async () => {
      const turns = new Turns(1);
      const world = await jobsWorld(engine, { turns: new Map([[name, turns]]) });
      const row = await world.row((await world.submit()).id);
      const { queue } = await inMemory();
      const process = await startProcess(world, { queue, bus: null }, turns);
      const runners = new Map([[name, process.runner] as const]);
      const acceptor = new Acceptor(world.context, world.admission, world.settler, runners);
      await insertAll(world, [{ ...row, id: newId(), organization_id: 'acme' }]);
      process.runner.start();

      const accepted = acceptor.accept(world.request());
      process.runner.announceHere('acme');
      await accepted;
      await process.begun(1);
      await world.database.write(async () => {});

      expect(process.underWay()).toHaveLength(1);
      process.end();
      await process.begun(2);
    });

    test('gives the slot of an accepted job whose commit fails to the next one', async () => {
      const turns = new Turns(1);
      const world = await jobsWorld(engine, { turns: new Map([[name, turns]]) });
      const row = await world.row((await world.submit()).id);
      const process = await startProcess(world, await inMemory(), turns);
      const next = { ...row, id: newId(), organization_id: 'acme' };
      await insertAll(world, [next]);
      process.runner.start();
      const failing = world.database.write(async (tx) => {
        await world.acceptor.acceptWithin(tx, [world.request()]);
        process.runner.announceHere('acme');
        throw new Error('changed my mind');
      });

      await expect(failing).rejects.toThrow('changed my mind');

      expect(await process.begun(1)).toEqual([next.id]);
    });
  },
);

describe.each(await engines())('the rows of turns on $name', (engine) => {
  test('are read by group, behind the last key first, and never those that are not due', async () => {
    const world = await jobsWorld(engine);
    const row = await world.row((await world.submit()).id);
    const now = world.clock.now();
    const jobOf = (api_key_id: string, priority: number, due_at: number) => ({
      ...{ ...row, id: newId(), organization_id: 'acme', api_key_id, priority, due_at },
    });
    const rows = [
      ...Array.from({ length: 3_000 }, (_, i) => jobOf('b', 1, now - 5_000 + i)),
      ...[jobOf('a', 1, now), jobOf('a', 2, now - 1), jobOf('c', 0, now), jobOf('c', 1, now + 1)],
    ];
    await insertAll(world, rows);

    const read = (after: string) =>
      world.database.write((tx) =>
        findTurns(
          tx,
          name,
          [{ organization_id: 'acme', after_keys: [after, after, after], isLowerDue: false }],
          {
            ...{ now, dueBy: now, ofGroup: 3 },
          },
        ),
      );
    const first = await read('');
    const behind = await read('b');
    const organizations = await findDueOrganizations(world.database.read, name, {
      ...{ after: '', dueBy: now, limit: 10 },
    });

    const shown = ({ due }: typeof first) =>
      due.map(({ api_key_id, priority, due_at }) => `${api_key_id} ${priority} ${due_at - now}`);
    // As many of a priority as a claim may begin: of two keys two jobs of each, where they have so many.
    const ofB = ['b 1 -5000', 'b 1 -4999'];
    expect(shown(first).toSorted()).toEqual(['a 1 0', 'a 2 -1', ...ofB, 'c 0 0'].toSorted());
    expect(shown(first).filter((one) => one.startsWith('b'))).toEqual(ofB);
    expect(shown(behind).toSorted()).toEqual(shown(first).toSorted());
    expect(new Set(first.cut)).toEqual(new Set(['acme']));
    expect(organizations.due.map(({ organization_id }) => organization_id)).toEqual([
      'acme',
      'default',
    ]);
    expect(organizations.next).toBe('');
  });

  test('of a higher priority are read whatever their key, and the oldest of lower ones where these may have a turn', async () => {
    const world = await jobsWorld(engine);
    const row = await world.row((await world.submit()).id);
    const now = world.clock.now();
    const jobOf = (key: number, priority: number, due_at: number) => ({
      ...{ ...row, id: newId(), organization_id: 'acme', priority, due_at },
      api_key_id: `key-${String(key).padStart(3, '0')}`,
    });
    const many = (priority: number) =>
      Array.from({ length: 190 }, (_, i) => [
        ...[jobOf(i, priority, now - 100), jobOf(i, priority, now - 99)],
      ]).flat();
    const [high, oldest] = [jobOf(189, 0, now), jobOf(189, 2, now - 500)];
    await insertAll(world, [...many(1), ...many(2), high, oldest]);
    const read = async (isLowerDue: boolean, after = '') =>
      (
        await world.database.write((tx) =>
          findTurns(
            tx,
            name,
            [{ organization_id: 'acme', after_keys: ['', after, after], isLowerDue }],
            { ...{ now, dueBy: now, ofGroup: 3 } },
          ),
        )
      ).due;

    const few = await read(false, 'key-184');
    const all = await read(true);

    expect(few.map(({ id }) => id)).toContain(high.id);
    const ofNormal = few.filter(({ priority }) => priority === 1);
    expect(ofNormal.map(({ api_key_id }) => api_key_id)).toEqual(
      expect.arrayContaining([185, 186, 187, 188, 189].map((key) => `key-${key}`)),
    );
    // One of each key where there are more keys than a claim begins jobs.
    expect(new Set(ofNormal.map(({ api_key_id }) => api_key_id)).size).toBe(ofNormal.length);
    expect(few.length).toBeLessThan(200);
    expect(all.map(({ id }) => id)).toContain(oldest.id);
  });

  test('are found behind those of many keys and priorities that are not due', async () => {
    const world = await jobsWorld(engine);
    const row = await world.row((await world.submit()).id);
    const now = world.clock.now();
    const jobOf = (api_key_id: string, priority: number, due_at: number) => ({
      ...{ ...row, id: newId(), organization_id: 'acme', api_key_id, priority, due_at },
    });
    const later = Array.from({ length: 2_100 }, (_, i) =>
      jobOf(`key-${Math.floor(i / 3)}`, i % 3, now + 1),
    );
    const due = jobOf('last', 1, now);
    await insertAll(world, [...later, due]);

    const read = (after: string) =>
      world.database.write((tx) =>
        findTurns(
          tx,
          name,
          [{ organization_id: 'acme', after_keys: [after, after, after], isLowerDue: false }],
          {
            ...{ now, dueBy: now, ofGroup: 3 },
          },
        ),
      );

    expect((await read('')).due.map(({ id }) => id)).toEqual([due.id]);
    expect((await read('last')).due.map(({ id }) => id)).toEqual([due.id]);
  });

  test('are found behind those of their key that have expired before they began', async () => {
    const world = await jobsWorld(engine);
    const row = await world.row((await world.submit()).id);
    const now = world.clock.now();
    const jobOf = (due_at: number, expires_at: number | null) => ({
      ...{ ...row, id: newId(), organization_id: 'acme', api_key_id: 'a', due_at, expires_at },
    });
    const expired = Array.from({ length: 300 }, (_, i) => jobOf(now - 1_000 + i, now));
    const begun = { ...jobOf(now - 2, now), started_at: now - 2 };
    const due = jobOf(now - 1, now + 1);
    await insertAll(world, [...expired, begun, due]);

    const found = await world.database.write((tx) =>
      findTurns(tx, name, [{ organization_id: 'acme', after_keys: [], isLowerDue: false }], {
        ...{ now, dueBy: now, ofGroup: 3 },
      }),
    );

    expect(found.due.map(({ id }) => id)).toEqual([begun.id, due.id]);
    expect(found.cut).toEqual([]);
  });
});
