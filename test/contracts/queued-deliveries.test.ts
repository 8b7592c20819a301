/** What waits in the queue of webhook deliveries, on both databases. */
import { describe, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { deliveryCounts } from '../../src/platform/webhooks/deliveries.store.ts';
import { readQueuedDeliveries } from '../../src/platform/webhooks/queued-deliveries.ts';
import { engines } from '../support/databases.ts';
import { down, webhooksWorld } from '../support/webhooks-world.ts';

const hour = 3_600_000;

describe.each(await engines())('on $name', (engine) => {
  test('due deliveries and later ones are told apart, also beyond the bound of their count', async () => {
    const world = await webhooksWorld(engine);
    const { database, clock } = world;
    const webhookId = await world.webhook();
    world.answer(down);
    await world.happen();
    await world.deliver();
    const [retry] = await database.read.kysely
      .selectFrom('webhook_deliveries')
      .selectAll()
      .execute();
    if (retry === undefined) throw new Error('No delivery');
    const add = async (dueAt: number, n: number) => {
      const kind = { webhook_id: webhookId };
      await database.write(async (tx) => {
        for (let i = 0; i < n; i += 1_000) {
          const rows = Array.from({ length: Math.min(1_000, n - i) }, () => ({
            ...retry,
            id: newId(),
            event_id: newId(),
            due_at: dueAt,
          }));
          await tx.insert('webhook_deliveries', rows);
        }
        const change = { kind, from: null, to: 'pending' as const };
        await deliveryCounts.change(tx, 'copies', Array(n).fill(change));
      });
    };
    const read = () => readQueuedDeliveries(database.read, clock.now());

    await add(clock.now(), 3);
    expect(await read()).toMatchObject({ due: 3, later: 1, isAtLeast: false, oldest: clock.now() });
    await add(clock.now(), 10_000);
    expect(await read()).toMatchObject({ due: 10_003, later: 1, isAtLeast: false });
    await add(clock.now() + hour, 10_000);
    expect(await read()).toMatchObject({ due: 10_000, later: 10_000, isAtLeast: true, running: 0 });
  });
});
