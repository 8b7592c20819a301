/**
 * Follows a job: its server-sent events, from the first one, each once. A broken stream is resumed after
 * the last received event. A hidden page closes its stream, and visible pages take turns
 * (`turns.ts`).
 */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { consoleHeaders } from './client.ts';
import { hasEnded } from './jobs.ts';
import { readHealthAgain, readSessionAgain } from './queries.ts';
import { untilWorthATry } from './recovery.ts';
import { takePart } from './turns.ts';

/** `data` as the API documents it for each type. */
export interface JobEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

const againMs = 1_000;
const againMaxMs = 10_000;
/** The platform writes at least every 15 seconds, so a longer silence means that the stream is broken. */
const silentMaxMs = 40_000;

const isEnd = ({ type, data }: JobEvent) =>
  type === 'status' && hasEnded({ status: String(data['status']) });

/** Resolves when the page is visible or closed. */
const untilSeen = (leaving: AbortSignal) =>
  new Promise<void>((resolve) => {
    const over = new AbortController();
    const look = () => {
      if (document.hidden && !leaving.aborted) return;
      over.abort();
      resolve();
    };
    document.addEventListener('visibilitychange', look, { signal: over.signal });
    leaving.addEventListener('abort', look, { signal: over.signal });
    look();
  });

/** Calls `act` when the page becomes hidden, unless `until` has aborted. */
function whenUnseen(act: () => void, until: AbortSignal): void {
  document.addEventListener('visibilitychange', () => document.hidden && act(), { signal: until });
}

/** A temporary refusal, possibly with a delay that the platform asks for. */
class RefusedForNow extends Error {
  readonly pauseMs: number;
  constructor({ status, headers }: Response) {
    super(`The platform answered ${status}`);
    const seconds = Number(headers.get('retry-after'));
    this.pauseMs = Number.isFinite(seconds) ? seconds * 1_000 : 0;
  }
}

/** Forwards bytes, and calls `onSilence` when none arrived for too long, until `over` aborts. */
function listening(onSilence: () => void, over: AbortSignal) {
  let timer = setTimeout(onSilence, silentMaxMs);
  over.addEventListener('abort', () => clearTimeout(timer), { once: true });
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(bytes, controller) {
      clearTimeout(timer);
      timer = setTimeout(onSilence, silentMaxMs);
      controller.enqueue(bytes);
    },
  });
}

async function* eventsOf(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<JobEvent> {
  const reader = stream
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const { id = '', event: type = 'message', data } = read.value;
    yield { id, type, data: JSON.parse(data) as Record<string, unknown> };
  }
}

/** A job that is followed, from one stream to the next. */
interface Following {
  readonly jobId: string;
  readonly onEvent: (event: JobEvent) => void;
  /** The id of the last received event. */
  last: string | undefined;
  /** Since the last event. */
  failures: number;
}

/**
 * Opens a stream and reads it. Returns true when the events are complete or permanently refused, false when
 * the turn was over. Throws if the stream breaks off.
 */
async function readStream(
  following: Following,
  openMs: number | null,
  away: AbortSignal,
): Promise<boolean> {
  const { jobId, last } = following;
  const close = new AbortController();
  const signal = AbortSignal.any([away, close.signal]);
  let isTurnOver = false;
  try {
    const response = await fetch(`/api/jobs/${jobId}/events`, {
      headers: { ...consoleHeaders(), ...(last === undefined ? {} : { 'last-event-id': last }) },
      signal,
    });
    const { ok, status, body } = response;
    if (status === 401) readSessionAgain();
    else if (!ok && status < 500 && status !== 429) return true;
    if (!ok || body === null) throw new RefusedForNow(response);
    const endTurn = () => {
      isTurnOver = true;
      close.abort();
    };
    const timer = openMs === null ? undefined : setTimeout(endTurn, openMs);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
    for await (const event of eventsOf(body.pipeThrough(listening(() => close.abort(), signal)))) {
      following.last = event.id;
      following.failures = 0;
      following.onEvent(event);
      if (isEnd(event)) return true;
    }
    throw new Error('The stream has ended before the job');
  } catch (error) {
    if (isTurnOver) return false;
    throw error;
  } finally {
    close.abort();
  }
}

/** Reads one stream after the other while the page is visible; true when the events are complete. */
async function readWhileSeen(following: Following, away: AbortSignal): Promise<boolean> {
  const part = takePart();
  try {
    while (!away.aborted) {
      const { openMs, closedMs } = await part.turn();
      let pauseMs = closedMs;
      try {
        if (await readStream(following, openMs, away)) return true;
      } catch (error) {
        if (away.aborted) break;
        const askedMs = error instanceof RefusedForNow ? error.pauseMs : 0;
        if (askedMs === 0) readHealthAgain();
        pauseMs = Math.max(askedMs, Math.min(againMs * 2 ** following.failures, againMaxMs));
        following.failures += 1;
      }
      await untilWorthATry(pauseMs, away);
    }
    return false;
  } finally {
    part.leave();
  }
}

/** Follows a job until it has ended, or `leaving` aborts. */
export async function follow(
  jobId: string,
  onEvent: (event: JobEvent) => void,
  leaving: AbortSignal,
): Promise<void> {
  const following: Following = { jobId, onEvent, last: undefined, failures: 0 };
  while (!leaving.aborted) {
    await untilSeen(leaving);
    const hidden = new AbortController();
    const away = AbortSignal.any([leaving, hidden.signal]);
    whenUnseen(() => hidden.abort(), away);
    if (await readWhileSeen(following, away)) return;
    hidden.abort();
  }
}
