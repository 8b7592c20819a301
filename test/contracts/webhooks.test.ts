/** Webhooks: change, deactivation, deletion, redelivery, retention. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { events, eventTypes } from '../../src/core/events/events.ts';
import { newId } from '../../src/kernel/ids.ts';
import {
  claimDeliveries,
  deliveryCounts,
  insertDeliveries,
} from '../../src/platform/webhooks/deliveries.store.ts';
import { newDelivery } from '../../src/platform/webhooks/new-deliveries.ts';
import { deleteExpiredDeliveries } from '../../src/platform/webhooks/retention.ts';
import { engines } from '../support/databases.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  countsOf,
  down,
  ok,
  type WebhooksWorld,
  webhooksWorld,
} from '../support/webhooks-world.ts';
import { anyWriter } from '../support/writers.ts';

const page = { limit: 50, offset: 0 };
const dayMs = 86_400_000;

async function expectCounted({ database }: WebhooksWorld): Promise<void> {
  const { counted, there } = await countsOf(database);
  expect(counted).toEqual(there);
}

/** Of no webhook. */
async function expectNothingLeft({ database }: WebhooksWorld): Promise<void> {
  const tables = [
    'webhooks',
    'webhook_deliveries',
    'webhook_attempts',
    'webhook_delivery_counts',
  ] as const;
  for (const table of tables) {
    const rows = await database.read.kysely.selectFrom(table).selectAll().execute();
    expect(rows, table).toEqual([]);
  }
}

/** Waits until a connection waits for a row that a transaction holds; SQLite writes one after the other. */
async function untilBlocked({ database }: WebhooksWorld): Promise<void> {
  if (database.read.dialect === 'sqlite') return;
  await waitFor(
    async () => {
      const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(
        database.read.kysely,
      );
      return rows[0]?.n === 1;
    },
    { describe: 'a transaction waits for another' },
  );
}

