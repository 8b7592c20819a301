/**
 * Server-sent events: writes as fast as the client reads and no faster, keeps the connection alive,
 * and ends when the events do, the client goes or the server stops.
 */
import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

const heartbeatMs = 15_000;
/** A client that takes nothing for this long is cut. */
const stalledMs = 30_000;

export interface ServerSentEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** Ends when the client takes more, rejects when it has gone or takes nothing for too long. */
async function drained(raw: FastifyReply['raw']): Promise<void> {
  const gone = new AbortController();
  const onClose = () => gone.abort();
  raw.once('close', onClose);
  try {
    const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(stalledMs)]);
    await once(raw, 'drain', { signal });
  } finally {
    raw.off('close', onClose);
  }
}

/** Sends events until they end; resolves when the response is over. */
export async function sendEvents(
  reply: FastifyReply,
  events: AsyncIterable<ServerSentEvent>,
): Promise<void> {
  const headers = reply.getHeaders();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    ...(headers as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // Tells buffering proxies to pass events on as they come.
    'x-accel-buffering': 'no',
  });
  raw.write(': connected\n\n');
  const heartbeat = setInterval(() => raw.write(': still here\n\n'), heartbeatMs);
  heartbeat.unref();
  try {
    for await (const { id, event, data } of events) {
      const flowing = raw.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      if (!flowing) await drained(raw);
    }
    raw.end();
  } catch (err) {
    // A client that left is no news; anything else is.
    if (!raw.destroyed) reply.log.warn({ err }, 'an event stream was cut');
    raw.destroy();
  } finally {
    clearInterval(heartbeat);
  }
}
