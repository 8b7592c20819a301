/**
 * Which jobs' messages and steps a job has on record as its own: `resumes` of its row is the moment at which the first of
 * those was accepted, and their ids, the oldest first.
 */

interface Resuming {
  readonly id: string;
  readonly created_at: number;
  readonly resumes: string | null;
}

/** The jobs that a job goes on from, the oldest first, and the job itself. */
export function jobsOnRecord({ id, resumes }: Pick<Resuming, 'id' | 'resumes'>): string[] {
  return [...(resumes?.split(' ').slice(1) ?? []), id];
}

/** `resumes` of a job that goes on from this one. */
export function resumedFrom(job: Resuming): string {
  return [recordedSince(job), ...jobsOnRecord(job)].join(' ');
}

/** When the first of the jobs was accepted: where a replay's clock begins. */
export function recordedSince({ created_at, resumes }: Omit<Resuming, 'id'>): number {
  return resumes === null ? created_at : Number(resumes.split(' ')[0]);
}
