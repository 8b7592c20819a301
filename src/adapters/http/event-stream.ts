/**
 * Server-sent events: writes only as fast as the client reads, keeps the connection alive, and ends when
 * the events end, the client disconnects or the server stops.
 */
import { once } from 'node:events';
import type { FastifyReply } from 'fastify';
import { type TObject, Type } from 'typebox';
import { OnceGiven } from './idempotency-key.ts';

const heartbeatMs = 15_000;
/** A client that reads nothing for this long is disconnected. */
const stalledMs = 30_000;

export interface ServerSentEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/**
 * The schema of the events of a stream, by that of each type's data: `JobEvent`, made of `JobStatusEvent` and
 * the others. OpenAPI 3.1 has no keyword for the parts of a stream, so the media type has this as its schema.
 */
export function StreamedEvents(
  noun: string,
  types: Readonly<Record<string, TObject>>,
  example: ServerSentEvent,
) {
  const events = Object.entries(types).map(([type, data]) =>
    Type.Object(
      {
        id: Type.String({ description: 'What Last-Event-ID takes.' }),
        event: Type.Literal(type),
        data,
      },
      { title: `${noun}${pascal(type)}Event` },
    ),
  );
  return Type.Union(events, { title: `${noun}Event`, examples: [example] });
}

/** The header with which a client that reconnects resumes a stream. */
export const LastEventId = Type.Object({
  'last-event-id': OnceGiven('The id of the last event that the client has.'),
});

/** The response of a stream, for the schema of its route. */
export function eventStream(schema: ReturnType<typeof StreamedEvents>, description: string) {
  const text =
    `${description} The schema is that of one event, with its data parsed; on the wire an event is ` +
    'the lines id, event and data, and an empty line.';
  return { description: text, content: { 'text/event-stream': { schema } } };
}

function pascal(text: string): string {
  return text.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
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
