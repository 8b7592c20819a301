/** events(): each event once and in order, over broken connections. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createClient, SkillwrightError } from './index.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A stream of these events; one that breaks fails after them. */
function streamOf(events: readonly [id: string, status: string][], isBroken = false): Response {
  const text = events.map(
    ([id, status]) => `id: ${id}\nevent: status\ndata: {"status":"${status}"}\n\n`,
  );
  const body = new ReadableStream({
    async pull(controller) {
      const next = text.shift();
      if (next !== undefined) controller.enqueue(new TextEncoder().encode(next));
      else if (isBroken) controller.error(new TypeError('terminated'));
      else controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** What events() yields of a platform with these answers, and the last ids that it was asked with. */
async function follow(answers: (Response | Error)[], after?: string) {
  const asked: (string | null)[] = [];
  const client = createClient({
    url: 'http://platform',
    fetch: async (url, init) => {
      if (String(url).endsWith('/events')) {
        asked.push(new Headers(init?.headers).get('last-event-id'));
      }
      const answer = answers.shift() ?? new TypeError('fetch failed');
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  const ids: string[] = [];
  const done = (async () => {
    for await (const { id } of client.job('j1').events({ after })) ids.push(id);
  })().then(
    () => null,
    (error: unknown) => error,
  );
  await vi.runAllTimersAsync();
  return { ids, asked, error: await done };
}

const refusal = (status: number, error: string) =>
  Response.json({ error, message: 'The reason' }, { status });

test('a connection that breaks is opened again after the last event', async () => {
  const { ids, asked, error } = await follow([
    streamOf([['0.0', 'queued']], true),
    new TypeError('fetch failed'),
    refusal(503, 'service_unavailable'),
    streamOf([['1.0', 'active']]),
    streamOf([['1.9', 'completed']]),
  ]);
  expect(error).toBeNull();
  expect(ids).toEqual(['0.0', '1.0', '1.9']);
  expect(asked).toEqual([null, '0.0', '0.0', '0.0', '1.0']);
});

test('after the last event of a job there is nothing more', async () => {
  const ended = Response.json({ job_id: 'j1', status: 'completed' });
  const { ids, asked, error } = await follow([streamOf([]), ended], '1.9');
  expect({ ids, asked, error }).toEqual({ ids: [], asked: ['1.9'], error: null });
});

test('a stream that was alive for long before it breaks is opened again for two minutes', async () => {
  const hourMs = 3_600_000;
  const waiting = new Response(
    new ReadableStream({
      async start(controller) {
        const write = (text: string) => controller.enqueue(new TextEncoder().encode(text));
        write('id: 0.0\nevent: status\ndata: {"status":"waiting"}\n\n');
        for (let ms = 0; ms < hourMs; ms += 15_000) {
          await new Promise((resolve) => setTimeout(resolve, 15_000));
          write(': keep-alive\n\n');
        }
        controller.error(new TypeError('terminated'));
      },
    }),
  );
  const faults = Array.from({ length: 8 }, () => new TypeError('fetch failed'));

  const { ids, error } = await follow([waiting, ...faults, streamOf([['1.0', 'completed']])]);

  expect({ ids, error }).toEqual({ ids: ['0.0', '1.0'], error: null });
});

test('a refusal ends it, and so does a platform that is away for two minutes', async () => {
  const refused = await follow([refusal(401, 'invalid_api_key')]);
  expect(refused.error).toMatchObject({ code: 'invalid_api_key' });

  const begun = Date.now();
  const away = await follow([streamOf([['0.0', 'queued']], true)]);
  expect(away.error).toBeInstanceOf(SkillwrightError);
  expect(away.error).toMatchObject({ code: 'unreachable' });
  expect(Date.now() - begun).toBeGreaterThan(120_000);
});

test('with follow: false the events so far are all, and a job that goes on is not asked about', async () => {
  const asked: string[] = [];
  const client = createClient({
    url: 'http://platform',
    fetch: async (url) => {
      asked.push(String(url));
      return streamOf([['0.0', 'queued']]);
    },
  });
  const ids: string[] = [];
  for await (const { id } of client.job('j1').events({ follow: false })) ids.push(id);
  expect(ids).toEqual(['0.0']);
  expect(asked).toEqual(['http://platform/api/jobs/j1/events?follow=false']);
});
