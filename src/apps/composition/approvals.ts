/** Approvals: questions of runs to a person. */

import type { Context } from '../../core/context/context.ts';
import { type ApprovalsDeps, createApprovals } from '../../platform/approvals/approvals.ts';

export function composeApprovals(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  { endWaits }: Pick<ApprovalsDeps, 'endWaits'>,
) {
  return createApprovals({ database, clock, endWaits });
}
