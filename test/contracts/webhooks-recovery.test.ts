/** The sweep of deliveries: what goes wrong with one of them holds up none of the others. */
import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { createMemoryQueue } from '../../src/queue/memory.ts';
import { createDeliveryRecovery } from '../../src/webhooks/recover.ts';
import type { Settle } from '../../src/webhooks/settle.ts';
import { engines } from '../support/databases.ts';
import { untilReadable } from '../support/outbox.ts';
import { waitFor } from '../support/wait-for.ts';
import { type WebhooksWorld, webhooksWorld } from '../support/webhooks-world.ts';

/** Two attempts under way whose process is gone, and the recovery of one that settles by `settle`. */
async function lostAttempts(world: WebhooksWorld, settle: Settle) {
  const { clock, database } = world;
  const log = createLogger('silent');
  await world.webhook();
  await world.webhook();
  const dead = await world.process();
  dead.stopsAnswering();
  await world.happen();
  await untilReadable(database);
  await dead.dispatcher.dispatch();
  await waitFor(() => world.sent.length === 2, { describe: 'both are sent' });
  const queue = createMemoryQueue(log);
  const common = { database, queue, clock, log, writer: 'first' };
  return createDeliveryRecovery({ ...common, settle, fullHosts: () => [] });
}

describe.each(await engines())('on $name', (engine) => {
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
