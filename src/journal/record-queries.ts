/** The queries on what a job has on record. */
import { type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { allRows, firstRow, statement } from '../database/statement.ts';
import type { JobStepsTable, StepStatus } from '../database/tables.ts';

/** A step without its result, and the bytes of that. */
export type RecordedRow = Pick<
  Selectable<JobStepsTable>,
  | 'n'
  | 'generation'
  | 'kind'
  | 'name'
  | 'parent'
  | 'status'
  | 'turn'
  | 'digest'
  | 'attempt'
  | 'seen_to'
  | 'told'
> & { readonly bytes: number | null };

const recorded = allRows<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['n', 'generation', 'kind', 'name', 'parent', 'status', 'digest', 'attempt', 'seen_to'])
    .select(['told', 'turn'])
    .select(sql<number | null>`octet_length(result)`.as('bytes'))
    .where('job_id', '=', p('job_id'))
    .orderBy('n'),
);

/** All steps of a job, in order, without their results. */
export function listRecords(db: Handle, jobId: string): Promise<RecordedRow[]> {
  return recorded(db, { job_id: jobId });
}

/** What a step resulted in. */
export const findResult = firstRow<{ job_id: string; n: number }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['status', 'result', 'memory', 'error', 'due_at', 'finished_at', 'told'])
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

interface EndedRow {
  job_id: string;
  n: number;
  status: Exclude<StepStatus, 'active' | 'waiting'>;
  result: string | null;
  memory: string | null;
  error: string | null;
  attempt: number | null;
  seen_to: number | null;
  told: number;
  now: number;
}

const end = statement<EndedRow>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: p('status'),
      result: p('result'),
      memory: p('memory'),
      error: p('error'),
      attempt: p('attempt'),
      seen_to: p('seen_to'),
      told: p('told'),
      finished_at: p('now'),
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('status', '=', 'active'),
);

/** Ends an active step that code took. */
export function endRecord(tx: Transaction, row: EndedRow): Promise<void> {
  return tx.each(end, [row]);
}

const told = statement<{ job_id: string; n: number; told: number }>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({ told: p('told') })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Records the places of ends among those that the run was told. */
export function recordTold(
  tx: Transaction,
  ends: readonly { job_id: string; n: number; told: number }[],
): Promise<void> {
  return tx.each(told, ends);
}
