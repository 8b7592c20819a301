/** Sessions that listen for events: resumed by any process, gone a minute after their client. */
import { describe, expect, test } from 'vitest';
import { eventTypes } from '../../src/core/events/events.ts';
import type { ListenerEvent, ListenerPosition } from '../../src/platform/webhooks/listen.ts';
import { engines } from '../support/databases.ts';
import { type WebhookProcess, webhooksWorld } from '../support/webhooks-world.ts';

/** The first events of a session, which its client then leaves. */
async function hear(
  { listeners }: Pick<WebhookProcess, 'listeners'>,
  count: number,
  after: ListenerPosition | null = null,
): Promise<ListenerEvent[]> {
  const request = { organizationId: 'default', apiKeyId: 'key', agentId: undefined };
  const wanted = { ...request, types: eventTypes, after };
  const heard: ListenerEvent[] = [];
  for await (const event of await listeners.listen(wanted, new AbortController().signal)) {
    heard.push(event);
    if (heard.length === count) break;
  }
  return heard;
}

describe.each(await engines())('on $name', (engine) => {
  test('another process resumes a session after the last event that its client has', async () => {
    const world = await webhooksWorld(engine);
    const [begun] = await hear(world, 1);
    await world.happen('skill.completed');
    await world.happen('skill.failed');

    const other = await world.process();
    const heard = await hear(other, 2, begun?.position ?? null);
    const rest = await hear(world, 2, heard[1]?.position ?? null);

    const told = [...heard, ...rest].map(({ event, data }) =>
      event === 'listening' ? data.resumed : data.event,
    );
    expect(told).toEqual([true, 'skill.completed', true, 'skill.failed']);
    await world.deliver();
    expect(world.sent).toEqual([]);
  });

  test('a minute after its client has gone it is deleted, and no events are recorded for it', async () => {
    const world = await webhooksWorld(engine);
    const { clock, database, happen, listeners } = world;
    const [begun] = await hear(world, 1);
    const rows = (table: 'events' | 'webhook_listeners') =>
      database.read.kysely.selectFrom(table).selectAll().execute();

    clock.advance(59_000);
    await listeners.removeExpired();
    await happen('skill.completed');
    expect(await rows('events')).toHaveLength(1);
    clock.advance(1_000);
    await listeners.removeExpired();
    await happen('skill.completed');

    expect(await rows('webhook_listeners')).toEqual([]);
    expect(await rows('events')).toHaveLength(1);
    const [again] = await hear(world, 1, begun?.position ?? null);
    expect(again?.data).toMatchObject({ resumed: false });
  });
});
