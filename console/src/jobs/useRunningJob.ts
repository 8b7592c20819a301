import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { hasEnded, jobQuery, jobStepsQuery } from '../api/jobs.ts';
import { liveMs } from '../api/queries.ts';
import { useJobEvents } from '../api/stream.ts';

/** How often steps are read; most jobs have none. */
const thinkingMs = 1_000;
const quietMs = 5_000;
/** Event types of jobs that think, and so have steps. */
const thoughts = ['token', 'message', 'tool_call', 'tool_result'];

/** How long a page waits for the first events, which may be many. */
const eventsMs = 1_000;

function useHasWaited(ms: number): boolean {
  const [hasWaited, setWaited] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setWaited(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return hasWaited;
}

/**
 * A job, its steps and its events, while it runs and afterwards. `isReady` once
 * all have come, so that a page that shows them does not grow under the eyes of its reader.
 */
export function useRunningJob(jobId: string) {
  const client = useQueryClient();
  const job = useQuery({
    ...jobQuery(jobId),
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : liveMs),
  });
  const isLive = job.data !== undefined && !hasEnded(job.data);
  const events = useJobEvents(jobId);
  const thinks = events.some(({ type }) => thoughts.includes(type));
  const steps = useQuery({
    ...jobStepsQuery(jobId),
    refetchInterval: ({ state }) =>
      isLive && (thinks || state.data?.data.length ? thinkingMs : quietMs),
  });
  const changes = events.filter(({ type }) => type === 'status').length;
  // The stream reports a change first; the job has the details.
  useEffect(() => {
    if (changes > 1) void client.invalidateQueries({ queryKey: ['jobs', jobId] });
  }, [client, jobId, changes]);
  const hasWaited = useHasWaited(eventsMs);
  const isReady = !steps.isPending && (events.length > 0 || hasWaited);
  return { job, steps: steps.data?.data ?? [], events, isReady };
}
