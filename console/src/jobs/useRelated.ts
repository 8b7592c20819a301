import { useQuery } from '@tanstack/react-query';
import { pendingOfJobQuery } from '../api/approvals.ts';
import { childJobsQuery, type JobStep } from '../api/jobs.ts';

/**
 * What belongs to a job and is shown on its page: decisions that it waits for, and jobs that it started. `isReady`
 * once both have come, so that the page does not grow under the eyes of its reader.
 */
export function useRelated(jobId: string, waits: readonly JobStep[]) {
  const isAsking = waits.some(({ kind }) => kind === 'approval');
  const approvals = useQuery({ ...pendingOfJobQuery(jobId), enabled: isAsking });
  const children = useQuery(childJobsQuery(jobId, 1));
  return { isAsking, isReady: !(isAsking && approvals.isPending) && !children.isPending };
}
