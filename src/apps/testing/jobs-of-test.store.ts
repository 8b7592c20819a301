/** What a test reads of its jobs. */
import type { Handle, Transaction } from '../../adapters/database/database.ts';

const never = Number.POSITIVE_INFINITY;

/** The jobs that are queued or wait, with the moments at which they are due. */
export async function listOpenJobs({ kysely }: Handle) {
  const jobs = kysely
    .selectFrom('jobs')
    .select(['id', 'due_at'])
    .where('status', 'in', ['queued', 'waiting'])
    .orderBy('due_at');
  return (await jobs.execute()).map(({ id, due_at }) => ({ id, dueAt: due_at ?? never }));
}

/** The deadlines of the open waits. */
export async function listDeadlines({ kysely }: Handle): Promise<number[]> {
  const waits = kysely.selectFrom('job_steps').select('due_at').where('status', '=', 'waiting');
  return (await waits.execute()).map(({ due_at }) => due_at ?? never);
}

export function findJob({ kysely }: Handle, id: string) {
  return kysely
    .selectFrom('jobs')
    .select(['status', 'output', 'error', 'attempt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
}

export function listStepsOfJob({ kysely }: Handle, id: string) {
  return kysely
    .selectFrom('job_steps')
    .select(['kind', 'name', 'status', 'result', 'error'])
    .where('job_id', '=', id)
    .orderBy('n')
    .execute();
}

/** The logs and the progress of a job. */
export function listReportsOfJob({ kysely }: Handle, id: string) {
  return kysely
    .selectFrom('job_events')
    .select(['type', 'data'])
    .where('job_id', '=', id)
    .where('type', 'in', ['log', 'progress'])
    .orderBy('epoch')
    .orderBy('n')
    .execute();
}

export function listMessagesOfJob({ kysely }: Handle, id: string) {
  return kysely
    .selectFrom('messages')
    .select(['role', 'content'])
    .where('job_id', '=', id)
    .orderBy('id')
    .execute();
}

/** Gives a file the id that its test knows. */
export async function renameFile({ kysely }: Transaction, id: string, to: string): Promise<void> {
  await kysely.updateTable('files').set({ id: to }).where('id', '=', id).execute();
}

/** The files that runs have made, the oldest first. */
export function listFilesOfRuns({ kysely }: Handle) {
  return kysely
    .selectFrom('files')
    .selectAll()
    .where('job_id', 'is not', null)
    .orderBy('id')
    .execute();
}
