import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Follower, follow, type ReceivedEvent } from '../support/event-stream.ts';
import { aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { openRaw } from '../support/raw-http.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

function followJob(
  tenant: Tenant,
  jobId: string,
  lastEventId?: string,
  query = '',
): Promise<Follower> {
  return follow(`${platform.url}/api/jobs/${jobId}/events${query}`, {
    'x-api-key': tenant.key,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  });
}

/** An event in a few words. */
function brief({ event, data }: ReceivedEvent): string {
  switch (event) {
    case 'status':
      return data.attempt === undefined ? data.status : `${data.status} ${data.attempt}`;
    case 'log':
      return `log ${data.message}`;
    default:
      return `${event} ${data.role}: ${data.content}`;
  }
}

const steps = [
  { log: 'began' },
  { progress: 0.5, note: 'half' },
  { message: ['assistant', 'so far so good'] as const },
  { log: 'ends' },
];
/** What `steps` tell in order; progress is told when it is due, 20 times a second at most. */
const told = [
  ...['queued', 'active 1', 'log began', 'message assistant: so far so good', 'log ends'],
  'completed 1',
];

/** Events in a few words, progress left out. */
const inOrder = (events: readonly ReceivedEvent[]) =>
  events.filter(({ event }) => event !== 'progress').map(brief);
const progressOf = (events: readonly ReceivedEvent[]) =>
  events.filter(({ event }) => event === 'progress').map(({ data }) => data);

describe('GET /api/jobs/:jobId/events', () => {
  test('is a stream of server-sent events that no proxy keeps', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run(play, acting());

    const stream = await followJob(tenant, body.job_id);
    await stream.ended;

    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream\b/);
    expect(stream.headers.get('cache-control')).toMatch(/no-store|no-cache/);
    expect(stream.headers.get('x-request-id')).toMatch(/\S/);
  });

  test('has status, log lines, progress and messages in order, and ends with the job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }, ...steps));
    const stream = await followJob(tenant, jobId);
    await stream.event(({ data }) => data.status === 'active', 'the job is active');

    end.open();

    expect(inOrder(await stream.ended)).toEqual(told);
    expect(progressOf(stream.events)).toEqual([{ fraction: 0.5, note: 'half', at: aTimestamp }]);
    for (const { data } of stream.events) expect(data.at).toEqual(aTimestamp);
    expect(stream.events.find(({ event }) => event === 'log')?.data).toEqual({
      message: 'began',
      fields: { step: 'began' },
      at: aTimestamp,
    });
    const ids = stream.events.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('has the same events for an ended job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }, ...steps));
    const live = await followJob(tenant, jobId);
    end.open();
    const heard = await live.ended;

    const later = await followJob(tenant, jobId);

    expect(await later.ended).toEqual(heard);
  });

  test('events come as they happen, not at the end', async () => {
    const tenant = await newTenant(platform);
    const [first, second] = [gate(), gate()];
    const jobId = await tenant.start(
      play,
      acting({ until: first.path }, { log: 'one' }, { until: second.path }, { log: 'two' }),
    );
    const stream = await followJob(tenant, jobId);

    first.open();
    await stream.event(({ data }) => data.message === 'one', 'the first line');
    expect(stream.events.some(({ data }) => data.message === 'two')).toBe(false);
    second.open();

    expect((await stream.ended).map(brief)).toEqual([
      ...['queued', 'active 1', 'log one', 'log two', 'completed 1'],
    ]);
  });

  test('follow=false ends after the events so far, and follow=true with the job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ log: 'one' }, { until: end.path }));
    const live = await followJob(tenant, jobId);
    const { id } = await live.event(({ data }) => data.message === 'one', 'the line');
    const ask = (query: string, lastEventId?: string) =>
      followJob(tenant, jobId, lastEventId, query);

    const soFar = await (await ask('?follow=false')).ended;
    const later = await (await ask('?follow=false', id)).ended;
    expectInvalid(await tenant.get(`/api/jobs/${jobId}/events?follow=no`), 'follow');
    end.open();

    expect(soFar.map(brief)).toEqual(['queued', 'active 1', 'log one']);
    expect(later).toEqual([]);
    expect(await live.ended).toEqual([...soFar, live.events.at(-1)]);
    for (const query of ['?follow=true', '?follow=false']) {
      expect(await (await ask(query)).ended).toEqual(live.events);
    }
  });

  test('has failed attempts with their errors', async () => {
    const tenant = await newTenant(platform);
    const fail = { fail: { message: 'not yet' } };
    const input = { attempts: [[{ log: 'first' }, fail], [{ log: 'second' }]], output: 1 };

    const { body } = await tenant.run(play, input);
    const stream = await followJob(tenant, body.job_id);

    expect((await stream.ended).map(brief)).toEqual([
      ...['queued', 'active 1', 'log first', 'queued 1', 'active 2', 'log second', 'completed 2'],
    ]);
    const failed = stream.events[3]?.data;
    expect(failed).toMatchObject({
      error: { code: 'skill_execution_failed', message: 'not yet' },
      run_at: aTimestamp,
    });
  });

  test('a failed job ends it with the error, a cancelled one too', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const failed = await tenant.run(play, acting({ fail: { message: 'no', retryable: false } }));
    const cancelled = await tenant.start(play, acting({ until: end.path }));
    const live = await followJob(tenant, cancelled);
    await live.event(({ data }) => data.status === 'active', 'the job is active');
    await tenant.post(`/api/jobs/${cancelled}/cancel`);

    const last = async (stream: Follower) => (await stream.ended).at(-1)?.data;
    expect(await last(await followJob(tenant, failed.body.job_id))).toMatchObject({
      status: 'failed',
      error: { code: 'skill_execution_failed', message: 'no' },
    });
    expect(await last(live)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
  });

  test('text of every kind survives, line breaks and all', async () => {
    const tenant = await newTenant(platform);
    const text = 'a\nb\r\nc\u2028d 🏔️ \u0001 id: x\n\nevent: y\ndata: z';

    const { body } = await tenant.run(play, acting({ log: text }, { message: ['tool', text] }));
    const stream = await followJob(tenant, body.job_id);

    const events = await stream.ended;
    expect(events.map(({ event }) => event)).toEqual([
      ...['status', 'status', 'log', 'message', 'status'],
    ]);
    expect(events[2]?.data.message).toBe(text);
    expect(events[3]?.data.content).toBe(text);
  });

  test('2,000 lines said at once arrive in their order, as far as they are kept', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const lines = Array.from({ length: 2_000 }, (_, i) => ({ log: `${i}` }));
    const jobId = await tenant.start(play, acting({ until: end.path }, ...lines));
    const stream = await followJob(tenant, jobId);
    end.open();

    const heard = (await stream.ended).filter(({ event }) => event === 'log');

    // A thousand are promised; what is said of the others is one line or none.
    const texts = heard.map(({ data }) => data.message);
    expect(texts.slice(0, 1_000)).toEqual(lines.slice(0, 1_000).map(({ log }) => log));
    const later = await followJob(tenant, jobId);
    expect(await later.ended).toEqual(await stream.ended);
  });
});

