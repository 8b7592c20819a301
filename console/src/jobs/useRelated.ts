import { useQuery } from '@tanstack/react-query';
import { pendingOfJobQuery } from '../api/approvals.ts';
import { childJobsQuery, type JobStep } from '../api/jobs.ts';
import { mayAsk } from './waits.ts';

/**
 * The approvals and child jobs of a job. `isReady` is true once both are loaded, so that the page does not shift
 * while it is read.
 */
export function useRelated(jobId: string, waits: readonly JobStep[]) {
  const isAsking = waits.some(mayAsk);
  const approvals = useQuery({ ...pendingOfJobQuery(jobId), enabled: isAsking });
  const children = useQuery(childJobsQuery(jobId, 1));
  return { isAsking, isReady: !(isAsking && approvals.isPending) && !children.isPending };
}
