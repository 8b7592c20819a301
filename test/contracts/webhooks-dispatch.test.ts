/** Events become deliveries, exactly once for each subscribed webhook (specification: Events; docs/decisions/webhooks.md). */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { eventTypes } from '../../src/core/events/events.ts';
import { furthestBehind } from '../../src/core/events/reader-queries.ts';
import { Dispatcher } from '../../src/platform/webhooks/dispatch.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsOf, webhooksWorld } from '../support/webhooks-world.ts';
import { anyWriter } from '../support/writers.ts';

describe.each(await engines())('on $name', (engine) => {
  test('a webhook for all agents gets the events of each, of its organization alone', async () => {
    const { webhook, agents, deliver, sent } = await webhooksWorld(engine);
    await webhook({
      agent_id: '*',
      events: ['agent.created', 'agent.status_changed', 'agent.deleted'],
    });

    await agents.create(anyWriter(), { id: 'ann', name: 'Ann' });
    await agents.update(anyWriter(), 'ann', { status: 'paused' });
    await agents.update(anyWriter(), 'default', { status: 'paused' });
    await agents.create(anyWriter('other'), { id: 'eve' });
    await agents.remove(anyWriter(), 'ann');
    await deliver();

    const got = sent.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
    const shown = got.map(({ event, agent_id, data }) => ({ event, agent_id, data }));
    expect(shown.toSorted((a, b) => String(a.event).localeCompare(String(b.event)))).toEqual([
      { event: 'agent.created', agent_id: 'ann', data: { name: 'Ann', status: 'active' } },
      { event: 'agent.deleted', agent_id: 'ann', data: { name: 'Ann' } },
      ...['ann', 'default'].map((agent_id) => ({
        event: 'agent.status_changed',
        agent_id,
        data: { previous_status: 'active', status: 'paused' },
      })),
    ]);
  });

  test.each(eventTypes)('%s is delivered as the specification writes it', async (type) => {
    const { webhook, happen, deliver, sent, deliveries, clock } = await webhooksWorld(engine);
    const id = await webhook({ agent_id: '*', events: [type] });
    clock.advance(1_234);

    await happen(type);
    await deliver();

    const [delivery] = await deliveries(id);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.body).toBe(delivery?.body);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      id: delivery?.event_id,
      event: type,
      timestamp: new Date(clock.now()).toISOString(),
      agent_id: 'default',
      data: expect.any(Object),
    });
    expect(Object.keys(JSON.parse(sent[0]?.body ?? ''))).toEqual([
      ...['id', 'event', 'timestamp', 'agent_id', 'data'],
    ]);
    expect(sent[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-service-event': type,
      'x-service-delivery': delivery?.id,
      'webhook-id': delivery?.id,
      'webhook-timestamp': String(Math.floor(clock.now() / 1000)),
    });
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, finished_at: clock.now() });
  });

  test('an event without a subscribed webhook makes no delivery', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, agents, happen, deliver, sent, deliveries } = world;
    await agents.create(anyWriter(), { id: 'another' });
    await webhook({ events: ['skill.failed', 'agent.error'] });
    await webhook({ agent_id: 'another' });
    await webhook({}, 'other');
    const inactive = await webhook();
    await webhooks.update(anyWriter(), inactive, { active: false });
    const deleted = await webhook();
    await webhooks.remove('default', deleted);

    await happen('skill.completed');
    await deliver();

    expect(sent).toEqual([]);
    expect(await deliveries()).toEqual([]);
  });

  test('every webhook that is subscribed to it gets it', async () => {
    const { webhook, happen, deliver, sent, deliveries } = await webhooksWorld(engine);
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      ids.push(await webhook({ events: ['skill.failed', 'skill.completed'] }));
    }

    await happen();
    await happen('skill.failed');
    await deliver();

    expect(sent).toHaveLength(6);
    for (const id of ids) {
      const events = (await deliveries(id)).map(({ event }) => event);
      expect(events.toSorted()).toEqual(['skill.completed', 'skill.failed']);
    }
  });

  test('a webhook gets only events after its creation', async () => {
    const { webhook, happen, deliver, deliveries } = await webhooksWorld(engine);
    await happen();
    const first = await webhook();
    await happen();
    const second = await webhook();
    await happen();

    await deliver();

    expect(await deliveries(first)).toHaveLength(2);
    expect(await deliveries(second)).toHaveLength(1);
  });

  test('events while a webhook is inactive are not delivered later', async () => {
    const { webhook, webhooks, happen, deliver, deliveries } = await webhooksWorld(engine);
    const id = await webhook();
    const other = await webhook();
    await webhooks.update(anyWriter(), id, { active: false });
    await happen();
    await webhooks.update(anyWriter(), id, { active: true });
    await happen();

    await deliver();

    expect(await deliveries(id)).toHaveLength(1);
    expect(await deliveries(other)).toHaveLength(2);
  });

  test('no old backlog is read when the first webhook comes', async () => {
    const { webhook, webhooks, happen, database, dispatcher, deliver, deliveries } =
      await webhooksWorld(engine);
    const earlier = await webhook();
    for (let i = 0; i < 50; i++) await happen();
    await webhooks.remove('default', earlier);
    await dispatcher.dispatch();
    await untilReadable(database);

    const id = await webhook();
    const cursor = await database.read.kysely
      .selectFrom('event_cursors')
      .selectAll()
      .executeTakeFirst();
    if (engine.name === 'SQLite') expect(cursor?.seq).toBe(50);
    else expect(Number(cursor?.txid)).toBeGreaterThan(0);
    await deliver();

    expect(await deliveries(id)).toEqual([]);
  });

  test('an event that is read again makes no second delivery', async () => {
    const { webhook, happen, deliver, database, dispatcher, deliveries, sent } =
      await webhooksWorld(engine);
    await webhook();
    await happen();
    await deliver();

    await database.write(async (tx) => {
      await tx.kysely.updateTable('event_cursors').set({ txid: '0', seq: 0 }).execute();
    });
    await dispatcher.dispatch();
    await deliver();

    expect(await deliveries()).toHaveLength(1);
    expect(sent).toHaveLength(1);
    const { counted, there } = await countsOf(database);
    expect(counted).toEqual(there);
  });

  test('more events than are read at a time become deliveries in one pass, and all are sent', async () => {
    const { webhook, happen, dispatcher, recovery, deliveries, sent, database } =
      await webhooksWorld(engine);
    await webhook();
    await Promise.all(Array.from({ length: 1_100 }, () => happen()));
    await untilReadable(database);

    await dispatcher.dispatch();

    expect(await deliveries()).toHaveLength(1_100);
    // Some found no room: those are the sweep's.
    await waitFor(
      async () => {
        await recovery.sweep();
        return new Set(sent.map(({ deliveryId }) => deliveryId)).size === 1_100;
      },
      { describe: 'all are sent' },
    );
    expect(sent).toHaveLength(1_100);
  });

  test('a flood of one organization does not hold up the events of another, and loses none', async () => {
    const { webhook, happen, dispatcher, deliveries, database } = await webhooksWorld(engine);
    const flooded: string[] = [];
    for (let i = 0; i < 20; i++) flooded.push(await webhook());
    const other = await webhook({}, 'other');
    // One after the other: on PostgreSQL, of parallel ones the order of `seq` is not that of transactions.
    for (let i = 0; i < 100; i++) await happen();
    await happen('skill.completed', { organizationId: 'other' });
    await untilReadable(database);

    await dispatcher.dispatch();

    // Ids tell the order in which deliveries were made.
    const made = await deliveries();
    expect(made).toHaveLength(2_001);
    expect(made.findIndex(({ webhook_id }) => webhook_id === other)).toBeLessThanOrEqual(500);
    const events = await database.read.kysely
      .selectFrom('events')
      .select('id')
      .where('organization_id', '=', 'default')
      .orderBy('seq')
      .execute();
    const first = await deliveries(flooded[0]);
    expect(first.map(({ event_id }) => event_id)).toEqual(events.map(({ id }) => id));
  });

  test('events in a backlog count as unread, and are read from where it stopped', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, dispatcher, deliveries, database, clock } = world;
    for (let i = 0; i < 20; i++) await webhook();
    await Promise.all(Array.from({ length: 26 }, () => happen()));
    await untilReadable(database);
    clock.advance(5_000);
    let turns = 0;
    const oneRound: Database = {
      ...database,
      // The first transaction reads for all; the pass ends before a backlog has its turn.
      write: (unit) => (turns++ === 0 ? database.write(unit) : Promise.reject(new Error('ends'))),
    };
    const interrupted = new Dispatcher(contextOf({ database: oneRound, clock }));

    await expect(interrupted.dispatch()).rejects.toThrow('ends');
    const [before, lag] = [await deliveries(), await dispatcher.lagMs()];
    await dispatcher.dispatch();

    expect([before.length, lag]).toEqual([500, 5_000]);
    expect(await deliveries()).toHaveLength(520);
    expect(await dispatcher.lagMs()).toBe(0);
    const cursors = await database.read.kysely.selectFrom('event_cursors').select('name').execute();
    expect(cursors).toEqual([{ name: 'webhooks' }]);
  });

  test('a backlog that begins while retention reads the cursors counts as unread', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, deliveries, database, clock } = world;
    for (let i = 0; i < 20; i++) await webhook();
    let turns = 0;
    const oneRound: Database = {
      ...database,
      // The first transaction begins the backlog; the pass ends before the backlog has its turn.
      write: (unit) => (turns++ === 0 ? database.write(unit) : Promise.reject(new Error('ends'))),
    };
    const firstRound = new Dispatcher(contextOf({ database: oneRound, clock }));
    await Promise.all(Array.from({ length: 26 }, () => happen()));
    await untilReadable(database);
    let reads = 0;
    const interrupted: Database = {
      ...database,
      read: {
        ...database.read,
        // The cursor and the backlogs are one read each; the backlog begins between them.
        async first(statement, params) {
          if (++reads === 3) await expect(firstRound.dispatch()).rejects.toThrow('ends');
          return database.read.first(statement, params);
        },
      },
    };

    const readTo = await new Dispatcher(contextOf({ database: interrupted, clock })).readTo();

    expect(await deliveries()).toHaveLength(500);
    const backlog = await furthestBehind(database.read, 'webhooks');
    const isBehind = (a: typeof readTo, b: typeof readTo) =>
      BigInt(a?.txid ?? 0) < BigInt(b?.txid ?? 0) ||
      (a?.txid === b?.txid && Number(a?.seq) <= Number(b?.seq));
    expect(backlog).toBeDefined();
    expect(isBehind(readTo, backlog ?? null)).toBe(true);
  });

  test('five dispatchers at once lose no event and double none', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, dispatcher, database, deliveries, quiet, sent } = world;
    const ids = [await webhook(), await webhook()];
    const others = await Promise.all([1, 2, 3, 4].map(() => world.process()));
    const dispatchers = [dispatcher, ...others.map((one) => one.dispatcher)];
    let happening = true;

    const dispatching = dispatchers.map(async (one) => {
      while (happening) {
        await one.dispatch();
        await new Promise(setImmediate);
      }
      await one.dispatch();
    });
    await Promise.all(Array.from({ length: 300 }, () => happen()));
    await untilReadable(database);
    happening = false;
    await Promise.all(dispatching);
    await dispatcher.dispatch();
    await quiet();

    const events = await database.read.kysely.selectFrom('events').select('id').execute();
    for (const id of ids) {
      const delivered = (await deliveries(id)).map(({ event_id }) => event_id);
      expect(delivered.toSorted()).toEqual(events.map((event) => event.id).toSorted());
    }
    expect(sent).toHaveLength(600);
    const { counted, there } = await countsOf(database);
    expect(counted).toEqual(there);
  });
});
