/**
 * Outgoing webhooks under measurement: the product as a process of its own, receivers behind TLS in
 * this one. Events are real ones, made over the API.
 */
import { rmSync } from 'node:fs';
import {
  receiverAuthorityFile,
  startTlsReceiver,
  type TlsReceiver,
} from '../test/support/tls-receiver.ts';
import { waitFor } from '../test/support/wait-for.ts';
import { type Figure, round } from './figures.ts';
import { median, pace, percentile } from './load.ts';
import { type Server, startServer, temporaryDirectory } from './server.ts';

/** Webhooks that every event goes to, spread over the receivers. */
const fanOut = 100;
const events = 60;
const hangingWebhooks = 5;
const turns = 3;
const deliveredDeadlineMs = 60_000;
const pickUpSeconds = 20;
const eventsPerSecond = 100;

/** All that is owed of webhooks; about a minute. */
export async function webhookFigures(): Promise<Figure[]> {
  const toOne = await medianOf(() => deliveriesPerSecond(1));
  const toMany = await medianOf(() => deliveriesPerSecond(100));
  const alone = await medianOf(() => deliveriesPerSecond(20));
  const besideHanging = await medianOf(() => deliveriesPerSecond(20, { isOneHanging: true }));
  const pickUpMs = percentile(await pickUps(), 0.99);
  const lost = Math.max(0, 100 * (1 - besideHanging / alone));
  return [
    perSecond('webhook deliveries to one receiver', toOne),
    perSecond('webhook deliveries to 100 receivers', toMany),
    {
      name: 'lost to a receiver that hangs',
      value: lost,
      shown: `${round(lost)} % (${round(besideHanging)}/s instead of ${round(alone)}/s)`,
      ...{ floor: 10, goal: 5, unit: '%', better: 'less' as const },
    },
    {
      name: `webhook pick-up at ${eventsPerSecond} events/s, p99`,
      value: pickUpMs,
      shown: `${round(pickUpMs)} ms`,
      ...{ floor: 250, goal: 150, unit: 'ms', better: 'less' as const },
    },
  ];
}

function perSecond(name: string, value: number): Figure {
  const bounds = { floor: 500, goal: 1_000, unit: '/s', better: 'more' as const };
  return { name, value, shown: `${round(value)}/s`, ...bounds };
}

async function medianOf(measure: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let i = 0; i < turns; i += 1) values.push(await measure());
  return median(values);
}

/**
 * Deliveries per second, from the first that arrives to the last, of events that are there at once.
 * With `isOneHanging`, a further receiver takes deliveries of the same events and never answers.
 */
async function deliveriesPerSecond(
  receivers: number,
  { isOneHanging = false } = {},
): Promise<number> {
  return await withReceivers(receivers + (isOneHanging ? 1 : 0), async (server, all) => {
    const answering = all.slice(0, receivers);
    for (let i = 0; i < fanOut; i += 1) {
      const { origin } = answering[i % receivers] as TlsReceiver;
      await createWebhook(server, `${origin}/${i}`, 'agent.status_changed');
    }
    for (const hanging of all.slice(receivers)) {
      hanging.answers({ does: 'hang' });
      for (let i = 0; i < hangingWebhooks; i += 1) {
        await createWebhook(server, hanging.origin, 'agent.status_changed');
      }
    }
    for (let i = 0; i < events; i += 1) {
      const status = i % 2 === 0 ? 'paused' : 'active';
      await ask(server, 'PUT', '/api/agents/default', { status });
    }
    const total = events * fanOut;
    const arrived = () => answering.reduce((sum, { requests }) => sum + requests.length, 0);
    await waitFor(() => arrived() >= total, {
      describe: () => `${total} deliveries; there were ${arrived()}`,
      deadlineMs: deliveredDeadlineMs,
    });
    const times = answering.flatMap(({ requests }) => requests.map(({ at }) => at)).sort(byNumber);
    const tookMs = (times[total - 1] ?? Number.NaN) - (times[0] ?? Number.NaN);
    return (1000 * total) / tookMs;
  });
}

/**
 * Milliseconds from the moment of each event to its request at the receiver, at a steady pace of
 * accepted jobs, each an event. The moment is taken before the commit, so the commit counts too.
 */
async function pickUps(): Promise<number[]> {
  return await withReceivers(1, async (server, [receiver]) => {
    if (receiver === undefined) throw new Error('There is no receiver.');
    await createWebhook(server, receiver.origin, 'conversation.created');
    const job = {
      method: 'POST' as const,
      url: `${server.url}/api/util/v1.0/echo`,
      headers: server.headers,
      body: JSON.stringify({ text: 'The quick brown fox jumps over the lazy dog.' }),
    };
    const load = { perSecond: eventsPerSecond, status: 202 };
    const warmUp = (await pace(job, { ...load, seconds: 3 })).length;
    await receiver.received(warmUp, deliveredDeadlineMs);
    const paced = (await pace(job, { ...load, seconds: pickUpSeconds })).length;
    const requests = await receiver.received(warmUp + paced, deliveredDeadlineMs);
    return requests
      .slice(warmUp)
      .map(({ at, json }) => performance.timeOrigin + at - Date.parse(json.timestamp));
  });
}

/** Runs `measure` against a server on an empty store that may deliver to these receivers. */
async function withReceivers<T>(
  count: number,
  measure: (server: Server, receivers: readonly TlsReceiver[]) => Promise<T>,
): Promise<T> {
  const dataDir = temporaryDirectory();
  const receivers = await Promise.all(Array.from({ length: count }, startTlsReceiver));
  try {
    const server = await startServer('ours', dataDir, {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
      NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
    });
    try {
      return await measure(server, receivers);
    } finally {
      await server.stop();
    }
  } finally {
    await Promise.all(receivers.map((receiver) => receiver.close()));
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function createWebhook(server: Server, url: string, event: string): Promise<void> {
  await ask(server, 'POST', '/api/agent-webhooks', { agent_id: 'default', url, events: [event] });
}

async function ask(server: Server, method: string, path: string, body: unknown): Promise<void> {
  const { url, headers } = server;
  const request = { method, headers, body: JSON.stringify(body) };
  const response = await fetch(`${url}${path}`, request);
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${answer}`);
}

function byNumber(a: number, b: number): number {
  return a - b;
}
