/**
 * The summaries of a conversation that failed. A failed summary is paid for, and each job of a long conversation needs
 * one, so after each failure in a row the next try is later, across jobs and attempts. Another version of the agent is
 * tried at once, because its model or its settings may be others.
 */
import type { Handle, Transaction } from '../database/database.ts';
import { locked } from '../database/locked.ts';

const firstPauseMs = 60_000;
const pauseFactor = 4;
const pauseMaxMs = 30 * 86_400_000;

interface SummaryOf {
  readonly conversationId: string;
  readonly agentVersion: number;
}

/** Whether a summary may be tried now. */
export async function maySummarize(
  { kysely }: Handle,
  { conversationId, agentVersion }: SummaryOf,
  now: number,
): Promise<boolean> {
  const row = await kysely
    .selectFrom('conversations')
    .select(['next_summary_at', 'failed_summaries_version'])
    .where('id', '=', conversationId)
    .executeTakeFirst();
  if (row === undefined || row.next_summary_at === null) return true;
  return row.failed_summaries_version !== agentVersion || now >= row.next_summary_at;
}

export async function noteFailedSummary(
  tx: Transaction,
  { conversationId, agentVersion }: SummaryOf,
  now: number,
): Promise<void> {
  const query = tx.kysely
    .selectFrom('conversations')
    .select(['failed_summaries', 'failed_summaries_version'])
    .where('id', '=', conversationId);
  const before = await locked(tx.dialect, query).executeTakeFirst();
  const isInRow = before?.failed_summaries_version === agentVersion;
  const failed = 1 + (isInRow ? before.failed_summaries : 0);
  await change(tx, conversationId, {
    failed_summaries: failed,
    next_summary_at: now + pauseAfter(failed),
    failed_summaries_version: agentVersion,
  });
}

/** Notes that a summary has succeeded. */
export function noteSummary(tx: Transaction, conversationId: string): Promise<void> {
  return change(tx, conversationId, {
    failed_summaries: 0,
    next_summary_at: null,
    failed_summaries_version: null,
  });
}

/** Milliseconds until the next try after so many failures in a row: a minute, four, sixteen, 30 days at most. */
export function pauseAfter(failed: number): number {
  return Math.min(pauseMaxMs, firstPauseMs * pauseFactor ** (failed - 1));
}

async function change(
  tx: Transaction,
  id: string,
  values: {
    readonly failed_summaries: number;
    readonly next_summary_at: number | null;
    readonly failed_summaries_version: number | null;
  },
): Promise<void> {
  await tx.kysely.updateTable('conversations').set(values).where('id', '=', id).execute();
}
