/** Events from outside, on every database: who gets them, once, and how long they are stored. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/database.ts';
import { engines } from '../support/databases.ts';
import { type EventsWorld, eventsWorld } from '../support/event-waits.ts';
import { completed } from '../support/jobs-world.ts';
import { waitFor } from '../support/wait-for.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

/** Jobs that all wait for the event. */
async function waitingJobs(world: EventsWorld, count: number) {
  const requests = Array.from({ length: count }, () => world.request());
  const accepted = await world.database.write((tx) => world.accept.within(tx, requests));
  const jobs = accepted.flatMap((one) => ('job' in one ? [one.job] : []));
  await world.database.write(async (tx) => {
    for (const job of jobs) await world.waitWithin(tx, job, 1);
  });
  return jobs;
}

/** A database as a process has it that dies after its first write. */
function dyingAfterOneWrite(database: Database): Database {
  let writes = 0;
  return {
    ...database,
    write(unit) {
      writes += 1;
      if (writes > 1) return Promise.reject(new Error('The process has died.'));
      return database.write(unit);
    },
  };
}

describe.each(await engines())('on $name', (engine) => {
  describe('a wait', () => {
    test('ends with the event that comes, and its job is woken', async () => {
      const world = await eventsWorld(engine);
      const job = await world.submit();
      const begun = await world.wait(job, 1, { key: 'A-17' });

      const { eventId, delivered } = await world.send({ key: 'A-17', data: { amount: 40 } });

      expect(begun).toBeNull();
      expect(delivered).toBe(1);
      expect(await world.results(job)).toEqual([
        {
          id: eventId,
          event: 'order.paid',
          key: 'A-17',
          data: { amount: 40 },
          received_at: new Date(world.clock.now()).toISOString(),
        },
      ]);
      expect(await world.waits()).toEqual([]);
    });

    test('takes an event that came after its job was accepted', async () => {
      const world = await eventsWorld(engine);
      const job = await world.submit();
      const { eventId, delivered } = await world.send({ data: 7 });

      const result = await world.wait(job, 1);

      expect(delivered).toBe(0);
      expect(result).toMatchObject({ value: { id: eventId, key: null, data: 7 } });
      expect(await world.waits()).toEqual([]);
    });

    test('takes no event that came before its job was accepted', async () => {
      const world = await eventsWorld(engine);
      await world.send();
      const job = await world.submit();

      expect(await world.wait(job, 1)).toBeNull();
    });

    test('takes only events with its name, its key and of its organization', async () => {
      const world = await eventsWorld(engine);
      await world.callerOf('other');
      const job = await world.submit();
      const elsewhere = [
        { event: 'order.refunded', key: 'a' },
        { key: 'b' },
        { key: null },
        { key: 'a', organizationId: 'other' },
      ];
      for (const fields of elsewhere) await world.send(fields);
      expect(await world.wait(job, 1, { key: 'a' })).toBeNull();

      for (const fields of elsewhere) expect((await world.send(fields)).delivered).toBe(0);
      const { delivered } = await world.send({ key: 'a' });

      expect(delivered).toBe(1);
    });

    test('leaves an event for another job alone', async () => {
      const world = await eventsWorld(engine);
      const [job, other] = [await world.submit(), await world.submit()];
      await world.send({ jobId: other.id });
      expect(await world.wait(job, 1)).toBeNull();

      const told = await world.send({ jobId: other.id });
      const [first, second] = [await world.wait(other, 1), await world.wait(other, 2)];

      expect(told.delivered).toBe(0);
      expect([first, second]).toEqual([
        { value: expect.objectContaining({ event: 'order.paid' }) },
        { value: expect.objectContaining({ id: told.eventId }) },
      ]);
      expect(await world.stored()).toEqual([]);
    });

    test('of no time takes an event that is there, or none', async () => {
      const world = await eventsWorld(engine);
      const job = await world.submit();

      const none = await world.wait(job, 1, { timeoutMs: 0 });
      const { eventId } = await world.send();
      const one = await world.wait(job, 2, { timeoutMs: 0 });

      expect(none).toEqual({ value: null });
      expect(one).toMatchObject({ value: { id: eventId } });
      expect(await world.waits()).toEqual([]);
    });

    test('that has expired leaves the event to the next wait of the job', async () => {
      const world = await eventsWorld(engine);
      const job = await world.submit();
      await world.wait(job, 1);

      expect(await world.expire(job, 1)).toBe(true);
      const { eventId, delivered } = await world.send();

      expect(delivered).toBe(0);
      expect(await world.results(job)).toEqual([null]);
      expect(await world.wait(job, 2)).toMatchObject({ value: { id: eventId } });
    });
  });

  test('an event is told to all jobs that wait for it, each once, and taken by those that wait later', async () => {
    const world = await eventsWorld(engine);
    const late = await world.submit();
    const jobs = await waitingJobs(world, 3);

    const { eventId, delivered } = await world.send();

    expect(delivered).toBe(3);
    for (const job of jobs) {
      expect(await world.results(job)).toEqual([expect.objectContaining({ id: eventId })]);
      expect(await world.wait(job, 2)).toBeNull();
    }
    expect(await world.wait(late, 1)).toMatchObject({ value: { id: eventId } });
  });

  test('of two waits for one key in one job, an event ends the older one', async () => {
    const world = await eventsWorld(engine);
    const job = await world.submit();
    await world.wait(job, 1);
    await world.wait(job, 2);

    const first = await world.send();
    const afterFirst = await world.results(job);
    const second = await world.send();

    expect([first.delivered, second.delivered]).toEqual([1, 1]);
    expect(afterFirst).toEqual([expect.objectContaining({ id: first.eventId }), undefined]);
    expect(await world.results(job)).toMatchObject([{ id: first.eventId }, { id: second.eventId }]);
  });

  test('a loop takes the events of a key in their order, each once, whether it waits or not', async () => {
    const world = await eventsWorld(engine);
    const job = await world.submit();
    const taken: unknown[] = [];
    let n = 0;
    const take = async () => {
      n += 1;
      await world.wait(job, n);
    };

    await world.send({ data: 1 });
    await world.send({ data: 2 });
    await take();
    await take();
    await take();
    await world.send({ data: 3 });
    await world.send({ data: 4 });
    await take();
    await take();
    await world.send({ data: 5 });

    for (const result of await world.results(job)) taken.push((result as { data: number }).data);
    expect(taken).toEqual([1, 2, 3, 4, 5]);
    expect((await world.send({ data: 6 })).delivered).toBe(0);
  });

  test('an event, a timeout and a second event at once end a wait exactly once', async () => {
    const world = await eventsWorld(engine);
    for (let round = 0; round < 10; round += 1) {
      const job = await world.submit();
      const key = `round ${round}`;
      await world.wait(job, 1, { key });

      const [first, isExpired, second] = await Promise.all([
        world.send({ key, data: 1 }),
        world.expire(job, 1),
        world.send({ key, data: 2 }),
      ]);

      const [result] = await world.results(job);
      expect(first.delivered + second.delivered + Number(isExpired)).toBe(1);
      const winner = first.delivered === 1 ? first : second;
      if (isExpired) expect(result).toBeNull();
      else expect(result).toMatchObject({ id: winner.eventId });
      expect(await world.waits()).toEqual([]);
    }
  });

  test('events and waits that come at the same time always meet', async () => {
    const world = await eventsWorld(engine);
    const job = await world.submit();
    const rounds = Array.from({ length: 20 }, (_, i) => i + 1);
    for (const n of rounds) {
      await Promise.all([
        world.send({ key: `${n}`, data: n }),
        world.wait(job, n, { key: `${n}` }),
      ]);
    }

    const results = await world.results(job);

    expect(results.map((one) => (one as { data?: number } | undefined)?.data)).toEqual(rounds);
  });

  test('more jobs than one transaction tells are all told, and the number is answered', async () => {
    const world = await eventsWorld(engine);
    const jobs = await waitingJobs(world, 501);

    const { eventId, delivered } = await world.send({ idempotencyKey: 'x' });

    expect(delivered).toBe(501);
    expect(await world.send({ idempotencyKey: 'x' })).toMatchObject({ eventId, delivered: 501 });
    const last = jobs.at(-1) as { id: string };
    expect(await world.results(last)).toEqual([expect.objectContaining({ id: eventId })]);
    expect(await world.waits()).toEqual([]);
  });

  test('what a process that died has left untold is told by the background task, before later events', async () => {
    const world = await eventsWorld(engine);
    const jobs = await waitingJobs(world, 501);
    await expect(
      world.send({ data: 1 }, world.eventsOn(dyingAfterOneWrite(world.database))),
    ).rejects.toThrow('has died');
    const left = await world.waits();

    await world.runEvents.tellUntold();
    for (const job of jobs) await world.wait(job, 2);
    const { delivered } = await world.send({ data: 2 });

    expect(left).toHaveLength(1);
    expect(delivered).toBe(501);
    for (const job of [jobs[0], jobs[500]]) {
      expect(await world.results(job as { id: string })).toMatchObject([{ data: 1 }, { data: 2 }]);
    }
  });

  test('of the events with one name and key that runs have taken, the newest 1,000 are kept', async () => {
    const world = await eventsWorld(engine);
    const { eventId } = await world.send();
    const rows = await world.database.read.kysely
      .selectFrom('received_events')
      .selectAll()
      .where('id', '=', eventId)
      .execute();
    const copies = rows.flatMap((row) =>
      Array.from({ length: 1_003 }, (_, i) => ({
        ...row,
        id: `${row.id.slice(0, -4)}${String(i).padStart(4, '0')}`,
        taken: 1,
      })),
    );
    await world.database.write(async (tx) => {
      await tx.kysely.deleteFrom('received_events').execute();
      await tx.insert('received_events', copies);
    });

    const { eventId: newest } = await world.send();

    const kept = copies.slice(3).map(({ id }) => id);
    expect(await world.stored()).toEqual([...kept, newest].toSorted());
  });

  test('a later event tells the earlier one first, where a process has left it untold', async () => {
    const world = await eventsWorld(engine);
    const jobs = await waitingJobs(world, 501);
    await expect(
      world.send({ data: 1 }, world.eventsOn(dyingAfterOneWrite(world.database))),
    ).rejects.toThrow('has died');

    const { delivered } = await world.send({ data: 2 });

    expect(delivered).toBe(0);
    const last = jobs.at(-1) as { id: string };
    expect(await world.results(last)).toMatchObject([{ data: 1 }]);
    expect(await world.wait(last, 2)).toMatchObject({ value: { data: 2 } });
  });

  test.runIf(engine.name === 'PostgreSQL')(
    'an event waits for a wait that is being recorded, and finds it',
    async () => {
      const world = await eventsWorld(engine);
      const job = await world.submit();
      const isBegun = Promise.withResolvers<void>();
      const mayCommit = Promise.withResolvers<void>();
      const waiting = world.database.write(async (tx) => {
        const result = await world.waitWithin(tx, job, 1);
        isBegun.resolve();
        await mayCommit.promise;
        return result;
      });
      await isBegun.promise;

      const sending = world.send({ data: 1 });
      await waitFor(() => isBlocked(world.database), { describe: 'the event waits for the lock' });
      mayCommit.resolve();

      expect(await waiting).toBeNull();
      expect((await sending).delivered).toBe(1);
      expect(await world.results(job)).toMatchObject([{ data: 1 }]);
      expect(await world.waits()).toEqual([]);
    },
  );

  test.runIf(engine.name === 'PostgreSQL')(
    'a wait waits for an event that is being recorded, and takes it',
    async () => {
      const world = await eventsWorld(engine);
      const job = await world.submit();
      const isSent = Promise.withResolvers<void>();
      const mayCommit = Promise.withResolvers<void>();
      const slow: Database = {
        ...world.database,
        write: (unit) =>
          world.database.write(async (tx) => {
            const result = await unit(tx);
            // Sends what has no answer.
            await tx.kysely.selectFrom('received_events').select('id').execute();
            isSent.resolve();
            await mayCommit.promise;
            return result;
          }),
      };
      const sending = world.send({ data: 1 }, world.eventsOn(slow));
      await isSent.promise;

      const waiting = world.wait(job, 1);
      await waitFor(() => isBlocked(world.database), { describe: 'the wait waits for the lock' });
      mayCommit.resolve();

      expect((await sending).delivered).toBe(0);
      expect(await waiting).toMatchObject({ value: { data: 1 } });
      expect(await world.waits()).toEqual([]);
    },
  );

  describe('retention', () => {
    test('keeps an event while a job that was accepted before it has not ended', async () => {
      const world = await eventsWorld(engine);
      await world.send();
      const job = await world.submit();
      const { eventId: kept } = await world.send();
      world.clock.advance(2 * minute);

      await world.deleteOld();
      const whileQueued = await world.stored();
      await world.attempt(job.id, completed());
      await world.deleteOld();

      expect(whileQueued).toEqual([kept]);
      expect(await world.stored()).toEqual([]);
    });

    test('deletes events of organizations without unended jobs, and of no others', async () => {
      const world = await eventsWorld(engine);
      await world.callerOf('other');
      await world.submit();
      const { eventId: kept } = await world.send();
      await world.send({ organizationId: 'other' });
      world.clock.advance(2 * minute);

      await world.deleteOld();

      expect(await world.stored()).toEqual([kept]);
    });

    test('deletes an event for one job when that job has ended', async () => {
      const world = await eventsWorld(engine);
      const [job, older] = [await world.submit(), await world.submit()];
      await world.send({ jobId: job.id });
      const { eventId: kept } = await world.send({ jobId: older.id });
      world.clock.advance(2 * minute);
      await world.attempt(job.id, completed());

      await world.deleteOld();

      expect(await world.stored()).toEqual([kept]);
    });

    test('leaves events of the last minute, whose jobs may not be visible yet', async () => {
      const world = await eventsWorld(engine);
      const { eventId: id } = await world.send();

      await world.deleteOld();

      expect(await world.stored()).toEqual([id]);
    });

    test('forgets what a job was given once it has ended', async () => {
      const world = await eventsWorld(engine);
      const [job, other] = [await world.submit(), await world.submit()];
      await world.send();
      await world.wait(job, 1);
      await world.wait(other, 1);
      await world.attempt(job.id, completed());

      await world.deleteOld();

      const rows = await world.database.read.kysely
        .selectFrom('event_positions')
        .select('job_id')
        .execute();
      expect(rows).toEqual([{ job_id: other.id }]);
    });

    test('forgets Idempotency-Keys after 24 hours', async () => {
      const world = await eventsWorld(engine);
      const keys = () =>
        world.database.read.kysely.selectFrom('event_idempotency_keys').selectAll().execute();
      const { eventId: first } = await world.send({ idempotencyKey: 'one' });
      world.clock.advance(day - minute);
      await world.deleteOld();
      const { eventId: again } = await world.send({ idempotencyKey: 'one' });
      world.clock.advance(minute + 1);

      const { eventId: anew } = await world.send({ idempotencyKey: 'one' });
      await world.send({ idempotencyKey: 'two' });
      const taken = await keys();
      world.clock.advance(day + 1);
      await world.deleteOld();

      expect(again).toBe(first);
      expect(anew).not.toBe(first);
      expect(taken).toHaveLength(2);
      expect(await keys()).toEqual([]);
    });
  });
});

/** Whether a transaction waits for the lock of a name and key. */
async function isBlocked({ read }: Database): Promise<boolean> {
  const { rows } = await sql<{ n: number }>`select count(*) as n from pg_locks
    where locktype = 'advisory' and not granted`.execute(read.kysely);
  return Number(rows[0]?.n) > 0;
}
