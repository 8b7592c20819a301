/**
 * Follows a job as it happens: its server-sent events, from the first one, each once. A stream that
 * breaks off is taken up again after the last event that came. A page that is not seen holds none:
 * a browser has only some connections to a host, and all its pages share them.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { useEffect, useState } from 'react';
import { consoleHeaders } from './client.ts';
import { hasEnded } from './jobs.ts';
import { readSessionAgain } from './queries.ts';

/** `data` as the API documents it for each type. */
export interface JobEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** Kept in the page; of a run that says more, the oldest are left out, but for its states. */
const eventsMax = 5_000;
const againMs = 1_000;
const againMaxMs = 30_000;

const isEnd = ({ type, data }: JobEvent) =>
  type === 'status' && hasEnded({ status: String(data['status']) });

function kept(events: readonly JobEvent[]): readonly JobEvent[] {
  const surplus = events.length - eventsMax;
  if (surplus <= 0) return events;
  return events.filter(({ type }, i) => i >= surplus || type === 'status');
}

/** Resolves once the page is seen; at once, if it is. */
const seen = (leaving: AbortSignal) =>
  new Promise<void>((resolve) => {
    const over = new AbortController();
    const signal = AbortSignal.any([leaving, over.signal]);
    const look = () => {
      if (document.hidden) return;
      over.abort();
      resolve();
    };
    document.addEventListener('visibilitychange', look, { signal });
    look();
  });

/** Aborts when the page is no longer seen. `leaving` ends the looking. */
function unseen(leaving: AbortSignal): AbortSignal {
  const hidden = new AbortController();
  document.addEventListener('visibilitychange', () => document.hidden && hidden.abort(), {
    signal: AbortSignal.any([leaving, hidden.signal]),
  });
  return hidden.signal;
}

/** How long the platform asks to be left alone. */
function asked({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after'));
  return Number.isFinite(seconds) ? seconds * 1_000 : 0;
}

async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<JobEvent> {
  const reader = stream
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const { id = '', event: type = 'message', data } = read.value;
    yield { id, type, data: JSON.parse(data) as Record<string, unknown> };
  }
}

/** Resolves when the job has ended, or with a refusal that stays one; a session may be taken up again. */
async function follow(
  jobId: string,
  onEvent: (event: JobEvent) => void,
  leaving: AbortSignal,
): Promise<void> {
  let last: string | undefined;
  let failures = 0;
  while (!leaving.aborted) {
    await seen(leaving);
    const reading = new AbortController();
    const hidden = unseen(AbortSignal.any([leaving, reading.signal]));
    let pauseMs = 0;
    try {
      const response = await fetch(`/api/jobs/${jobId}/events`, {
        headers: { ...consoleHeaders(), ...(last === undefined ? {} : { 'last-event-id': last }) },
        signal: AbortSignal.any([leaving, hidden]),
      });
      const { ok, status } = response;
      if (status === 401) readSessionAgain();
      else if (!ok && status < 500 && status !== 429) return;
      pauseMs = asked(response);
      if (!ok) throw new Error(`The platform answered ${status}`);
      for await (const event of eventsOf(response.body ?? new ReadableStream())) {
        last = event.id;
        failures = 0;
        onEvent(event);
        if (isEnd(event)) return;
      }
    } catch {
      // The process that was asked has stopped, or cannot be reached just now.
    } finally {
      reading.abort();
    }
    if (hidden.aborted) continue;
    const backoffMs = Math.min(againMs * 2 ** failures, againMaxMs);
    failures += 1;
    await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, backoffMs)));
  }
}

/** The events of a job so far, and those that come while the page is open. */
export function useJobEvents(jobId: string): readonly JobEvent[] {
  const [state, setState] = useState<{ jobId: string; events: readonly JobEvent[] }>({
    jobId,
    events: [],
  });
  useEffect(() => {
    const leaving = new AbortController();
    // What comes together is drawn together: a run may say a thousand lines at once.
    let waiting: JobEvent[] = [];
    let frame = 0;
    const flush = () => {
      const fresh = waiting;
      waiting = [];
      frame = 0;
      setState((before) => ({
        jobId,
        events: kept([...(before.jobId === jobId ? before.events : []), ...fresh]),
      }));
    };
    setState({ jobId, events: [] });
    void follow(
      jobId,
      (event) => {
        waiting.push(event);
        frame ||= requestAnimationFrame(flush);
      },
      leaving.signal,
    );
    return () => {
      leaving.abort();
      cancelAnimationFrame(frame);
    };
  }, [jobId]);
  return state.jobId === jobId ? state.events : [];
}
