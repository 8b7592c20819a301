/**
 * The summaries of a conversation that failed. A failed summary is paid for, and each job of a long conversation needs
 * one, so after each failure in a row the next try is later, across jobs and attempts. Another version of the agent is
 * tried at once, because its model or its settings may be others.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { findSummaryTries, lockSummaryTries, setSummaryTries } from './summary-tries.store.ts';

const firstPauseMs = 60_000;
const pauseFactor = 4;
const pauseMaxMs = 30 * 86_400_000;

interface SummaryOf {
  readonly conversationId: string;
  readonly agentVersion: number;
}

/** Whether a summary may be tried now. */
export async function maySummarize(
  db: Handle,
  { conversationId, agentVersion }: SummaryOf,
  now: number,
): Promise<boolean> {
  const row = await findSummaryTries(db, conversationId);
  if (row === undefined || row.next_summary_at === null) return true;
  return row.failed_summaries_version !== agentVersion || now >= row.next_summary_at;
}

export async function noteFailedSummary(
  tx: Transaction,
  { conversationId, agentVersion }: SummaryOf,
  now: number,
): Promise<void> {
  const before = await lockSummaryTries(tx, conversationId);
  const isInRow = before?.failed_summaries_version === agentVersion;
  const failed = 1 + (isInRow ? before.failed_summaries : 0);
  await setSummaryTries(tx, conversationId, {
    failed_summaries: failed,
    next_summary_at: now + pauseAfter(failed),
    failed_summaries_version: agentVersion,
  });
}

/** Notes that a summary has succeeded. */
export function noteSummary(tx: Transaction, conversationId: string): Promise<void> {
  return setSummaryTries(tx, conversationId, {
    failed_summaries: 0,
    next_summary_at: null,
    failed_summaries_version: null,
  });
}

/** Milliseconds until the next try after so many failures in a row: a minute, four, sixteen, 30 days at most. */
export function pauseAfter(failed: number): number {
  return Math.min(pauseMaxMs, firstPauseMs * pauseFactor ** (failed - 1));
}
