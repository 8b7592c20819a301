/** Sessions that listen for events (docs/webhooks.md): no webhook, no delivery, nothing missed within a minute. */
import { createClient, type StreamedEvent } from '@skillwright/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventTypes } from '../../src/core/events/events.ts';
import { anId, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const path = '/api/agent-webhooks/listen';
const echo = 'util/v1.0/echo';

let platform: Platform;
let tenant: Tenant;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());
beforeEach(async () => {
  tenant = await newTenant(platform);
});

/** A client that listens until it leaves. */
function listen(query: Record<string, string> = {}, after?: string) {
  const leaving = new AbortController();
  const { url } = platform;
  const client = createClient({
    url,
    apiKey: tenant.key,
    fetch: (input, init) => fetch(input, { ...init, signal: leaving.signal }),
  });
  const received: StreamedEvent[] = [];
  const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after };
  const read = async () => {
    for await (const event of client.stream({ method: 'GET', path, query, headers })) {
      received.push(event);
    }
  };
  const ended = read().catch(() => {});
  return {
    received,
    /** The event with this number, from 0. */
    nth: (n: number) => waitFor(() => received[n], { describe: `event ${n}` }),
    async leave() {
      leaving.abort();
      await ended;
    },
  };
}

const bodyOf = ({ data }: StreamedEvent) => JSON.parse((data as { body: string }).body);

describe(`GET ${path}`, () => {
  test('streams what a webhook would deliver, without a webhook', async () => {
    const session = listen();
    expect(await session.nth(0)).toMatchObject({
      event: 'listening',
      data: { events: eventTypes, resumed: false },
    });

    const { body: job } = await tenant.run(echo, { text: 'x' });

    await session.nth(2);
    const [, created, completed] = session.received as [
      StreamedEvent,
      StreamedEvent,
      StreamedEvent,
    ];
    expect(created.data).toMatchObject({ event: 'conversation.created', agent_id: 'default' });
    expect(completed.data).toMatchObject({ id: anId, event: 'skill.completed' });
    expect(bodyOf(completed)).toMatchObject({
      id: (completed.data as { id: string }).id,
      event: 'skill.completed',
      agent_id: 'default',
      data: { job_id: job.job_id, skill_name: 'echo' },
    });
    expect((await tenant.get('/api/agent-webhooks')).body).toEqual([]);
    await session.leave();
  });

  test('of the types and the agent that are asked for, and of no other organization', async () => {
    await tenant.post('/api/agents', { id: 'second' });
    const session = listen({ events: 'skill.completed', agent_id: 'second' });
    await session.nth(0);

    await (await newTenant(platform)).run(echo, { text: 'another' });
    await tenant.run(echo, { text: 'of another agent' });
    await tenant.run(echo, { text: 'wanted' }, { 'x-agent-id': 'second' });

    expect(bodyOf(await session.nth(1)).data.result_summary).toContain('wanted');
    expect(session.received).toHaveLength(2);
    await session.leave();
  });

  test('a client that comes back with Last-Event-ID misses nothing', async () => {
    const first = listen({ events: 'skill.completed' });
    await first.nth(0);
    await tenant.run(echo, { text: 'one' });
    const { id } = await first.nth(1);
    await first.leave();
    await tenant.run(echo, { text: 'two' });

    const second = listen({ events: 'skill.completed' }, id);

    expect((await second.nth(0)).data).toMatchObject({ resumed: true });
    expect(bodyOf(await second.nth(1)).data.result_summary).toContain('two');
    await second.leave();
  });

  test('with the position of a session that has ended it begins anew', async () => {
    const session = listen({}, '0198c0de-0000-7000-8000-000000000000.0.7');

    expect((await session.nth(0)).data).toMatchObject({ resumed: false });
    await session.leave();
  });

  test('an organization has 10 sessions: 409', async () => {
    const sessions = Array.from({ length: 10 }, () => listen());
    for (const session of sessions) await session.nth(0);

    expectRefusal(await tenant.get(path), 409, 'conflict');

    for (const session of sessions) await session.leave();
  });

  test('400 for a type that there is not, and for a position that is none', async () => {
    expectInvalid(await tenant.get(`${path}?events=skill.done`), 'events');
    expectInvalid(await tenant.get(path, { 'last-event-id': 'x' }), 'last-event-id');
  });

  test('401 without a key', async () => {
    expectRefusal(await platform.request('GET', path), 401, 'authentication_required');
  });
});
