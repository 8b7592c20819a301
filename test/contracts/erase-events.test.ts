/** Erasure of a user in events and deliveries, on every database, where its process dies on the way. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { beginBacklogs } from '../../src/core/events/backlogs.ts';
import { endOfOutbox, setCursor } from '../../src/core/events/reader-queries.ts';
import { Files } from '../../src/core/files/files.ts';
import type { Jobs } from '../../src/core/jobs/jobs.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { eraseDeliveries, eraseEvents } from '../../src/platform/user-data/erase-events.ts';
import { beginProgress, keepProgress } from '../../src/platform/user-data/erased-events.store.ts';
import { UserData } from '../../src/platform/user-data/user-data.ts';
import { Deliveries } from '../../src/platform/webhooks/deliveries.ts';
import { Dispatcher } from '../../src/platform/webhooks/dispatch.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { lockedInTurn } from '../support/deadlocks.ts';
import { completed, jobsWorld } from '../support/jobs-world.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';
import { webhooksWorld } from '../support/webhooks-world.ts';

const user = { organizationId: 'default', userId: 'alice' };
const isLate = () => false;

const conversationCreated = () => ({
  ...{ id: newId(), organization_id: 'default', agent_id: 'default', created_at: 0 },
  type: 'conversation.created',
  data: JSON.stringify({ conversation_id: newId(), user_id: 'alice' }),
});

/** Of which there are none. */
const filesOf = (database: Database, clock: Clock) =>
  new Files(contextOf({ database, clock }), null);

/** An event about a conversation of the user, and a delivery that was made of it. */
async function told(database: Database, data = { conversation_id: newId(), user_id: 'alice' }) {
  const event_id = newId();
  const event = 'conversation.created';
  const common = { agent_id: 'default', created_at: 0 };
  await database.write(async (tx) => {
    const row = { id: event_id, organization_id: 'default', type: event };
    await tx.insert('events', [{ ...common, ...row, data: JSON.stringify(data) }]);
    await tx.insert('webhook_deliveries', [
      {
        ...{ id: newId(), webhook_id: newId(), event_id, event, status: 'delivered' },
        ...{ attempts: 1, lost: 0, epoch: 1, due_at: null, started_at: 0, is_test: 0 },
        ...{ redelivery_of: null, created_at: 0, finished_at: 0 },
        body: `{"id":"${event_id}","data":${JSON.stringify(data)}}`,
        subject: data.conversation_id,
      },
    ]);
  });
  return data.conversation_id;
}

/** A database whose process dies before its write number `last + 1`. */
function dyingAfter(database: Database, last: number): Database {
  let writes = 0;
  return {
    ...database,
    async write(unit) {
      writes += 1;
      if (writes > last) throw new Error('the process died');
      return await database.write(unit);
    },
  };
}

/** A database whose writes have done everything but the commit when they wait for `gate`. */
function gated(database: Database, gate: Promise<void>) {
  const reached = Promise.withResolvers<void>();
  const write: Database['write'] = (unit) =>
    database.write(async (tx) => {
      const result = await unit(tx);
      // A statement without an awaited result is sent with the next awaited one.
      await sql`select 1`.execute(tx.kysely);
      reached.resolve();
      await gate;
      return result;
    });
  return { database: { ...database, write }, reached: reached.promise };
}

/** Whether a transaction waits for another one; on SQLite each does, and none is seen. */
async function isAnyWaiting(database: Database): Promise<boolean> {
  if (database.read.dialect === 'sqlite') return true;
  const { rows } = await sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(database.read.kysely);
  return rows.length > 0;
}

/** Erases the user's events while `other` stands at `gate`, which opens once the erasure waits for it or has ended. */
async function eraseBeside(
  database: Database,
  other: string,
  gate: PromiseWithResolvers<void>,
): Promise<void> {
  let isErased = false;
  const erasing = eraseEvents(database, user, isLate).then(() => {
    isErased = true;
  });
  await waitFor(async () => isErased || (await isAnyWaiting(database)), {
    describe: `the erasure waits for ${other}, or has ended`,
  });
  gate.resolve();
  await erasing;
}

async function left(database: Database): Promise<string[]> {
  const { kysely } = database.read;
  const events = await kysely.selectFrom('events').select('data as text').execute();
  const bodies = await kysely.selectFrom('webhook_deliveries').select('body as text').execute();
  const responses = await kysely
    .selectFrom('webhook_attempts')
    .select('response as text')
    .execute();
  const texts = [...events, ...bodies, ...responses].map(({ text }) => text ?? '');
  return texts.filter((text) => text.includes('alice'));
}

