/** The sweep of deliveries: a fault of one delivery does not delay the others. */
import { describe, expect, test } from 'vitest';
import { DeliveryRecovery } from '../../src/platform/webhooks/recover.ts';
import { DeliverySettler } from '../../src/platform/webhooks/settle.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  down,
  ok,
  retryDelaysMs,
  type WebhooksWorld,
  webhooksWorld,
} from '../support/webhooks-world.ts';

/** Two attempts under way whose process is gone, and the recovery of a process that settles by `settle`. */
async function lostAttempts(world: WebhooksWorld, settle: DeliverySettler['settle']) {
  const { clock, database } = world;
  await world.webhook();
  await world.webhook();
  const dead = await world.process();
  dead.stopsAnswering();
  await world.happen();
  await untilReadable(database);
  await dead.dispatcher.dispatch();
  await waitFor(() => world.sent.length === 2, { describe: 'both are sent' });
  const context = contextOf({ database, clock });
  const settler = Object.assign(new DeliverySettler(context, () => {}), { settle });
  const { deliverer } = world;
  return new DeliveryRecovery(context, { settler, deliverer }, { leaseMs: 30_000 });
}

describe.each(await engines())('on $name', (engine) => {
  test('a retry waits no longer than its delay though the clock is set back by a day', async () => {
    const world = await webhooksWorld(engine);
    const id = await world.webhook();
    await world.pass(0);
    world.answer(down);
    await world.happen();
    await world.deliver();
    world.answer(ok);
    const delayMs = retryDelaysMs[0] ?? 0;

    world.clock.jumpTo(world.clock.now() - 24 * 60 * 60 * 1000);
    await world.recovery.sweep();
    await world.pass(delayMs - 1);
    const early = await world.deliveries(id);
    await world.pass(1);

    expect(early).toMatchObject([{ status: 'pending', attempts: 1 }]);
    expect(await world.deliveries(id)).toMatchObject([{ status: 'delivered', attempts: 2 }]);
  });

  test('an attempt of a dead process is repeated, even if the clock is set back by a day', async () => {
    const world = await webhooksWorld(engine);
    await lostAttempts(world, async () => null);
    await world.recovery.sweep();

    world.clock.jumpTo(world.clock.now() - 24 * 60 * 60 * 1000);
    await world.recovery.sweep();
    await world.pass(30_001);

    const statuses = (await world.deliveries()).map(({ status }) => status);
    expect(statuses).toEqual(['delivered', 'delivered']);
  });

  test('a lost attempt that cannot be ended stops neither the others nor the start', async () => {
    const world = await webhooksWorld(engine);
    const ended: string[] = [];
    const recovery = await lostAttempts(world, async ({ delivery }) => {
      if (delivery.id === first) throw new Error('no');
      ended.push(delivery.id);
      return 'pending';
    });
    const [first, second] = (await world.deliveries()).map(({ id }) => id);

    await recovery.endOrphans();

    expect(ended).toEqual([second]);
  });
});
