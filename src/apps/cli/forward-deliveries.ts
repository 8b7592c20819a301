/**
 * Forwards events to an address of the developer's machine, which the platform cannot reach, with the bodies and
 * headers of deliveries. It follows them as a stream, which it resumes after a break; webhooks go on as before.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { type Client, SkillwrightError } from '@skillwright/client';
import { messageHeaders } from '../../platform/webhooks/message.ts';
import type { Io } from './io.ts';

interface Delivery {
  readonly id: string;
  readonly event: string;
  readonly body: string;
}

export interface Forwarded {
  readonly delivery_id: string;
  readonly event: string;
  /** Of the local address; null if it did not answer. */
  readonly status: number | null;
  readonly error: string | null;
}

/** The first message of a stream. */
interface Listening {
  readonly events: readonly string[];
  /** Whether an earlier session goes on, so that no event was missed. */
  readonly resumed: boolean;
}

/** Which events are forwarded, to which address, and the secret that signs the requests. */
interface Forwarding {
  readonly query: { readonly events: string | undefined; readonly agent_id: string | undefined };
  readonly target: string;
  readonly secret: string;
}

const firstPauseMs = 500;
const pauseMaxMs = 5_000;
/** As long as a receiver has for a delivery of the platform. */
const timeoutMs = 10_000;

/**
 * Forwards what happens from now on, and yields each beginning of the stream and each delivery that was forwarded. Ends
 * only when interrupted, with the reason of the signal.
 */
export async function* forwardDeliveries(
  io: Io,
  client: Client,
  forwarding: Forwarding,
): AsyncGenerator<{ listening: Listening; isFirst: boolean } | { forwarded: Forwarded }> {
  const { query } = forwarding;
  let last: string | undefined;
  let pauseMs = firstPauseMs;
  for (;;) {
    const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last };
    try {
      const request = { method: 'GET', path: '/api/agent-webhooks/listen', query, headers };
      for await (const { id, event, data } of client.stream(request)) {
        if (event === 'listening') {
          yield { listening: data as Listening, isFirst: last === undefined };
        } else if (event === 'delivery') {
          yield { forwarded: await forward(io, forwarding, data as Delivery) };
        }
        last = id;
        pauseMs = firstPauseMs;
      }
    } catch (error) {
      io.interrupted.throwIfAborted();
      if (last === undefined || !mayPass(error)) throw error;
    }
    await elapsed(pauseMs, undefined, { signal: io.interrupted });
    pauseMs = Math.min(pauseMs * 2, pauseMaxMs);
  }
}

/** Whether the same request may succeed later: the connection broke, or the platform is being replaced. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof SkillwrightError)) return true;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}

async function forward(
  io: Io,
  { target, secret }: Forwarding,
  { id, event, body }: Delivery,
): Promise<Forwarded> {
  const headers = messageHeaders({ id, event, body }, secret, io.now());
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), io.interrupted]);
  try {
    const init = { method: 'POST', headers, body, redirect: 'manual', signal } as const;
    const response = await io.fetch(target, init);
    await response.body?.cancel();
    return { delivery_id: id, event, status: response.status, error: null };
  } catch (error) {
    io.interrupted.throwIfAborted();
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
    return { delivery_id: id, event, status: null, error: reason };
  }
}