describe.each(await engines())('on $name', (engine) => {
  test('a repetition erases what is left, wherever the erasure before broke off', async () => {
    const database = await engine.emptied();
    let isDone = false;
    for (let last = 0; !isDone; last++) {
      await told(database);
      await told(database);
      isDone = await eraseEvents(dyingAfter(database, last), user, isLate).catch(() => false);

      await eraseEvents(database, user, isLate);

      expect(await left(database)).toEqual([]);
    }
    const { kysely } = database.read;
    const events = await kysely.selectFrom('events').select('data').distinct().execute();
    expect(events).toEqual([{ data: '{"erased":true}' }]);
  });

  test('events that an earlier request has passed are erased with their jobs, wherever a later one breaks off', async () => {
    const { database, clock, memories, ...world } = await jobsWorld(engine);
    const log = createLogger('silent');
    const context = { database, clock, log, writer: 'a test' };
    const slices = { memories, files: filesOf(database, clock), jobs: world.jobs };
    let isDone = false;
    for (let last = 0; !isDone; last++) {
      const { id } = await world.submit({ userId: 'alice', isForUser: true });
      await world.attempt(id, completed('alice'));
      await database.write(async (tx) =>
        keepProgress(tx, user, await beginProgress(tx, user), await endOfOutbox(tx)),
      );
      const dying = new UserData(
        contextOf({ ...context, database: dyingAfter(database, last) }),
        slices,
      );
      isDone = await dying.erase(user).then(
        ({ done }) => done,
        () => false,
      );

      expect(await new UserData(contextOf(context), slices).erase(user)).toMatchObject({
        done: true,
      });

      expect(await left(database)).toEqual([]);
    }
  });

  test.runIf(engine.name === 'PostgreSQL').each(['job_keys', 'idempotency_keys'] as const)(
    '%s are locked before their jobs, as a request with a key locks them',
    async (table) => {
      const { database, clock, memories, ...world } = await jobsWorld(engine);
      const { id } = await world.submit({
        ...{ userId: 'alice', isForUser: true, jobKey: { key: 'one', mode: 'replace' } },
        idempotency: { owner: world.caller.keyId, key: 'one', fingerprint: 'one' },
      });
      await world.attempt(id, completed('alice'));
      const context = { database, clock, log: createLogger('silent'), writer: 'a test' };
      const userData = new UserData(contextOf(context), {
        ...{ memories, jobs: world.jobs },
        files: filesOf(database, clock),
      });

      const erased = await lockedInTurn(
        database,
        (tx) => tx.kysely.selectFrom(table).select('job_id').forUpdate().execute(),
        () => userData.erase(user),
        (tx) =>
          tx.kysely
            .selectFrom('jobs')
            .select('id')
            .where('id', '=', id)
            .forUpdate()
            .noWait()
            .executeTakeFirstOrThrow(),
      );

      expect(erased).toMatchObject({ done: true, jobs: 1 });
      expect(await database.read.kysely.selectFrom(table).select('job_id').execute()).toEqual([]);
    },
  );

  test('events that another request has passed meanwhile are erased with their jobs', async () => {
    const { database, clock, memories, ...world } = await jobsWorld(engine);
    const { id } = await world.submit({ userId: 'alice', isForUser: true });
    await world.attempt(id, completed('alice'));
    // The other request has looked at the events, is late, and keeps its place when the jobs are erased.
    let isLookedAt = false;
    let looks = 0;
    const { promise: areErased, resolve: nextRound } = Promise.withResolvers<void>();
    const otherDatabase: Database = {
      ...database,
      async write(unit) {
        if (isLookedAt) await areErased;
        return await database.write(unit);
      },
    };
    const other = eraseEvents(
      otherDatabase,
      user,
      // Called before it reads deliveries, of which there are none, and after the page of events.
      () => {
        isLookedAt = looks++ > 0;
        return isLookedAt;
      },
    );
    await waitFor(() => isLookedAt, { describe: 'the other request has looked at the events' });
    let rounds = 0;
    const eraseMemories: typeof memories.eraseUser = async (...asked) => {
      rounds += 1;
      if (rounds === 2) {
        nextRound();
        await other;
      }
      return await memories.eraseUser(...asked);
    };
    const log = createLogger('silent');

    const userData = new UserData(contextOf({ database, clock, log, writer: 'a test' }), {
      memories: Object.create(memories, { eraseUser: { value: eraseMemories } }),
      files: filesOf(database, clock),
      jobs: world.jobs,
    });
    const erased = await userData.erase(user);

    expect(erased).toMatchObject({ done: true, jobs: 1 });
    expect(await left(database)).toEqual([]);
  });

  test('a request that is late among the deliveries of many events stops there, and a repetition goes on', async () => {
    const database = await engine.emptied();
    for (let i = 0; i < 250; i++) await told(database);
    let looks = 0;
    const isLateSoon = () => ++looks > 1;
    const named = (texts: readonly string[]) => texts.filter((text) => text.includes('"data":{"c'));

    expect(await eraseEvents(database, user, isLateSoon)).toBe(false);

    // One transaction was not too late.
    expect(named(await left(database))).toHaveLength(150);
    expect(await eraseEvents(database, user, isLate)).toBe(true);
    expect(await left(database)).toEqual([]);
  });

  test.each(['new', 'backlog'])(
    'a delivery whose dispatch was under way is erased: %s',
    async (kind) => {
      const { database, webhook, deliveries, clock } = await webhooksWorld(engine);
      await webhook({ events: ['conversation.created'] });
      await database.write((tx) => tx.insert('events', [conversationCreated()]));
      await untilReadable(database);
      if (kind === 'backlog') {
        await database.write(async (tx) => {
          const at = { txid: '0', seq: 0 };
          await beginBacklogs(tx, 'webhooks', [{ organizationId: 'default', at }]);
          await setCursor(tx, 'webhooks', await endOfOutbox(tx));
        });
      }
      const gate = Promise.withResolvers<void>();
      const { database: slow, reached } = gated(database, gate.promise);
      const context = contextOf({ database: slow, clock, writer: 'a test' });
      const dispatched = new Dispatcher(context).dispatch();
      await reached;

      await eraseBeside(database, 'the dispatcher', gate);
      await dispatched;

      expect(await deliveries()).toHaveLength(1);
      expect(await left(database)).toEqual([]);
    },
  );

  test('a redelivery that was under way is erased', async () => {
    const world = await webhooksWorld(engine);
    const { database, clock } = world;
    const webhookId = await world.webhook({ events: ['conversation.created'] });
    await database.write((tx) => tx.insert('events', [conversationCreated()]));
    await untilReadable(database);
    await world.deliver();
    const [original] = await world.deliveries();
    const gate = Promise.withResolvers<void>();
    const { database: slow, reached } = gated(database, gate.promise);
    const context = contextOf({ database: slow, clock, writer: 'a test' });
    const deliveryId = original?.id ?? '';
    const redelivered = new Deliveries(context, {} as Jobs).redeliver(
      'default',
      webhookId,
      deliveryId,
    );
    await reached;

    await eraseBeside(database, 'the redelivery', gate);
    await redelivered;

    expect(await world.deliveries()).toHaveLength(2);
    expect(await left(database)).toEqual([]);
  });

  test.each([200, 503])(
    'what a receiver answers to an attempt that was under way is not recorded: %i',
    async (status) => {
      const { database, ...world } = await webhooksWorld(engine);
      await world.webhook({ events: ['conversation.created'] });
      await database.write((tx) => tx.insert('events', [conversationCreated()]));
      world.answer(async ({ body }) => {
        await eraseEvents(database, user, isLate);
        return { status, error: null, response: `got ${body}` };
      });
      await world.deliver();

      expect(world.sent.map(({ body }) => body)).toEqual([expect.stringContaining('alice')]);
      expect(await left(database)).toEqual([]);
      const { kysely } = database.read;
      const attempts = await kysely.selectFrom('webhook_attempts').select('status').execute();
      expect(attempts).toEqual([{ status }]);
    },
  );

  test('a delivery is erased also where a skill said what stands in place of erased data', async () => {
    const database = await engine.emptied();
    const said = { output: { data: { erased: true } } };
    const subject = await told(database, {
      ...{ conversation_id: newId(), user_id: 'alice' },
      ...said,
    });

    expect(await eraseDeliveries(database, [subject], isLate)).toBe(true);

    const { kysely } = database.read;
    const [delivery] = await kysely.selectFrom('webhook_deliveries').select('body').execute();
    expect(delivery?.body).not.toContain('alice');
  });
});
