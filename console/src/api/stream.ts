/**
 * Follows a job as it happens: its server-sent events, from the first one, each once. A stream that
 * breaks off is taken up again after the last event that came.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { useEffect, useState } from 'react';
import { ApiError, consoleHeader } from './client.ts';

/** `data` as the API documents it for each type. */
export interface JobEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** Kept in the page; of a run that says more, the oldest are left out, but for its states. */
const eventsMax = 5_000;
const againMs = 1_000;

const ends = ['completed', 'failed', 'cancelled'];

const isEnd = ({ type, data }: JobEvent) =>
  type === 'status' && ends.includes(String(data['status']));

function kept(events: readonly JobEvent[]): readonly JobEvent[] {
  const surplus = events.length - eventsMax;
  if (surplus <= 0) return events;
  return events.filter(({ type }, i) => i >= surplus || type === 'status');
}

async function follow(
  jobId: string,
  onEvents: (events: readonly JobEvent[]) => void,
  signal: AbortSignal,
): Promise<void> {
  let last: string | undefined;
  while (!signal.aborted) {
    try {
      const response = await fetch(`/api/jobs/${jobId}/events`, {
        headers: { ...consoleHeader, ...(last === undefined ? {} : { 'last-event-id': last }) },
        signal,
      });
      if (!response.ok) throw new ApiError(response.status, await response.json());
      if (response.body === null) return;
      const reader = response.body
        .pipeThrough(
          new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>,
        )
        .pipeThrough(new EventSourceParserStream())
        .getReader();
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const { id = '', event: type = 'message', data } = read.value;
        const event = { id, type, data: JSON.parse(data) as Record<string, unknown> };
        last = id;
        onEvents([event]);
        if (isEnd(event)) return;
      }
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return;
    }
    // The process that was asked has stopped, or cannot be reached just now.
    await new Promise((resolve) => setTimeout(resolve, againMs));
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
      (events) => {
        waiting.push(...events);
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