describe('Last-Event-ID', () => {
  test('resumes after each event, of a job that has ended', async () => {
    const tenant = await newTenant(platform);
    const fail = { fail: { message: 'not yet' } };
    const { body } = await tenant.run(play, { attempts: [[...steps, fail], steps] });
    const all = await (await followJob(tenant, body.job_id)).ended;
    expect(all).toHaveLength(13);

    for (const [i, { id }] of all.entries()) {
      const stream = await followJob(tenant, body.job_id, id);
      expect(await stream.ended).toEqual(all.slice(i + 1));
    }
  });

  test('resumes after each event, while the job runs', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting(...steps, { until: end.path }, { log: 'last' }));
    const first = await followJob(tenant, jobId);
    await first.event(({ data }) => data.message === 'ends', 'everything but the end is said');
    const resumed = await Promise.all(first.events.map(({ id }) => followJob(tenant, jobId, id)));

    end.open();

    const all = await first.ended;
    expect(inOrder(all)).toEqual([...told.slice(0, -1), 'log last', 'completed 1']);
    for (const [i, stream] of resumed.entries()) {
      expect(await stream.ended).toEqual(all.slice(i + 1));
    }
  });

  test('of an unknown event also ends with the job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const { body } = await tenant.run(play, acting());
    const jobId = await tenant.start(play, acting({ until: end.path }));
    const stream = await followJob(tenant, jobId, '999999999.1');

    end.open();

    expect(await stream.ended).toEqual([]);
    expect(await (await followJob(tenant, body.job_id, '999999999.1')).ended).toEqual([]);
  });

  test('an empty one begins at the beginning', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run(play, acting());

    const stream = await followJob(tenant, body.job_id, '');

    expect((await stream.ended).map(brief)).toEqual(['queued', 'active 1', 'completed 1']);
  });

  test('that is no id of a stream is 400 validation_error', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run(play, acting());

    for (const id of ['x', '1', '1.', '.1', '-1.0', '1.0.0', '1e9.0', '1.99999999999', '1 .0']) {
      const headers = { 'last-event-id': id };
      expectInvalid(await tenant.get(`/api/jobs/${body.job_id}/events`, headers), 'last-event-id');
    }
  });
});

