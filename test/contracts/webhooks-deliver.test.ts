/** The attempts of a delivery (specification: Delivery and retries; docs/decisions/webhooks.md). */
import { describe, expect, test } from 'vitest';
import { engines } from '../support/databases.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  countsOf,
  down,
  gone,
  ok,
  retryDelaysMs,
  silent,
  type WebhooksWorld,
  webhooksWorld,
} from '../support/webhooks-world.ts';
import { anyWriter } from '../support/writers.ts';

/** Waits until a receiver has been asked. */
const firstSent = ({ sent }: WebhooksWorld) =>
  waitFor(() => sent.length === 1, { describe: 'something is sent' });

const page = { limit: 50, offset: 0 };

describe.each(await engines())('on $name', (engine) => {
  test('an attempt that fails is repeated after 30 s, 2 min, 10 min, 1 h and 6 h, unchanged', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, deliver, answer, pass, sent, deliveries, clock, shown } = world;
    const id = await webhook();
    answer(down);
    await happen();
    await deliver();

    const times = [clock.now()];
    for (const delay of retryDelaysMs) {
      await pass(delay - 1);
      expect(sent).toHaveLength(times.length);
      await pass(1);
      times.push(clock.now());
    }
    await pass(30 * 24 * 3_600_000);

    expect(sent.map(({ at }) => at)).toEqual(times);
    expect(new Set(sent.map(({ deliveryId }) => deliveryId)).size).toBe(1);
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
    expect(sent.map(({ isFresh }) => isFresh)).toEqual([false, true, true, true, true, true]);
    const [delivery] = await deliveries();
    expect(delivery).toMatchObject({ status: 'failed', attempts: 6, due_at: null });
    expect(await shown(id)).toMatchObject({
      active: true,
      failing: true,
      consecutive_failures: 1,
      last_delivery_at: new Date(times.at(-1) as number).toISOString(),
    });
  });

  test('the log shows every attempt, and when the next one is due', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, deliver, answer, pass, log, clock } = world;
    const id = await webhook();
    answer(() => {
      clock.advance(250);
      return down;
    });
    const begun = clock.now();
    await happen();
    await deliver();
    answer(silent);
    await pass(30_000);

    const { data: deliveries, total } = await log.list('default', id, [], page);

    expect(total).toBe(1);
    expect(deliveries[0]).toMatchObject({
      status: 'pending',
      attempts: [
        {
          attempt: 1,
          started_at: new Date(begun).toISOString(),
          duration_ms: 250,
          status: 503,
          error: 'The receiver answered 503',
          response: 'says 503',
        },
        {
          attempt: 2,
          started_at: new Date(begun + 30_250).toISOString(),
          duration_ms: 0,
          status: null,
          error: 'It did not answer',
          response: null,
        },
      ],
      next_attempt_at: new Date(begun + 30_250 + 120_000).toISOString(),
      finished_at: null,
    });
  });

  test.each([200, 201, 204, 299])('%i counts as delivered', async (status) => {
    const { webhook, happen, deliver, answer, deliveries } = await webhooksWorld(engine);
    await webhook();
    answer({ status, error: 'The answer was cut off', response: null });

    await happen();
    await deliver();

    expect(await deliveries()).toMatchObject([{ status: 'delivered' }]);
  });

  test.each([199, 301, 302, 307, 308, 400, 401, 404, 429, 500])(
    '%i counts as failed',
    async (status) => {
      const { webhook, happen, deliver, answer, log } = await webhooksWorld(engine);
      const id = await webhook();
      answer({ status, error: null, response: '' });

      await happen();
      await deliver();

      const { data: deliveries } = await log.list('default', id, [], page);
      expect(deliveries[0]).toMatchObject({ status: 'pending' });
      expect(deliveries[0]?.attempts[0]?.error).toContain(`answered ${status}`);
    },
  );

  test('410 ends the retries of that delivery, and counts as a failed one', async () => {
    const { webhook, happen, deliver, answer, pass, sent, deliveries, shown } =
      await webhooksWorld(engine);
    const id = await webhook();
    answer(gone);

    await happen();
    await deliver();
    await pass(86_400_000);

    expect(sent).toHaveLength(1);
    expect(await deliveries()).toMatchObject([{ status: 'failed', attempts: 1 }]);
    expect(await shown(id)).toMatchObject({ failing: true, consecutive_failures: 1 });
  });

  test('a new url and a new secret count from the next attempt on', async () => {
    const { webhook, webhooks, happen, deliver, answer, pass, sent } = await webhooksWorld(engine);
    const id = await webhook({ secret: 'the first secret' });
    answer(down);
    await happen();
    await deliver();

    const url = 'https://elsewhere.example:8443/hook';
    await webhooks.update(anyWriter(), id, { url, secret: 'the second secret' });
    await pass(30_000);

    expect(sent.map((request) => request.url)).toEqual(['https://receiver.example/hook', url]);
    const [first, second] = sent.map(({ headers }) => headers['x-service-signature']);
    expect(second).not.toBe(first);
  });

  describe('failed deliveries in a row', () => {
    /** Fails so many deliveries at once; a 410 spares the retries. */
    async function fail({ answer, happen, deliver }: WebhooksWorld, n: number) {
      answer(gone);
      for (let i = 0; i < n; i++) await happen();
      await deliver();
    }

    test('nine, one that arrives, and nine leave the webhook active', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, answer, happen, deliver, shown } = world;
      const id = await webhook();

      await fail(world, 9);
      expect(await shown(id)).toMatchObject({ failing: true, consecutive_failures: 9 });
      answer(ok);
      await happen();
      await deliver();
      expect(await shown(id)).toMatchObject({ failing: false, consecutive_failures: 0 });
      await fail(world, 9);

      expect(await shown(id)).toMatchObject({ active: true, consecutive_failures: 9 });
    });

    test('ten deactivate it and cancel its pending deliveries', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, answer, happen, deliver, pass, shown, deliveries, sent, database } = world;
      const { clock } = world;
      const id = await webhook();
      const madeAt = clock.now();
      answer(down);
      await happen();
      await deliver();
      clock.advance(1_000);
      expect(await shown(id)).toMatchObject({ updated_at: new Date(madeAt).toISOString() });
      answer(gone);
      for (let i = 0; i < 10; i++) await happen();
      await deliver();

      expect(await shown(id)).toMatchObject({
        active: false,
        failing: true,
        consecutive_failures: 10,
        updated_at: new Date(clock.now()).toISOString(),
      });
      const statuses = (await deliveries(id)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 'failed')).toHaveLength(10);
      expect(statuses.filter((status) => status === 'cancelled')).toHaveLength(1);
      const before = sent.length;
      await happen();
      await deliver();
      await pass(86_400_000);
      expect(sent).toHaveLength(before);
      const { counted, there } = await countsOf(database);
      expect(counted).toEqual(there);
    });

    test('the tenth leaves those under way to their own end, be it 200 or 503', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, answer, happen, dispatcher, shown, deliveries, sent, log, database } = world;
      const id = await webhook();
      await fail(world, 9);
      const held = Promise.withResolvers<void>();
      answer(async ({ deliveryId }) => {
        if (deliveryId === sent[9]?.deliveryId) return held.promise.then(() => ok);
        if (deliveryId === sent[10]?.deliveryId) return held.promise.then(() => down);
        if (deliveryId === sent[11]?.deliveryId) return held.promise.then(() => gone);
        return gone;
      });
      for (let i = 0; i < 4; i++) await happen();
      await untilReadable(world.database);
      await dispatcher.dispatch();
      await waitFor(async () => !(await shown(id)).active, { describe: 'it is deactivated' });
      held.resolve();
      await world.deliverer.stop();

      expect(await shown(id)).toMatchObject({ active: false });
      const statusOf = new Map((await deliveries(id)).map((one) => [one.id, one.status]));
      const late = sent.slice(9, 12).map(({ deliveryId }) => statusOf.get(deliveryId));
      expect(late).toEqual(['delivered', 'cancelled', 'failed']);
      const shownDeliveries = (await log.list('default', id, [], page)).data;
      expect(shownDeliveries.map(({ attempts }) => attempts.length)).toEqual(Array(13).fill(1));
      const { counted, there } = await countsOf(database);
      expect(counted).toEqual(there);
    });

    test('failures after the tenth do not raise the count', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, answer, happen, dispatcher, shown, sent } = world;
      const id = await webhook();
      await fail(world, 9);
      const held = Promise.withResolvers<void>();
      answer(async ({ deliveryId }) => {
        if (deliveryId === sent[9]?.deliveryId) await held.promise;
        return gone;
      });
      await happen();
      await happen();
      await untilReadable(world.database);
      await dispatcher.dispatch();
      await waitFor(async () => !(await shown(id)).active, { describe: 'it is deactivated' });
      held.resolve();
      await world.deliverer.stop();

      expect(await shown(id)).toMatchObject({ active: false, consecutive_failures: 10 });
    });

    test('reactivation restarts the count; failing stays until something arrives', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, webhooks, answer, happen, deliver, shown } = world;
      const id = await webhook();
      await fail(world, 10);

      expect(await webhooks.update(anyWriter(), id, { active: true })).toMatchObject({
        active: true,
        failing: true,
        consecutive_failures: 0,
      });
      await fail(world, 9);
      expect(await shown(id)).toMatchObject({ active: true, consecutive_failures: 9 });
      answer(ok);
      await happen();
      await deliver();

      expect(await shown(id)).toMatchObject({
        active: true,
        failing: false,
        consecutive_failures: 0,
      });
    });

    test('tests never count, with any outcome', async () => {
      const { webhook, answer, log, quiet, shown } = await webhooksWorld(engine);
      const id = await webhook();
      answer(gone);

      for (let i = 0; i < 12; i++) await log.sendSample('default', id);
      await quiet();

      expect(await shown(id)).toMatchObject({
        active: true,
        failing: false,
        consecutive_failures: 0,
      });
    });
  });

  describe('a process that dies with an attempt under way', () => {
    /** An event happens, and a process dies while it tells of it. */
    async function dieSending(world: WebhooksWorld): Promise<void> {
      const dead = await world.process();
      dead.stopsAnswering();
      await world.happen();
      await untilReadable(world.database);
      await dead.dispatcher.dispatch();
      await firstSent(world);
    }

    test('uses up no retry: when the lease ends the delivery is sent again at once', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, clock, sent, pass, recovery, log } = world;
      const id = await webhook();
      await dieSending(world);
      const begun = clock.now();

      clock.advance(30_000);
      await recovery.sweep();
      expect(sent).toHaveLength(1);
      await pass(1);

      const { data: deliveries } = await log.list('default', id, [], page);
      expect(sent).toHaveLength(2);
      expect(sent[1]).toMatchObject({ body: sent[0]?.body, deliveryId: sent[0]?.deliveryId });
      expect(deliveries[0]).toMatchObject({
        status: 'delivered',
        attempts: [
          {
            attempt: 1,
            started_at: new Date(begun).toISOString(),
            status: null,
            error: 'The process that sent it has gone',
          },
          { attempt: 2, status: 200, error: null },
        ],
      });
    });

    test('and that resumes later settles nothing, because another attempt holds the lease', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, happen, answer, clock, sent, deliveries, pass, database } = world;
      await webhook();
      const held = Promise.withResolvers<void>();
      answer(async () => {
        if (sent.length > 1) return ok;
        await held.promise;
        return gone;
      });
      await happen();
      await untilReadable(database);
      await world.dispatcher.dispatch();
      await firstSent(world);
      const other = await world.process();
      clock.advance(30_001);
      await other.recovery.sweep();
      await other.recovery.sweep();
      await pass(0);
      held.resolve();
      await world.deliverer.stop();

      expect(sent).toHaveLength(2);
      expect(await deliveries()).toMatchObject([{ status: 'delivered', attempts: 2 }]);
      const { counted, there } = await countsOf(database);
      expect(counted).toEqual(there);
    });

    /** Lets a delivery's process die again and again, each time with an attempt under way. */
    async function loseAttempts(world: WebhooksWorld, n: number): Promise<void> {
      for (let i = 0; i < n; i++) {
        const before = world.sent.length;
        const doomed = await world.process();
        doomed.stopsAnswering();
        await doomed.recovery.sweep();
        await waitFor(() => world.sent.length > before, { describe: 'it is sent' });
        await world.recovery.endOrphans();
      }
    }

    /** Has a delivery without an attempt yet. */
    async function undelivered(world: WebhooksWorld): Promise<void> {
      await world.deliverer.stop();
      await world.happen();
      await untilReadable(world.database);
      await world.dispatcher.dispatch();
    }

    test('uses up no retry and delays none, after any number of kills', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, answer, clock, deliveries, shown, sent } = world;
      const id = await webhook();
      await undelivered(world);
      await loseAttempts(world, 8);
      answer(down);
      const last = await world.process();
      await last.recovery.sweep();
      await world.quiet();

      const times = [clock.now()];
      for (const delay of retryDelaysMs) {
        expect(await deliveries()).toMatchObject([{ status: 'pending' }]);
        clock.advance(delay);
        times.push(clock.now());
        await last.recovery.sweep();
        await world.quiet();
      }

      expect(sent.slice(8).map(({ at }) => at)).toEqual(times);
      expect(await deliveries()).toMatchObject([{ status: 'failed', attempts: 14, lost: 8 }]);
      expect(await shown(id)).toMatchObject({ active: true, consecutive_failures: 1 });
    });

    test('uses up a retry from the 21st loss on, because its response may cause the deaths', async () => {
      const world = await webhooksWorld(engine);
      const { webhook, clock, deliveries } = world;
      await webhook();
      await undelivered(world);

      await loseAttempts(world, 20);
      expect(await deliveries()).toMatchObject([
        { status: 'pending', lost: 20, due_at: clock.now() },
      ]);
      await loseAttempts(world, 1);

      expect(await deliveries()).toMatchObject([
        { status: 'pending', attempts: 21, lost: 20, due_at: clock.now() + 30_000 },
      ]);
    });

    test('leaves orphans, which the only process takes up at its start, leases or not', async () => {
      const world = await webhooksWorld(engine);
      await world.webhook();
      await dieSending(world);

      await world.recovery.endOrphans();
      await world.quiet();

      expect(await world.deliveries()).toMatchObject([{ status: 'delivered', attempts: 2 }]);
      expect(world.sent).toHaveLength(2);
    });
  });

  test('a receiver that takes over 2 s to respond gets 2 attempts at a time, with any status', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, deliver, answer, clock, sent, dispatcher, deliveries } = world;
    await webhook();
    answer(() => {
      clock.advance(2_001);
      return ok;
    });
    for (let i = 0; i < 3; i++) {
      await happen();
      await deliver();
    }
    const held = Promise.withResolvers<typeof ok>();
    answer(() => held.promise);

    for (let i = 0; i < 10; i++) await happen();
    await untilReadable(world.database);
    await dispatcher.dispatch();
    await waitFor(() => sent.length === 5, { describe: 'two more are sent' });
    expect((await deliveries()).filter(({ status }) => status === 'delivering')).toHaveLength(2);

    held.resolve(ok);
    await world.quiet();
    expect(sent).toHaveLength(13);
  });

  test('an attempt that the stop breaks off is repeated at once by the next process', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, answer, deliveries, dispatcher, deliverer } = world;
    await webhook();
    answer(
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(silent))),
    );
    await happen();
    await untilReadable(world.database);
    await dispatcher.dispatch();
    await firstSent(world);

    const stopped = deliverer.stop();
    deliverer.abort();
    await stopped;

    expect(await deliveries()).toMatchObject([
      { status: 'pending', attempts: 1, due_at: world.clock.now() },
    ]);
    answer(ok);
    const next = await world.process();
    await next.recovery.sweep();
    await world.quiet();
    expect(await deliveries()).toMatchObject([{ status: 'delivered', attempts: 2 }]);
  });

  test('two processes never send one attempt twice', async () => {
    const world = await webhooksWorld(engine);
    const { webhook, happen, sent, deliveries, dispatcher, recovery, quiet } = world;
    await webhook();
    const other = await world.process();
    for (let i = 0; i < 100; i++) await happen();
    await untilReadable(world.database);

    await Promise.all([
      dispatcher.dispatch(),
      other.dispatcher.dispatch(),
      recovery.sweep(),
      other.recovery.sweep(),
    ]);
    await Promise.all([recovery.sweep(), other.recovery.sweep(), recovery.sweep()]);
    await world.deliver();
    await quiet();

    expect(await deliveries()).toHaveLength(100);
    expect(sent).toHaveLength(100);
  });
});