describe.each(await engines())('on $name', (engine) => {
  test('an unknown agent is 404 not_found', async () => {
    const { webhook } = await webhooksWorld(engine);

    await expect(webhook({ agent_id: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a generated secret is whsec_ and 32 random bytes in base64', async () => {
    const { webhooks } = await webhooksWorld(engine);
    const fields = { agent_id: 'default', url: 'https://a.example/', events: ['agent.error'] };
    const create = async () => (await webhooks.create(anyWriter(), fields as never)).secret;

    const [one, other] = [await create(), await create()];

    expect(one).toMatch(/^whsec_/);
    expect(Buffer.from(one.slice('whsec_'.length), 'base64')).toHaveLength(32);
    expect(other).not.toBe(one);
  });

  test.each(['whsec_', 'whsec_!!!!!!!!!!', 'whsec_not base64 at all'])(
    'a secret with whsec_ and invalid base64 is refused: %s',
    async (secret) => {
      const { webhook, webhooks } = await webhooksWorld(engine);
      const refusal = {
        code: 'validation_error',
        extras: { details: [expect.objectContaining({ field: 'secret' })] },
      };

      await expect(webhook({ secret })).rejects.toMatchObject(refusal);
      const id = await webhook();
      await expect(webhooks.update(anyWriter(), id, { secret })).rejects.toMatchObject(refusal);
    },
  );

  test("another organization's webhook is not there", async () => {
    const { webhook, webhooks, log } = await webhooksWorld(engine);
    const id = await webhook();
    const missing = { code: 'not_found', message: 'Webhook not found' };

    await expect(webhooks.get('other', id)).rejects.toMatchObject(missing);
    await expect(webhooks.update(anyWriter('other'), id, {})).rejects.toMatchObject(missing);
    await expect(webhooks.remove('other', id)).rejects.toMatchObject(missing);
    await expect(log.list('other', id, [], page)).rejects.toMatchObject(missing);
    await expect(log.sendSample('other', id)).rejects.toMatchObject(missing);
    expect(await webhooks.list('other')).toEqual([]);
  });

  test('deactivating cancels pending deliveries', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, happen, answer, deliver, deliveries, pass, sent } = world;
    const id = await webhook();
    answer(down);
    for (let i = 0; i < 5; i++) await happen();
    await deliver();

    await webhooks.update(anyWriter(), id, { active: false });
    await pass(dayMs);

    expect(sent).toHaveLength(5);
    expect(await deliveries()).toMatchObject(
      Array.from({ length: 5 }, () => ({ status: 'cancelled', attempts: 1, due_at: null })),
    );
    await expectCounted(world);
  });

  test.each([
    ['that arrives then counts', ok, 'delivered'],
    ['that fails then is not repeated', down, 'cancelled'],
  ] as const)('an attempt under way when it is deactivated, %s', async (_what, last, status) => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, happen, answer, dispatcher, deliveries, deliverer } = world;
    const id = await webhook();
    const asked = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    answer(async () => {
      asked.resolve();
      await held.promise;
      return last;
    });
    await happen();
    await untilReadable(world.database);
    await dispatcher.dispatch();
    await asked.promise;

    await webhooks.update(anyWriter(), id, { active: false });
    held.resolve();
    await deliverer.stop();

    expect(await deliveries()).toMatchObject([{ status, attempts: 1 }]);
    await expectCounted(world);
  });

  test('deactivating does not affect deliveries claimed at the same time', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, happen, dispatcher, deliveries, database, clock } = world;
    const id = await webhook();
    await happen();
    await untilReadable(database);
    // Dispatched, but claimed by this test before the queue comes round to it.
    await world.deliverer.stop();
    await dispatcher.dispatch();
    const [pending] = await deliveries(id);
    const isClaimed = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const claim = database.write(async (tx) => {
      const now = clock.now();
      const claimed = await claimDeliveries(tx, {
        ids: [pending?.id ?? ''],
        now,
        due_by: now,
        lease_until: now + 30_000,
      });
      isClaimed.resolve();
      await mayCommit.promise;
      const kind = { webhook_id: id };
      const change = { kind, from: 'pending', to: 'delivering' } as const;
      await deliveryCounts.change(tx, 'another', [change]);
      return claimed.length;
    });
    await isClaimed.promise;
    const off = webhooks.update(anyWriter(), id, { active: false });
    await untilBlocked(world);
    mayCommit.resolve();

    expect(await claim).toBe(1);
    expect(await off).toMatchObject({ active: false });
    expect(await deliveries(id)).toMatchObject([{ status: 'delivering', attempts: 1 }]);
    await expectCounted(world);
  });

  test('deleting it deletes its deliveries; an attempt under way settles nothing', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, happen, answer, dispatcher, deliver, deliverer, database } = world;
    const id = await webhook();
    answer(down);
    await happen();
    await deliver();
    const asked = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    answer(async () => {
      asked.resolve();
      await held.promise;
      return ok;
    });
    await happen();
    await untilReadable(database);
    await dispatcher.dispatch();
    await asked.promise;

    await webhooks.remove('default', id);
    held.resolve();
    await deliverer.stop();

    await expectNothingLeft(world);
  });

  test('deliveries are found by the job or conversation of their event', async () => {
    const world = await webhooksWorld(engine);
    const id = await world.webhook({ agent_id: '*', events: eventTypes });
    const other = await world.webhook({ events: ['skill.failed'] });
    for (const type of eventTypes) await world.happen(type);
    await world.deliver();
    const { job_id, conversation_id } = events['skill.completed'].sample;
    const inOrder = async (jobId: string, conversationId: string, organizationId = 'default') => {
      const job = { id: jobId, conversation_id: conversationId };
      const found = await world.log.listOfJob(organizationId, job, [], page);
      expect(found.total).toBe(found.data.length);
      expect(found.data.map((one) => one.id)).toEqual(
        found.data.map((one) => one.id).toSorted((a, b) => (a < b ? 1 : -1)),
      );
      return found.data.map((one) => `${one.event} to ${one.webhook_id}`).toSorted();
    };

    const ofJob = eventTypes.filter((type) => {
      const { sample } = events[type];
      return 'job_id' in sample && sample.job_id === job_id;
    });
    const expected = [...ofJob.map((type) => `${type} to ${id}`), `skill.failed to ${other}`];
    expect(ofJob).toContain('scheduled_job.failed');
    expect(await inOrder(job_id, newId())).toEqual(expected.toSorted());
    expect(await inOrder(newId(), events['conversation.created'].sample.conversation_id)).toEqual([
      `conversation.created to ${id}`,
    ]);
    expect(await inOrder(newId(), newId())).toEqual([]);
    expect(await inOrder(job_id, conversation_id, 'acme')).toEqual([]);
    const rows = await world.deliveries(id);
    expect(rows.filter(({ subject }) => subject === null).map(({ event }) => event)).toEqual([
      ...['agent.status_changed', 'agent.created', 'agent.deleted', 'batch.completed'],
    ]);
  });

  describe('with more deliveries than one transaction ends', () => {
    /** A webhook, and so many deliveries that wait for their next attempt. */
    async function withBacklog({ webhook, database, clock }: WebhooksWorld): Promise<string> {
      const id = await webhook();
      const rows = Array.from({ length: 12_000 }, (_, i) =>
        newDelivery(
          { webhook_id: id, event_id: `event ${i}`, event: 'skill.completed', body: '{}' },
          clock.now() + 1_000,
        ),
      );
      const kind = { webhook_id: id };
      await database.write(async (tx) => {
        await insertDeliveries(tx, rows);
        await deliveryCounts.change(
          tx,
          'first',
          rows.map(() => ({ kind, from: null, to: 'pending' })),
        );
      });
      return id;
    }
    const left = async ({ deliveries }: WebhooksWorld) =>
      (await deliveries()).filter(({ status }) => status === 'pending').length;

    test('deactivating it sends none of them; the sweep cancels the rest', async () => {
      const world = await webhooksWorld(engine);
      const { webhooks, clock, recovery, sent } = world;
      const id = await withBacklog(world);

      await webhooks.update(anyWriter(), id, { active: false });
      clock.advance(2_000);
      expect(await left(world)).toBe(7_000);
      await recovery.sweep();
      await recovery.sweep();

      expect(await left(world)).toBe(0);
      expect(sent).toEqual([]);
      await expectCounted(world);
    });

    test('switching it off and on again sends none of them either', async () => {
      const world = await webhooksWorld(engine);
      const { webhooks, clock, recovery, sent } = world;
      const id = await withBacklog(world);

      await webhooks.update(anyWriter(), id, { active: false });
      await webhooks.update(anyWriter(), id, { active: true });
      clock.advance(2_000);
      await recovery.sweep();

      expect(await left(world)).toBe(0);
      expect(sent).toEqual([]);
      await expectCounted(world);
    });

    test('deleting it removes it at once, and the sweep deletes its rows', async () => {
      const world = await webhooksWorld(engine);
      const { webhooks, clock, recovery, sent, log } = world;
      const id = await withBacklog(world);

      await webhooks.remove('default', id);
      clock.advance(2_000);
      expect(await webhooks.list('default')).toEqual([]);
      for (const gone of [webhooks.get('default', id), webhooks.remove('default', id)]) {
        await expect(gone).rejects.toMatchObject({ code: 'not_found' });
      }
      await expect(log.list('default', id, [], page)).rejects.toMatchObject({ code: 'not_found' });
      expect(await left(world)).toBe(7_000);
      await recovery.sweep();
      await recovery.sweep();

      expect(sent).toEqual([]);
      await expectNothingLeft(world);
    });
  });

  test('it goes with its agent, and with no other', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, agents } = world;
    await agents.create(anyWriter(), { id: 'going' });
    const kept = await webhook();
    await webhook({ agent_id: 'going' });
    await webhook({ agent_id: 'going' });

    await agents.remove(anyWriter(), 'going');

    expect(await webhooks.list('default')).toMatchObject([{ id: kept }]);
  });

  test('its deliveries are no part of the transaction that deletes its agent', async () => {
    const world = await webhooksWorld(engine);
    const { agents, webhook, webhooks, happen, deliver, answer, deliveries, recovery } = world;
    answer(down);
    for (let i = 0; i < 3; i++) await webhook();
    await happen();
    await deliver();

    await agents.remove(anyWriter(), 'default');
    expect(await webhooks.list('default')).toEqual([]);
    expect(await deliveries()).toHaveLength(3);
    await recovery.sweep();

    await expectNothingLeft(world);
  });

  test('deleting it while another process takes over its counts leaves none of them', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, webhooks, happen, deliver, database } = world;
    const id = await webhook();
    for (let i = 0; i < 3; i++) await happen();
    await deliver();
    const isFolded = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const fold = database.write(async (tx) => {
      await deliveryCounts.fold(tx, 'another');
      isFolded.resolve();
      await mayCommit.promise;
    });
    await isFolded.promise;
    const removal = webhooks.remove('default', id);
    await untilBlocked(world);
    mayCommit.resolve();
    await Promise.all([fold, removal]);

    await expectCounted(world);
    await deleteExpiredDeliveries({ ...world, writer: 'first' }, 1);
    await expectNothingLeft(world);
  });

  test('two that become active at the same time both get the events after that', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, deliver, deliveries } = world;

    const ids = await Promise.all([webhook(), webhook(), webhook()]);
    await happen();
    await deliver();

    for (const id of ids) expect(await deliveries(id)).toHaveLength(1);
  });

  describe('a redelivery', () => {
    test('is a new delivery of the same body, with retries of its own', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, happen, deliver, answer, pass, quiet, sent, log } = world;
      const id = await webhook();
      await happen();
      await deliver();
      const [first] = (await log.list('default', id, [], page)).data;
      answer(down);

      const again = await log.redeliver('default', id, first?.id ?? '');
      await quiet();
      answer(ok);
      await pass(30_000);

      expect(again).toMatchObject({
        event_id: first?.event_id,
        event: 'skill.completed',
        status: 'pending',
        attempts: [],
        redelivery_of: first?.id,
        test: false,
      });
      expect(again.id).not.toBe(first?.id);
      expect(sent.map(({ body }) => body)).toEqual([0, 1, 2].map(() => sent[0]?.body));
      expect(sent.map(({ deliveryId }) => deliveryId)).toEqual([first?.id, again.id, again.id]);
      expect(sent.map(({ isFresh }) => isFresh)).toEqual([false, true, true]);
      const { data: deliveries, total } = await log.list('default', id, [], page);
      expect(total).toBe(2);
      expect(deliveries).toMatchObject([
        { id: again.id, status: 'delivered', attempts: [{ status: 503 }, { status: 200 }] },
        { id: first?.id, status: 'delivered', attempts: [{ status: 200 }] },
      ]);
      await expectCounted(world);
    });

    test('needs a delivery of that webhook', async () => {
      const { webhook, happen, deliver, log } = await webhooksWorld(engine);
      const [id, other] = [await webhook(), await webhook()];
      await happen();
      await deliver();
      const [first] = (await log.list('default', id, [], page)).data;

      await expect(log.redeliver('default', other, first?.id ?? '')).rejects.toMatchObject({
        code: 'not_found',
      });
    });
  });

  test('a test is a sample of the first subscribed event, marked as a test', async () => {
    const { webhook, log, quiet, sent } = await webhooksWorld(engine);
    const id = await webhook({ events: ['agent.status_changed', 'skill.failed'] });

    const delivery = await log.sendSample('default', id);
    await quiet();

    expect(delivery).toMatchObject({ event: 'agent.status_changed', test: true, attempts: [] });
    expect(JSON.parse(sent[0]?.body ?? '')).toMatchObject({
      id: delivery.event_id,
      event: 'agent.status_changed',
      agent_id: 'default',
      data: { previous_status: 'active', status: 'paused', test: true },
    });
    expect(sent[0]?.isFresh).toBe(true);
  });

  test('redeliver and test of an inactive webhook are 409 conflict', async () => {
    const { webhook, webhooks, happen, deliver, log } = await webhooksWorld(engine);
    const id = await webhook();
    await happen();
    await deliver();
    const [first] = (await log.list('default', id, [], page)).data;
    await webhooks.update(anyWriter(), id, { active: false });

    await expect(log.sendSample('default', id)).rejects.toMatchObject({ code: 'conflict' });
    await expect(log.redeliver('default', id, first?.id ?? '')).rejects.toMatchObject({
      code: 'conflict',
    });
    expect((await log.list('default', id, [], page)).total).toBe(1);
  });

  test('retention deletes ended deliveries with their attempts, and no pending one', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, deliver, answer, clock, deliveries, database } = world;
    await webhook();
    for (let i = 0; i < 600; i++) await happen();
    await deliver();
    answer(down);
    await happen();
    await deliver();
    // Ids tell the real time.
    clock.jumpTo(Date.now() + 10 * dayMs - 60_000);
    const expire = () => deleteExpiredDeliveries({ database, clock, writer: 'first' }, 10);
    expect(await expire()).toBe(0);
    clock.jumpTo(Date.now() + 10 * dayMs + 60_000);

    expect(await expire()).toBe(600);

    expect(await deliveries()).toMatchObject([{ status: 'pending' }]);
    const attempts = await database.read.kysely
      .selectFrom('webhook_attempts')
      .selectAll()
      .execute();
    expect(attempts).toHaveLength(1);
    await expectCounted(world);
  });

  test('each settlement is counted once in the metrics', async () => {
    const { webhook, happen, deliver, answer, observed, pass, clock } = await webhooksWorld(engine);
    await webhook();
    answer(() => {
      clock.advance(40);
      return down;
    });
    await happen();
    await deliver();
    answer(ok);
    await pass(30_000);

    expect(observed).toEqual([
      { status: 'pending', isAccepted: false, tookMs: 40 },
      { status: 'delivered', isAccepted: true, tookMs: 0 },
    ]);
  });
});
