/** Every query on the steps of jobs. */
import type { Insertable, Selectable } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { statement } from '../database/statement.ts';
import type { JobStepsTable, StepStatus } from '../database/tables.ts';

export type StepRow = Selectable<JobStepsTable>;

export async function insertSteps(
  tx: Transaction,
  rows: readonly Insertable<JobStepsTable>[],
): Promise<void> {
  await tx.insert('job_steps', rows);
}

interface Ended {
  job_id: string;
  n: number;
  status: Exclude<StepStatus, 'active'>;
  error: string | null;
  message_id: string | null;
  memory: string | null;
  result: string | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  estimated: number;
  finished_at: number;
}

const end = statement<Ended>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: p('status'),
      error: p('error'),
      message_id: p('message_id'),
      memory: p('memory'),
      result: p('result'),
      prompt_tokens: p('prompt_tokens'),
      completion_tokens: p('completion_tokens'),
      reserved: 0,
      estimated: p('estimated'),
      finished_at: p('finished_at'),
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('status', '=', 'active'),
);

/** Ends active steps. Returns 1 for each that was active, else 0. */
export function endSteps(tx: Transaction, steps: readonly Ended[]): Promise<number[]> {
  return tx.changes(end, steps);
}

const again = statement<{ job_id: string; n: number; epoch: number; now: number }>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: 'active',
      epoch: p('epoch'),
      error: null,
      started_at: p('now'),
      finished_at: null,
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Makes an ended step active again, for this claim. */
export async function restartStep(
  tx: Transaction,
  step: { job_id: string; n: number; epoch: number; now: number },
): Promise<void> {
  await tx.each(again, [step]);
}

const ofGeneration = statement<{ job_id: string; generation: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .selectAll()
    .where('job_id', '=', p('job_id'))
    .where('generation', '=', p('generation'))
    .orderBy('n'),
);

/** The steps of a generation, in order. */
export function listStepsOfGeneration(
  db: Handle,
  jobId: string,
  generation: string,
): Promise<StepRow[]> {
  return db.all(ofGeneration, { job_id: jobId, generation });
}

const ofKey = statement<{ job_id: string; generation: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .selectAll()
    .where('job_id', '=', p('job_id'))
    .where('generation', '=', p('generation'))
    .orderBy('n')
    .limit(1),
);

/** The step with that key; undefined when it never began. */
export function findStepByKey(
  db: Handle,
  jobId: string,
  key: string,
): Promise<StepRow | undefined> {
  return db.first(ofKey, { job_id: jobId, generation: key });
}

const last = statement<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('n')
    .where('job_id', '=', p('job_id'))
    .orderBy('n', 'desc')
    .limit(1),
);

/** The number of a job's last step, 0 when it has none. */
export async function lastStepNumber(db: Handle, jobId: string): Promise<number> {
  return (await db.first(last, { job_id: jobId }))?.n ?? 0;
}

/** The columns that clients are shown. A result or a memory may have a megabyte, so neither is one of them. */
const listedColumns = [
  ...(['n', 'parent', 'generation', 'kind', 'name', 'turn', 'status', 'error'] as const),
  ...(['message_id', 'prompt_tokens', 'completion_tokens', 'started_at', 'finished_at'] as const),
] as const;
export type ListedStep = Pick<StepRow, (typeof listedColumns)[number]>;

/** A page of the steps of a job, in order, and how many there are in all. */
export async function listSteps(
  db: Handle,
  jobId: string,
  page: { limit: number; offset: number },
): Promise<{ steps: ListedStep[]; total: number }> {
  const query = db.kysely.selectFrom('job_steps').where('job_id', '=', jobId);
  const steps = await query
    .select(listedColumns)
    .orderBy('n')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return { steps, total: Number(row?.n ?? 0) };
}

const activeOfJob = statement<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .selectAll()
    .where('job_id', '=', p('job_id'))
    .where('status', '=', 'active')
    .orderBy('n'),
);

/** The active steps of a job. */
export function listActiveSteps(db: Handle, jobId: string): Promise<StepRow[]> {
  return db.all(activeOfJob, { job_id: jobId });
}

const activeOne = statement<{ job_id: string; n: number }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .selectAll()
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('status', '=', 'active'),
);

/** The step, if it is active. */
export function findActiveStep(db: Handle, jobId: string, n: number): Promise<StepRow | undefined> {
  return db.first(activeOne, { job_id: jobId, n });
}

const remove = statement<{ job_id: string }>()((db, p) =>
  db.deleteFrom('job_steps').where('job_id', '=', p('job_id')),
);

/** Deletes the steps of jobs. */
export async function deleteSteps(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  await tx.each(
    remove,
    jobIds.map((job_id) => ({ job_id })),
  );
}
