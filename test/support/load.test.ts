import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { longestPauseMs, outcomesOf, startLoad } from './load.ts';
import { freePort } from './supervised.ts';
import { waitFor } from './wait-for.ts';

/** An api that answers as told; its url and what it was asked. */
async function answering(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function loadOn(urls: readonly string[], options: { giveUpMs?: number } = {}) {
  const load = startLoad({
    // Few: on a busy machine many would make each other late.
    perSecond: 10,
    urls: () => urls,
    key: 'k',
    skill: 'a/v1.0/b',
    input: (n) => ({ n }),
    // Longer than a busy machine takes to answer.
    requestTimeoutMs: 1_500,
    ...options,
  });
  onTestFinished(load.abandon);
  return load;
}

test('an execution is asked for with one key until it is accepted, whatever stands in its way', async () => {
  const asked = new Map<string, number>();
  const hindered = await answering((request, response) => {
    const key = String(request.headers['idempotency-key']);
    const times = (asked.get(key) ?? 0) + 1;
    asked.set(key, times);
    if (times === 1) response.writeHead(503, { 'retry-after': '0' }).end();
    else if (times === 2) request.socket.destroy();
    else if (times === 3) return;
    else response.writeHead(202).end(JSON.stringify({ job_id: key }));
  });
  const load = loadOn([hindered]);
  await waitFor(() => load.accepted.size >= 5, {
    describe: 'some are accepted',
    deadlineMs: 25_000,
  });

  await load.stop();

  expect(load.unexpected).toEqual([]);
  expect([...load.accepted.keys()].toSorted()).toEqual([...asked.keys()].toSorted());
  expect(new Set(load.accepted.values()).size).toBe(load.accepted.size);
  const n = load.accepted.size;
  expect(outcomesOf(load.attempts)).toBe(`202: ${n}, 503: ${n}, broken: ${n}, timeout: ${n}`);
});

test('it tries the next process where one does not listen', async () => {
  const url = await answering((_request, response) => {
    response.writeHead(202).end(JSON.stringify({ job_id: String(Math.random()) }));
  });
  const load = loadOn([`http://127.0.0.1:${await freePort()}`, url]);
  await waitFor(() => load.accepted.size >= 5, { describe: 'some are accepted' });

  await load.stop();

  expect(load.attempts.some(({ outcome }) => outcome === 'refused')).toBe(true);
  expect(load.unexpected).toEqual([]);
});

test('an answer that no client would ask again after is told', async () => {
  const url = await answering((_request, response) => void response.writeHead(500).end('oops'));
  const load = loadOn([url]);
  await waitFor(() => load.unexpected.length >= 2, { describe: 'some are told' });

  await load.stop();

  expect(new Set(load.unexpected)).toEqual(new Set(['500 oops']));
  expect(load.accepted.size).toBe(0);
});

test('so is one that was never accepted', async () => {
  const load = loadOn([], { giveUpMs: 100 });
  await waitFor(() => load.unexpected.length >= 2, { describe: 'some are told' });

  await load.stop();

  expect(load.unexpected[0]).toBe('execution 0 was not accepted in 100 ms');
});

test('the longest pause is between the moments at which two were accepted', () => {
  const attempt = (outcome: number, at: number, ms: number) => ({ outcome, at, ms });

  const attempts = [
    attempt(202, 0, 10),
    attempt(202, 50, 400),
    attempt(503, 60, 5),
    attempt(202, 500, 1),
  ];

  expect(longestPauseMs(attempts)).toBe(440);
  expect(longestPauseMs([])).toBe(0);
});
