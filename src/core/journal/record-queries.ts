/** The queries on the recorded steps of a job. */

import { type Selectable, sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import { bytesOf } from '../../adapters/database/page-bytes.ts';
import { allRows, statement } from '../../adapters/database/statement.ts';
import type { JobStepsTable, StepStatus } from '../../adapters/database/tables.ts';
import { thoughtKinds } from './step-rows.ts';

/** A step without its result, and the bytes of that; `size` has those of all that a claim may read later. */
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
  | 'due_at'
> & { readonly bytes: number | null; readonly size: number };

interface PageOfRecords {
  job_id: string;
  after: number;
  limit: number;
}

/** A page of the steps of a job, in order, without their results. */
export const listRecords = allRows<PageOfRecords>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['n', 'generation', 'kind', 'name', 'parent', 'status', 'digest', 'attempt', 'seen_to'])
    .select(['told', 'turn', 'due_at'])
    .select(
      sql<number | null>`case when kind not in ('tool', 'guard') then octet_length(result) end`.as(
        'bytes',
      ),
    )
    .select(bytesOf('result', 'memory', 'error').as('size'))
    .where('job_id', '=', p('job_id'))
    .where('n', '>', p('after'))
    .orderBy('n')
    .limit(p('limit')),
);

interface PageOfResults {
  job_id: string;
  from: number;
  to: number;
  parent: number | null;
}

/** What steps of one part of a run, from one number to another, resulted in. */
export const listResults = allRows<PageOfResults>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['n', 'status', 'result', 'memory', 'error', 'finished_at', 'told'])
    .where('job_id', '=', p('job_id'))
    .where('n', '>=', p('from'))
    .where('n', '<=', p('to'))
    .where('kind', 'not in', [...thoughtKinds])
    .where(sql<boolean>`parent is not distinct from ${p('parent')}`),
);

export type ResultRow = Awaited<ReturnType<typeof listResults>>[number];

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

/** Records the places of ends in the order in which the run got them. */
export function recordPlaces(
  tx: Transaction,
  ends: readonly { job_id: string; n: number; told: number }[],
): Promise<void> {
  return tx.each(told, ends);
}

const held = statement<{ id: string; epoch: number }>()((db, p, dialect) => {
  const query = db
    .selectFrom('jobs')
    .select('id')
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active');
  return locked(dialect, query, (unlocked) => unlocked.forShare());
});

/** Whether a claim still holds its job. If it does, it does until the transaction ends. */
export async function isHeld(
  tx: Transaction,
  { id, epoch }: { readonly id: string; readonly epoch: number },
): Promise<boolean> {
  return (await tx.first(held, { id, epoch })) !== undefined;
}
