/** Approvals: questions of runs to a person. */
import { type ApprovalsDeps, createApprovals } from '../../platform/approvals/approvals.ts';
import type { Foundation } from './parts.ts';

export function composeApprovals(
  { database, clock }: Pick<Foundation, 'database' | 'clock'>,
  { endWaits }: Pick<ApprovalsDeps, 'endWaits'>,
) {
  return createApprovals({ database, clock, endWaits });
}
