import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { hasEnded, jobQuery, jobStepsQuery } from '../api/jobs.ts';
import { liveMs } from '../api/queries.ts';
import { useJobEvents } from '../api/stream.ts';

/** How often steps are read: of most jobs there are none. */
const thinkingMs = 1_000;
const quietMs = 5_000;
/** What only a job says that thinks, and so has steps. */
const thoughts = ['token', 'message', 'tool_call', 'tool_result'];

/** A job, its steps and its events, while it runs and afterwards. */
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
  // The stream knows first that something has changed; the job says the rest.
  useEffect(() => {
    if (changes > 1) void client.invalidateQueries({ queryKey: ['jobs', jobId] });
  }, [client, jobId, changes]);
  return { job, steps: steps.data?.data ?? [], events };
}
