/**
 * Server-sent events: writes only as fast as the client reads, keeps the connection alive, and ends when
 * the events end, the client disconnects or the server stops.
 */
import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

const heartbeatMs = 15_000;
/** A client that reads nothing for this long is disconnected. */
const stalledMs = 30_000;

export interface ServerSentEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** Resolves when the client reads again; rejects when it has disconnected or reads nothing for too long. */
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
    // Tells proxies not to buffer events.
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
    // A disconnected client is not worth a warning; any other error is.
    if (!raw.destroyed) reply.log.warn({ err }, 'an event stream was cut');
    raw.destroy();
  } finally {
    clearInterval(heartbeat);
  }
}