describe('a client that follows', () => {
  test('gets the same events as all others', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }, ...steps));
    const followers = await Promise.all(Array.from({ length: 10 }, () => followJob(tenant, jobId)));

    end.open();

    const heard = await Promise.all(followers.map(({ ended }) => ended));
    for (const events of heard) expect(events).toEqual(heard[0]);
    expect(inOrder(heard[0] ?? [])).toEqual(told);
  });

  test('and goes away harms neither the run nor the others', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ log: 'one' }, { until: end.path }));
    const stays = await followJob(tenant, jobId);
    const leaves = await followJob(tenant, jobId);
    await leaves.event(({ event }) => event === 'log', 'the line');

    leaves.leave();
    await expect(leaves.ended).rejects.toThrow();
    end.open();

    expect((await stays.ended).at(-1)?.data.status).toBe('completed');
    expect((await tenant.get(`/api/jobs/${jobId}`)).body.status).toBe('completed');
  });

  test('and goes away leaves no connection behind', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    const count = () =>
      new Promise<number>((resolve, reject) => {
        platform.app.server.server.getConnections((error, n) =>
          error ? reject(error) : resolve(n),
        );
      });
    const before = await count();
    const connections = Array.from({ length: 20 }, () => openRaw(platform.url));
    for (const connection of connections) {
      connection.send(
        `GET /api/jobs/${jobId}/events HTTP/1.1\r\nHost: x\r\nx-api-key: ${tenant.key}\r\n\r\n`,
      );
    }
    await waitFor(async () => (await count()) >= before + 20, { describe: 'all are connected' });

    for (const connection of connections) connection.destroy();

    await waitFor(async () => (await count()) <= before, { describe: 'all are gone' });
  });

  test('an unknown job is 404 not_found', async () => {
    const tenant = await newTenant(platform);

    for (const id of ['0198c0de-0000-7000-8000-000000000000', 'x']) {
      expectRefusal(await tenant.get(`/api/jobs/${id}/events`), 404, 'not_found');
    }
  });

  test('HEAD is not held until the job ends', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));

    const answer = await tenant.send('HEAD', `/api/jobs/${jobId}/events`);

    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET');
  });
});

test('with strict permissions, messages and their pieces need the scope conversations', async () => {
  const strict = await startStaged({ environment: { API_KEY_PERMISSIONS: 'strict' } });
  onTestFinished(() => strict.stop());
  const owner = await newTenant(strict);
  const others = { organization_id: owner.organization };
  const { body: job } = await owner.run(play, acting(...steps));
  const read = async (scopes: string[]) => {
    const { key } = await newTenant(strict, { ...others, scopes });
    const url = `${strict.url}/api/jobs/${job.job_id}/events?follow=false`;
    const follower = await follow(url, { 'x-api-key': key });
    return inOrder(await follower.ended);
  };

  expect(await read(['other'])).toEqual(told.filter((one) => !one.startsWith('message')));
  expect(await read(['conversations'])).toEqual(told);
});
