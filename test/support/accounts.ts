/**
 * Accepted = recorded, each once: holds what clients were told against what the database, the outside
 * effects of skills and a receiver of webhooks show of it. Judging is pure; reading is beside it.
 */
import { existsSync, readFileSync } from 'node:fs';

/** What the database has of one job. */
export interface RecordedJob {
  readonly id: string;
  readonly status: string;
  /** Claims. */
  readonly epoch: number;
  readonly trigger_type: string;
  readonly created_at: number;
  readonly finished_at: number | null;
  readonly error: string | null;
  /** How many events say that it completed, and how many that it failed. */
  readonly completed_events: number;
  readonly failed_events: number;
  readonly user_messages: number;
  readonly assistant_messages: number;
}

/** A line that the skill `staged/effect` wrote. */
export interface Effect {
  readonly word: string;
  readonly jobId: string;
  readonly attempt?: number;
  /** The process whose executor ran it. */
  readonly pid?: number;
}

/** The outcome of every accepted job. Each list names jobs and should be empty. */
export interface Account {
  readonly accepted: number;
  /** Of these, ended and on record exactly once. */
  readonly recorded: number;
  /** Accepted, and not in the database. */
  readonly lost: readonly string[];
  /** In the database without having ended. */
  readonly unended: readonly string[];
  /** With more than one end: events, answers, or jobs for one execution that was asked for. */
  readonly doubled: readonly string[];
  /** Ended, and an event or a message that belongs to its end is missing. */
  readonly untold: readonly string[];
  /** In the database, and no client was told. */
  readonly unknown: readonly string[];
  /** Run more often than it was claimed: a worker ran it without a claim. */
  readonly runUnclaimed: readonly string[];
  /** Failed, with the error. */
  readonly failed: readonly string[];
  /** Run to the end more than once, which a claim that is lost allows (effects outside are at least once). */
  readonly repeated: number;
  /** From being accepted to the end, by the clock of the database. */
  readonly longestDelayMs: number;
}

/** Judges all jobs of one organization that came by the API. */
export function account(facts: {
  readonly accepted: Iterable<string>;
  readonly jobs: readonly RecordedJob[];
  readonly effects?: readonly Effect[];
}): Account {
  const accepted = new Set(facts.accepted);
  const jobs = facts.jobs.filter(({ trigger_type }) => trigger_type === 'api');
  const known = new Set(jobs.map(({ id }) => id));
  const effects = facts.effects ?? [];
  const countsOf = (word: string) =>
    new Map(
      [...Map.groupBy(effects, ({ jobId }) => jobId)].map(([id, lines]) => [
        id,
        lines.filter((line) => line.word === word).length,
      ]),
    );
  const begins = countsOf('begin');
  const ends = countsOf('end');
  const idsWhere = (isIt: (job: RecordedJob) => boolean) => jobs.filter(isIt).map(({ id }) => id);

  const isEnded = ({ status }: RecordedJob) =>
    ['completed', 'failed', 'cancelled'].includes(status);
  const isDoubled = (job: RecordedJob) =>
    job.completed_events + job.failed_events > 1 ||
    job.user_messages > 1 ||
    job.assistant_messages > 1 ||
    (!isEnded(job) && job.completed_events + job.failed_events > 0);
  const isUntold = (job: RecordedJob) =>
    job.user_messages < 1 ||
    (job.status === 'completed' && (job.completed_events < 1 || job.assistant_messages < 1)) ||
    (job.status === 'failed' && job.failed_events < 1);
  const good = new Set(
    jobs.filter((job) => isEnded(job) && !isDoubled(job) && !isUntold(job)).map(({ id }) => id),
  );

  return {
    accepted: accepted.size,
    recorded: [...accepted].filter((id) => good.has(id)).length,
    lost: [...accepted].filter((id) => !known.has(id)),
    unended: idsWhere((job) => !isEnded(job)),
    doubled: idsWhere(isDoubled),
    untold: idsWhere(isUntold),
    unknown: idsWhere(({ id }) => !accepted.has(id)),
    runUnclaimed: idsWhere(({ id, epoch }) => (begins.get(id) ?? 0) > epoch),
    failed: jobs
      .filter(({ status }) => status !== 'completed' && status !== 'queued' && status !== 'active')
      .map(({ id, status, error }) => `${id} ${status}: ${error}`),
    repeated: jobs.filter(({ id }) => (ends.get(id) ?? 0) > 1).length,
    longestDelayMs: Math.max(
      0,
      ...jobs.map(({ created_at, finished_at }) => (finished_at ?? created_at) - created_at),
    ),
  };
}

