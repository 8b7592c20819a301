/** Files that the inputs of jobs name by their ids, wherever these stand. The input may have ids of other things. */
import type { Transaction } from '../../adapters/database/database.ts';
import { dayMs } from '../../kernel/clock.ts';
import { type FileRow, findFiles, prolongFiles } from './files.store.ts';

/** Ids of one input that count. */
const idsMax = 1_000;
/** In each id of a row, which is of version 7. Most inputs have none, and cost no more than this look. */
const inIds = /-7[0-9a-f]{3}-/;
const ids = /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

export interface FilesUse {
  readonly organization_id: string;
  /** The input, as JSON text. */
  readonly input: string;
  /** When the job may begin. */
  readonly run_at: number;
}

/** Keeps the files that an input names, from the moment at which the job may begin for as long as new ones. */
export async function keepNamedFiles(
  tx: Transaction,
  { organization_id, input, run_at }: FilesUse,
  retentionDays: number,
): Promise<void> {
  if (!inIds.test(input)) return;
  const named = new Set(
    input
      .matchAll(ids)
      .map(([id]) => id)
      .take(idsMax),
  );
  const rows = await findFiles(tx, organization_id, [...named]);
  const byEnd = Map.groupBy(rows, (row) => keptUntil(row, run_at, retentionDays));
  for (const [until, due] of byEnd) {
    if (until === null) continue;
    const dueIds = due.map(({ id }) => id);
    await prolongFiles(tx, organization_id, dueIds, until);
  }
}

/** Until when a use at a moment keeps a file; null where it is kept for so long, to the day, or a tenth of its retention. */
export function keptUntil(
  { expires_at, retention_days }: Pick<FileRow, 'expires_at' | 'retention_days'>,
  at: number,
  retentionDays: number,
): number | null {
  const retentionMs = (retention_days ?? retentionDays) * dayMs;
  const until = at + retentionMs;
  return expires_at > until - Math.min(dayMs, retentionMs / 10) ? null : until;
}
