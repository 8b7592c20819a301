/** Live messages between processes through a real Redis, and their behaviour without it. */
import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { OpenStreams } from '../../src/adapters/http/streams.ts';
import { createRedisBus } from '../../src/adapters/redis/bus.ts';
import { Redis } from '../../src/adapters/redis/redis.ts';
import { type JobEvent, SharedJobFeed } from '../../src/core/jobs/feed.ts';
import type { Bus } from '../../src/kernel/bus.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { patient, waitFor } from '../support/wait-for.ts';

const at = '2026-01-01T00:00:00.000Z';
const event = (n: number): JobEvent => ({
  ...{ epoch: 1, n, type: 'log', data: { message: `${n}`, at } },
});

describe.skipIf(findRedis() === undefined)('between processes', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.close());

  async function bus(db = 0): Promise<Bus> {
    const redis = new Redis(`${server.url}/${db}`, createLogger('silent'));
    onTestFinished(() => redis.close());
    const made = createRedisBus(redis);
    await waitFor(() => redis.isConnected() && made.isConnected(), { describe: 'it is connected' });
    return made;
  }

  test('a message reaches all that listen but its sender', async () => {
    const [sender, one, other] = await Promise.all([bus(), bus(), bus()]);
    const heard: string[] = [];
    for (const [name, hearing] of Object.entries({ sender, one, other })) {
      await hearing.listen('cancellations', (message) => heard.push(`${name}: ${message}`)).ready;
    }

    sender.send('cancellations', 'job-1');
    sender.send('jobs', 'no listener for this');
    one.send('cancellations', 'job-2');
    await waitFor(() => heard.length === 4, { describe: 'all have heard' });

    expect(heard.toSorted()).toEqual([
      'one: job-1',
      'other: job-1',
      'other: job-2',
      'sender: job-2',
    ]);
  });

  test('the end of a key or a session ends its streams in all processes, and no others', async () => {
    const limits = { perKey: 10, perOrganization: 10, perAddress: 10 };
    const [own, other] = (await Promise.all([bus(), bus()])).map(
      (one) => new OpenStreams(limits, one),
    ) as [OpenStreams, OpenStreams];
    const open = (streams: OpenStreams, keyId: string, sessionId?: string) => {
      const caller = { keyId, organizationId: 'default' };
      const request = { caller, sessionId, clientAddress: '192.0.2.1' };
      const raw = Object.assign(new EventEmitter(), { destroyed: false });
      return streams.begin(
        request as unknown as FastifyRequest,
        { raw } as unknown as FastifyReply,
      );
    };
    const ofKey = [open(own, 'key'), open(own, 'key', 'session'), open(other, 'key')];
    const ofSession = open(other, 'console', 'session');
    const others = [open(own, 'another'), open(other, 'another', 'another session')];

    // A message that is sent before the other process has subscribed is lost.
    const untilEnded = (credentials: string, streams: AbortController[]) =>
      waitFor(
        () => {
          own.endThoseOf(credentials);
          return streams.every(({ signal }) => signal.aborted);
        },
        { describe: `the streams of ${credentials} have ended` },
      );
    await untilEnded('key', ofKey);
    expect(ofSession.signal.aborted).toBe(false);
    await untilEnded('session', [ofSession]);

    expect(others.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  });

  test('a message stays in its platform where several share a server', async () => {
    const [sender, own, other] = await Promise.all([bus(1), bus(1), bus(2)]);
    const heard: string[] = [];
    await own.listen('jobs', (message) => heard.push(`own: ${message}`)).ready;
    await other.listen('jobs', (message) => heard.push(`other: ${message}`)).ready;

    sender.send('jobs', 'first');
    sender.send('jobs', 'second');
    await waitFor(() => heard.includes('own: second'), { describe: 'it is heard' });

    expect(heard).toEqual(['own: first', 'own: second']);
  });

  test('events of a job in one process reach the others in order', async () => {
    const worker = new SharedJobFeed(await bus());
    const api = new SharedJobFeed(await bus());
    const heard: (number | undefined)[] = [];
    const subscription = api.subscribe('job', (one) => heard.push(one?.n));
    await subscription.ready;

    for (let n = 1; n <= 100; n++) worker.publish('job', event(n));
    worker.publish('another job', event(1));
    await waitFor(() => heard.filter((n) => n !== undefined).length === 100, {
      describe: 'all of it is heard',
    });

    expect(heard.filter((n) => n !== undefined)).toEqual(
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
    subscription.stop();
  });

  test('listeners are told to read the database while Redis is away and when it is back', async () => {
    const api = new SharedJobFeed(await bus());
    let looks = 0;
    const subscription = api.subscribe('job', (one) => {
      if (one === null) looks++;
    });
    await subscription.ready;

    await server.kill();
    const before = looks;
    await waitFor(() => looks >= before + 3, { describe: 'they look while it is away' });
    await server.start();
    const away = looks;
    await waitFor(() => looks > away, { describe: 'they look once it is back' });

    expect(looks).toBeGreaterThan(away);
    subscription.stop();
  });

  test('a listener that starts without Redis does not wait for it', async () => {
    const api = new SharedJobFeed(await bus());
    await server.kill();
    onTestFinished(() => server.start());
    const begun = performance.now();

    const subscription = api.subscribe('job', () => {});
    await subscription.ready;

    expect(performance.now() - begun).toBeLessThan(patient(2_000));
    subscription.stop();
  });

  test('a process without listeners sends without an error and goes on', async () => {
    const lonely = await bus();
    await server.kill();
    onTestFinished(() => server.start());

    expect(() => lonely.send('jobs', 'into the dark')).not.toThrow();
  });
});
