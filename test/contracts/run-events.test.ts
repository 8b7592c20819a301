/** Events from outside, on every database: who gets them, once, and how long they are stored. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { removeUntakeable } from '../../src/platform/run-events/untakeable.ts';
import { engines } from '../support/databases.ts';
import { isBlocked, lockedInTurn } from '../support/deadlocks.ts';
import { type EventsWorld, eventsWorld } from '../support/event-waits.ts';
import { completed } from '../support/jobs-world.ts';
import { mortal } from '../support/mortal-database.ts';
import { waitFor } from '../support/wait-for.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

/** Jobs that all wait for the event. */
async function waitingJobs(world: EventsWorld, count: number) {
  const requests = Array.from({ length: count }, () => world.request());
  const accepted = await world.database.write((tx) => world.acceptor.acceptWithin(tx, requests));
  const jobs = accepted.flatMap((one) => ('job' in one ? [one.job] : []));
  await world.database.write(async (tx) => {
    for (const job of jobs) await world.waitWithin(tx, job, 1);
  });
  return jobs;
}

/** The events of a process that dies after its first write. */
function dyingEvents(world: EventsWorld) {
  const life = mortal(world.database);
  life.dieAfter(1);
  return world.eventsOn(life.database);
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
    await expect(world.send({ data: 1 }, dyingEvents(world))).rejects.toThrow('has died');
    const left = await world.waits();

    await world.runEvents.handover.handOverAll();
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
    await world.submit();
    const copies = await fillTaken(world, 1_003);

    const { eventId: newest } = await world.send();

    const kept = copies.slice(3).map(({ id }) => id);
    expect(await world.stored()).toEqual([...kept, newest].toSorted());
  });

  test.runIf(engine.name === 'PostgreSQL')(
    'an event that takes the place of a taken one counts the deletion first, as all do',
    async () => {
      const world = await eventsWorld(engine);
      await world.submit();
      await fillTaken(world, 1_003);
      await fillTotals(world, 1_003);
      const first = { organization_id: 'default', shard: 0, events: 0, bytes: 0 };
      await world.database.write((tx) => tx.insert('event_totals', [first]));
      const totals = (tx: Transaction) =>
        tx.kysely.selectFrom('event_totals').selectAll().forUpdate().noWait();

      const { eventId } = await lockedInTurn(
        world.database,
        (tx) => totals(tx).where('shard', '=', 0).execute(),
        () => world.send(),
        (tx) => totals(tx).execute(),
      );

      expect(await world.stored()).toContain(eventId);
    },
  );

  test('a later event tells the earlier one first, where a process has left it untold', async () => {
    const world = await eventsWorld(engine);
    const jobs = await waitingJobs(world, 501);
    await expect(world.send({ data: 1 }, dyingEvents(world))).rejects.toThrow('has died');

    const { delivered } = await world.send({ data: 2 });

    expect(delivered).toBe(0);
    const last = jobs.at(-1) as { id: string };
    expect(await world.results(last)).toMatchObject([{ data: 1 }]);
    expect(await world.wait(last, 2)).toMatchObject({ value: { data: 2 } });
  });

  describe('an event that no job can take', () => {
    test('is answered and not stored', async () => {
      const world = await eventsWorld(engine);
      const other = await world.callerOf('other');
      await world.submit({ organizationId: 'other', apiKeyId: other.keyId });
      const ended = await world.submit();
      await world.attempt(ended.id, completed());

      const { eventId, delivered } = await world.send({ idempotencyKey: 'x' });
      const again = await world.send({ idempotencyKey: 'x' });

      expect(delivered).toBe(0);
      expect(again).toEqual({ eventId, delivered: 0, isReplay: true });
      expect(await world.stored()).toEqual([]);
    });

    test('does not count towards the bound of its name and key', async () => {
      const world = await eventsWorld(engine);
      const old = await world.submit();
      await fillAddress(world);
      const young = await world.submit();
      await expect(world.send()).rejects.toThrow('1,000 events order.paid');
      await world.attempt(old.id, completed());

      const { eventId } = await world.send();

      expect(await world.stored()).toEqual([eventId]);
      expect(await world.wait(young, 1)).toMatchObject({ value: { id: eventId } });
    });

    test('does not count towards that bound either when it was for one job, which has ended', async () => {
      const world = await eventsWorld(engine);
      const [older, job] = [await world.submit(), await world.submit()];
      await fillAddress(world, { jobId: job.id });
      await expect(world.send()).rejects.toThrow('1,000 events order.paid');
      await world.attempt(job.id, completed());

      const { eventId } = await world.send();

      expect(await world.wait(older, 1)).toMatchObject({ value: { id: eventId } });
    });

    test('does not count towards the bound of the organization', async () => {
      const world = await eventsWorld(engine);
      const old = await world.submit();
      await fillAddress(world);
      await fillTotals(world, 99_000);
      await world.submit();
      await expect(world.send({ key: 'another' })).rejects.toThrow('100,000 events');
      await world.attempt(old.id, completed());

      const { eventId } = await world.send({ key: 'another' });

      expect(await world.stored()).toEqual([eventId]);
    });

    test('is deleted by the background task, however many jobs have ended since', async () => {
      const world = await eventsWorld(engine);
      const [old, waiting] = [await world.submit(), await world.submit()];
      await world.send();
      const ended = await world.submit();
      for (const { id } of [old, ended]) await world.attempt(id, completed());
      await copyJobs(world, ended.id, 2_500);
      const { eventId: kept } = await world.send();
      const young = await world.submit();

      await removeUntakeable(world.database);
      const whileWaiting = await world.stored();
      await world.attempt(waiting.id, completed());
      await removeUntakeable(world.database);

      expect(whileWaiting).toHaveLength(2);
      expect(whileWaiting).toContain(kept);
      expect(await world.stored()).toEqual([]);
      expect(await world.wait(young, 1)).toBeNull();
    });
  });

  describe('of an organization', () => {
    test('100,000 events are stored; the next is refused, unless older ones have been taken', async () => {
      const world = await eventsWorld(engine);
      const [job] = [await world.submit(), await world.submit()];
      const { eventId: taken } = await world.send({ key: 'taken' });
      await world.wait(job, 1, { key: 'taken' });
      await fillTotals(world, 99_999);

      const { eventId } = await world.send({ key: 'a' });
      const refused = world.send({ key: 'b' });

      await expect(refused).rejects.toMatchObject({ code: 'conflict' });
      await expect(refused).rejects.toThrow('At most 100,000 events with 256 MiB of data');
      expect(await world.stored()).toEqual([eventId]);
      expect(taken).not.toBe(eventId);
    });

    test('256 MiB of data are stored', async () => {
      const world = await eventsWorld(engine);
      await world.submit();
      await fillTotals(world, 1, 256 * 1024 * 1024 - 10);

      await world.send({ data: '12345678' });

      await expect(world.send({ data: 1 })).rejects.toMatchObject({ code: 'conflict' });
    });

    test('the events are counted as they come and go', async () => {
      const world = await eventsWorld(engine);
      const [job, other] = [await world.submit(), await world.submit()];
      for (const key of ['a', 'b', 'c']) await world.send({ key, data: key.repeat(10) });
      await world.send({ jobId: job.id });
      await world.send({ jobId: other.id, data: 'ü' });
      const before = await world.totals();

      await world.wait(job, 1);
      const afterOne = await world.totals();
      for (const { id } of [job, other]) await world.attempt(id, completed());
      await world.deleteOld();
      const afterAll = await world.totals();

      expect(before).toEqual({ counted: [5, 44], stored: [5, 44] });
      expect(afterOne).toEqual({ counted: [4, 40], stored: [4, 40] });
      expect(afterAll).toEqual({ counted: [0, 0], stored: [0, 0] });
    });
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
      const older = await world.submit();
      await world.send();
      const job = await world.submit();
      await world.attempt(older.id, completed());
      const { eventId: kept } = await world.send();

      await world.deleteOld();
      const whileQueued = await world.stored();
      await world.attempt(job.id, completed());
      await world.deleteOld();

      expect(whileQueued).toEqual([kept]);
      expect(await world.stored()).toEqual([]);
    });

    test('deletes events of organizations without unended jobs, and of no others', async () => {
      const world = await eventsWorld(engine);
      const other = await world.callerOf('other');
      await world.submit();
      const theirs = await world.submit({ organizationId: 'other', apiKeyId: other.keyId });
      const { eventId: kept } = await world.send();
      await world.send({ organizationId: 'other' });
      await world.attempt(theirs.id, completed());

      await world.deleteOld();

      expect(await world.stored()).toEqual([kept]);
    });

    test('deletes an event for one job when that job has ended', async () => {
      const world = await eventsWorld(engine);
      const [job, older] = [await world.submit(), await world.submit()];
      await world.send({ jobId: job.id });
      const { eventId: kept } = await world.send({ jobId: older.id });
      await world.attempt(job.id, completed());

      await world.deleteOld();

      expect(await world.stored()).toEqual([kept]);
    });

    test('keeps an event for a job that was accepted after the clock was an hour ahead', async () => {
      const world = await eventsWorld(engine);
      const old = await world.submit();
      await world.send({ key: 'x' });
      await world.attempt(old.id, completed());
      // Ids are of the machine's clock.
      world.clock.jumpTo(Date.now() + 60 * minute);
      await removeUntakeable(world.database);
      world.clock.jumpTo(Date.now());

      const job = await world.submit();
      const { eventId } = await world.send();
      await world.submit();
      await removeUntakeable(world.database);

      expect(await world.stored()).toEqual([eventId]);
      expect(await world.wait(job, 1)).toMatchObject({ value: { id: eventId } });
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

/** Stores as many events with one name and key as are kept of those that no run has taken. */
async function fillAddress(world: EventsWorld, sent: Parameters<EventsWorld['send']>[0] = {}) {
  const { eventId } = await world.send(sent);
  const { database } = world;
  const row = await database.read.kysely
    .selectFrom('received_events')
    .selectAll()
    .where('id', '=', eventId)
    .executeTakeFirstOrThrow();
  const copies = Array.from({ length: 999 }, (_, i) => ({
    ...row,
    id: `${row.id.slice(0, -6)}${String(i).padStart(6, '0')}`,
  }));
  await database.write((tx) => tx.insert('received_events', copies));
  await fillTotals(world, 999, 999 * Buffer.byteLength(row.data));
}

/** Replaces the stored events by so many of one name and key that runs have taken. */
async function fillTaken(world: EventsWorld, count: number) {
  const { eventId } = await world.send();
  const { database } = world;
  const row = await database.read.kysely
    .selectFrom('received_events')
    .selectAll()
    .where('id', '=', eventId)
    .executeTakeFirstOrThrow();
  const copies = Array.from({ length: count }, (_, i) => ({
    ...row,
    id: `${row.id.slice(0, -4)}${String(i).padStart(4, '0')}`,
    taken: 1,
  }));
  await database.write(async (tx) => {
    await tx.kysely.deleteFrom('received_events').execute();
    await tx.insert('received_events', copies);
  });
  return copies;
}

/** Counts events that are not there. */
async function fillTotals({ database }: EventsWorld, events: number, bytes = 0) {
  const row = { organization_id: 'default', events, bytes };
  const { rows } = await sql<{ shard: number }>`select coalesce(max(shard), 0) + 100 as shard
    from event_totals`.execute(database.read.kysely);
  await database.write((tx) => tx.insert('event_totals', [{ ...row, shard: rows[0]?.shard ?? 0 }]));
}

/** So many jobs more that have ended, accepted at the same time as one that has. */
async function copyJobs({ database }: EventsWorld, id: string, count: number) {
  const row = await database.read.kysely
    .selectFrom('jobs')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const copies = Array.from({ length: count }, (_, i) => ({
    ...row,
    id: `${id.slice(0, -6)}${String(i).padStart(6, '0')}`,
  }));
  await database.write((tx) => tx.insert('jobs', copies));
}