/** What an account is compared to when all is well, besides its numbers. */
export const nothingAmiss = {
  lost: [],
  unended: [],
  doubled: [],
  untold: [],
  unknown: [],
  runUnclaimed: [],
  failed: [],
} as const;

type Sql = (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>;

/** Everything on record of an organization's jobs. */
export async function readJobs(sql: Sql, organization: string): Promise<RecordedJob[]> {
  const rows = await sql(
    `WITH ends AS (
       SELECT data::json ->> 'job_id' AS job_id,
         count(*) FILTER (WHERE type = 'skill.completed')::int AS completed,
         count(*) FILTER (WHERE type = 'skill.failed')::int AS failed
       FROM events WHERE type IN ('skill.completed', 'skill.failed') GROUP BY 1
     ), said AS (
       SELECT job_id,
         count(*) FILTER (WHERE role = 'user')::int AS by_user,
         count(*) FILTER (WHERE role = 'assistant')::int AS by_assistant
       FROM messages GROUP BY 1
     )
     SELECT id, status, epoch::int, trigger_type, created_at::float8, finished_at::float8, error,
       coalesce(ends.completed, 0) AS completed_events,
       coalesce(ends.failed, 0) AS failed_events,
       coalesce(said.by_user, 0) AS user_messages,
       coalesce(said.by_assistant, 0) AS assistant_messages
     FROM jobs
     LEFT JOIN ends ON ends.job_id = jobs.id
     LEFT JOIN said ON said.job_id = jobs.id
     WHERE organization_id = $1
     ORDER BY id`,
    [organization],
  );
  return rows as unknown as RecordedJob[];
}

/** What the skill `staged/effect` has written to its file so far. */
export function readEffects(file: string): Effect[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  return lines.map((line) => {
    const [word = '', jobId = '', attempt, pid] = line.split(' ');
    return { word, jobId, attempt: Number(attempt), pid: Number(pid) };
  });
}

/** One run for each minute: which scheduled jobs have a minute twice, or one between two others missing. */
export async function minutesAmiss(sql: Sql): Promise<string[]> {
  const rows = await sql(
    `SELECT scheduled_job_id AS id, slot::float8 AS slot, job_id FROM scheduled_runs
     WHERE slot IS NOT NULL ORDER BY scheduled_job_id, slot`,
  );
  const amiss: string[] = [];
  for (const [id, runs] of Map.groupBy(rows, (row) => String(row['id']))) {
    const slots = runs.map(({ slot }) => Number(slot));
    slots.forEach((slot, i) => {
      const before = slots[i - 1];
      if (before !== undefined && slot - before !== 60_000) {
        amiss.push(
          `${id}: ${new Date(before).toISOString()}, then ${new Date(slot).toISOString()}`,
        );
      }
    });
  }
  const jobs = await sql(
    `SELECT id FROM jobs WHERE trigger_type = 'scheduled'
     AND id NOT IN (SELECT job_id FROM scheduled_runs WHERE job_id IS NOT NULL)`,
  );
  return [...amiss, ...jobs.map(({ id }) => `job ${id} belongs to no slot`)];
}

/** Holds what a receiver got of `skill.completed` against the jobs that completed: ids that are amiss. */
export function deliveriesAmiss(
  received: readonly { readonly json: { id: string; event: string; data: { job_id: string } } }[],
  completed: readonly string[],
): string[] {
  const told = received.filter(({ json }) => json.event === 'skill.completed');
  const byJob = Map.groupBy(told, ({ json }) => json.data.job_id);
  const events = (jobId: string) =>
    new Set((byJob.get(jobId) ?? []).map(({ json }) => json.id)).size;
  return [
    ...completed.filter((id) => events(id) !== 1).map((id) => `${id} in ${events(id)} events`),
    ...[...byJob.keys()]
      .filter((id) => !completed.includes(id))
      .map((id) => `${id} has not completed`),
  ];
}
