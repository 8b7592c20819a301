/** The events of a job, for the pages that show it while it runs. */
import { useEffect, useState } from 'react';
import { follow, type JobEvent } from './follow.ts';

/** Events kept in the page; of a longer run the oldest are dropped, except its states. */
const eventsMax = 5_000;

function kept(events: readonly JobEvent[]): readonly JobEvent[] {
  const surplus = events.length - eventsMax;
  if (surplus <= 0) return events;
  return events.filter(({ type }, i) => i >= surplus || type === 'status');
}

/** The past events of a job, and new ones while the page is open. */
export function useJobEvents(jobId: string): readonly JobEvent[] {
  const [state, setState] = useState<{ jobId: string; events: readonly JobEvent[] }>({
    jobId,
    events: [],
  });
  useEffect(() => {
    const leaving = new AbortController();
    // Events of one chunk are rendered together, because a run may log a thousand lines at once.
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
