import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, get, pageOf, post, type QueryOf, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Approval = Schema<'Approval'>;
export type ApprovalFilters = QueryOf<'listApprovals'>;
export type Verb = 'approve' | 'reject';

export const approvalsQuery = (filters: ApprovalFilters, limit: number, offset = 0) =>
  queryOptions({
    queryKey: ['approvals', 'list', filters, { limit, offset }],
    queryFn: () =>
      pageOf({ limit, offset }, (page) =>
        api.GET('/api/approvals', { params: { query: { ...filters, ...page } } }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

/** The number of pending approvals, for the menu. */
export const pendingCountQuery = () =>
  queryOptions({ ...approvalsQuery({ status: 'pending' }, 1), select: ({ total }) => total });

/** Decisions of one job that are shown at once. */
const ofJobMax = 20;

/** The approvals that a job waits for. */
export const pendingOfJobQuery = (jobId: string) =>
  approvalsQuery({ job_id: jobId, status: 'pending' }, ofJobMax);

export const approvalQuery = (approvalId: string) =>
  queryOptions({
    queryKey: ['approvals', approvalId],
    queryFn: () => get('/api/approvals/{approvalId}', { path: { approvalId } }),
    refetchInterval: live,
  });

/** `answer` has the values of the fields, for an approval that has some. */
export function decideApproval(
  approvalId: string,
  verb: Verb,
  { reason, answer }: { reason: string; answer?: Record<string, unknown> | undefined },
) {
  const path = { approvalId };
  const given = reason.trim() === '' ? {} : { reason };
  if (verb === 'reject') {
    return post('/api/approvals/{approvalId}/reject', { path, body: given });
  }
  const filled = answer === undefined ? given : { ...given, answer };
  return post('/api/approvals/{approvalId}/approve', { path, body: filled });
}
