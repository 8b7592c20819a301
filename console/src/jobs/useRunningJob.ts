import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { hasEnded, jobQuery, jobStepsQuery, jobWaitsQuery } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { useJobEvents } from '../api/stream.ts';

/** How often steps are read; most jobs have none. */
const thinkingMs = 1_000;
const quietMs = 5_000;
/** Event types of jobs that think, and so have steps. */
const thoughts = ['token', 'message', 'tool_call', 'tool_result'];

type StepsPage = Awaited<ReturnType<NonNullable<ReturnType<typeof jobStepsQuery>['queryFn']>>>;

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

/** What a job waits for now, and how many waits there are. They may lie on another page of its steps. */
function useWaits(jobId: string, page: StepsPage | undefined, isLive: boolean) {
  const isWhole = page !== undefined && page.total <= page.data.length;
  const { data } = useQuery({
    ...jobWaitsQuery(jobId),
    enabled: isLive && page !== undefined && !isWhole,
    refetchInterval: live,
  });
  if (!isLive || page === undefined) return { waits: [], total: 0 };
  if (!isWhole) return { waits: data?.data ?? [], total: data?.total ?? 0 };
  const waits = page.data.filter(({ status }) => status === 'waiting');
  return { waits, total: waits.length };
}

/**
 * A job, a page of its steps and its events, while it runs and afterwards. `isReady` is true once all are loaded, so
 * that the page does not shift while it is read.
 */
export function useRunningJob(jobId: string, page = 1) {
  const client = useQueryClient();
  const job = useQuery({
    ...jobQuery(jobId),
    refetchInterval: (query) =>
      query.state.data && hasEnded(query.state.data) ? false : live(query),
  });
  const isLive = job.data !== undefined && !hasEnded(job.data);
  const events = useJobEvents(jobId);
  const thinks = events.some(({ type }) => thoughts.includes(type));
  const steps = useQuery({
    ...jobStepsQuery(jobId, page),
    refetchInterval: (query) => {
      if (!isLive) return false;
      if (job.data?.status === 'waiting') return live(query);
      return thinks || query.state.data?.data.length ? thinkingMs : quietMs;
    },
  });
  const waiting = useWaits(jobId, steps.data, isLive);
  const changes = events.filter(({ type }) => type === 'status' || type === 'approval').length;
  // The stream reports a change first; the job has the details.
  useEffect(() => {
    if (changes > 1) void client.invalidateQueries({ queryKey: ['jobs', jobId] });
  }, [client, jobId, changes]);
  const hasWaited = useHasWaited(eventsMs);
  const isReady = !steps.isPending && (events.length > 0 || hasWaited);
  return { job, steps: steps.data, waiting, events, isReady };
}
