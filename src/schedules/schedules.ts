/**
 * Scheduled jobs: creating, changing and deleting them, and running one at once. Each of these is
 * checked like an execution of the skill. After a deletion or a disabling only the runs under way
 * go on, without a further attempt.
 *
 * Every transaction that has to do with scheduled jobs, the tick's and the one that ends a run
 * included, locks in this order, so that none wait for each other in a circle: the organization (where
 * a scheduled job is added), the scheduled job, the agent, the jobs, the counts, their runs, and how the last run went.
 */
import type { Agents } from '../agents/agents.ts';
import { type Cap, requireRoom } from '../database/caps.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { Accept, AcceptedJob } from '../jobs/accept.ts';
import { agentPaused } from '../jobs/execute.ts';
import { jobSummary } from '../jobs/job-views.ts';
import type { Jobs } from '../jobs/jobs.ts';
import { type Readiness, type ReadinessDeps, readinessOf, refusalView } from '../jobs/readiness.ts';
import { type Caller, requireScopes } from '../kernel/caller.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { invalid, notFound, PlatformError } from '../kernel/errors.ts';
import { isId, newId } from '../kernel/ids.ts';
import type { Skill, SkillRegistry } from '../skills/registry.ts';
import { type Cron, CronError, nextMatch, normalForm, parseCron } from './cron.ts';
import { missedSlots } from './run-due.ts';
import { runRequest } from './run-request.ts';
import {
  findJobsGoingOn,
  findScheduledJobOf,
  findTakenSlots,
  insertRuns,
  listRuns,
  markRunsUnwanted,
  newRun,
} from './runs.store.ts';
import {
  beginLastRuns,
  deleteScheduledJob,
  findScheduledJob,
  insertScheduledJob,
  listScheduledJobs,
  lockScheduledJob,
  type ScheduledJobRow,
  uniqueColumns,
  updateScheduledJob,
} from './schedules.store.ts';
import {
  createdScheduledJobView,
  scheduledJobSummary,
  scheduledJobView,
  scheduledRunView,
} from './views.ts';

/** The version of a skill when none is named (specification: Versioning). */
const defaultVersion = 'v1.0';

/** What a client may say of a scheduled job. */
export interface ScheduledJobFields {
  agent_id?: string;
  skill_category?: string;
  skill_name?: string;
  skill_version?: string;
  cron_expression?: string;
  input?: Readonly<Record<string, unknown>>;
  enabled?: boolean;
}

/** The same for a new one, with its required fields. */
export type NewScheduledJob = ScheduledJobFields &
  Required<
    Pick<ScheduledJobFields, 'agent_id' | 'skill_category' | 'skill_name' | 'cron_expression'>
  >;

export type Schedules = ReturnType<typeof createSchedules>;

export function createSchedules(parts: {
  database: Database;
  skills: SkillRegistry;
  agents: Agents;
  apiKeys: ReadinessDeps['apiKeys'];
  accept: Accept;
  jobs: Pick<Jobs, 'cancelWaiting'>;
  clock: Clock;
  /** Deletes what other slices keep of a scheduled job. */
  removeDependents(tx: Transaction, organizationId: string, id: string): Promise<void>;
  /** How many scheduled jobs an organization may have. */
  max?: number;
}) {
  const { database, skills, agents, apiKeys, accept, jobs, clock } = parts;
  const cap: Cap = {
    table: 'scheduled_jobs',
    owner: 'The organization',
    things: 'scheduled jobs',
    remedy: 'delete one first',
    max: parts.max ?? Number.POSITIVE_INFINITY,
  };

  /** The organization's scheduled job, or `404 not_found`. */
  async function find(organizationId: string, id: string): Promise<ScheduledJobRow> {
    const row = isId(id) ? await findScheduledJob(database.read, organizationId, id) : undefined;
    if (row === undefined) throw notFound('Scheduled job');
    return row;
  }

  async function lock(tx: Transaction, organizationId: string, id: string) {
    const row = isId(id) ? await lockScheduledJob(tx, organizationId, id) : undefined;
    if (row === undefined) throw notFound('Scheduled job');
    return row;
  }

  /** Throws `403` unless the caller may run the skill that the scheduled job names. */
  function requireScopesOf(caller: Caller, row: SkillNamed): void {
    const skill = skills.definition(row.skill_category, row.skill_version, row.skill_name);
    // The scopes of a vanished skill are unknown, but each skill requires its category.
    requireScopes(caller.scopes, skill?.requiredScopes ?? [row.skill_category]);
  }

  /** The skill, which the caller may run; else `404` or `403`. */
  function admitted(caller: Caller, row: SkillNamed): Skill {
    const skill = skills.active(row.skill_category, row.skill_version, row.skill_name);
    requireScopes(caller.scopes, skill.requiredScopes);
    return skill;
  }

  /** Cancels the queued runs of a scheduled job; its active runs get no further attempt. */
  async function stopRuns(tx: Transaction, row: ScheduledJobRow): Promise<void> {
    const jobIds = await findJobsGoingOn(tx, row.id);
    if (jobIds.length === 0) return;
    await jobs.cancelWaiting(tx, jobIds);
    await markRunsUnwanted(tx, row.id);
  }

  return {
    find,

    /** The scheduled job that a job is a run of; undefined when it was deleted. */
    async ofJob(organizationId: string, jobId: string): Promise<string | undefined> {
      const id = await findScheduledJobOf(database.read, jobId);
      // Its runs stay a while after it.
      if (id === undefined) return undefined;
      return (await findScheduledJob(database.read, organizationId, id))?.id;
    },

    /** The scheduled job is not deleted before the transaction ends. `404` when there is none. */
    lock,

    /** `404 not_found` and `403 insufficient_scope` for a change, before its body is judged. */
    async admitChange(caller: Caller, id: string): Promise<void> {
      requireScopesOf(caller, await find(caller.organizationId, id));
    },

    /** The next `count` matches of an expression. `400` as at creation. */
    preview(expression: string, count: number) {
      const cron = cronOf(expression);
      const nextRuns: string[] = [];
      let at = clock.now();
      while (nextRuns.length < count) {
        at = nextMatch(cron, at);
        nextRuns.push(timestamp(at));
      }
      return { cron_expression: expression, next_runs: nextRuns };
    },

    /** Creates one in the name of the caller's key. */
    async create(caller: Caller, fields: NewScheduledJob) {
      const { organizationId } = caller;
      const named = { ...fields, skill_version: fields.skill_version ?? defaultVersion };
      await agents.statusOf(organizationId, named.agent_id);
      const skill = admitted(caller, named);
      const cron = cronOf(fields.cron_expression);
      refuseInvalidInput(skill, fields.input ?? {});
      const now = clock.now();
      const row: ScheduledJobRow = {
        id: newId(),
        organization_id: organizationId,
        api_key_id: caller.keyId,
        agent_id: named.agent_id,
        skill_category: named.skill_category,
        skill_name: named.skill_name,
        skill_version: named.skill_version,
        ...cronColumns(fields.cron_expression),
        input: JSON.stringify(fields.input ?? {}),
        enabled: fields.enabled === false ? 0 : 1,
        next_run_at: nextMatch(cron, now),
        created_at: now,
        updated_at: now,
        ...neverRun,
      };
      await database.write(async (tx) => {
        await requireRoom(tx, organizationId, [cap]);
        await agents.lock(tx, row.organization_id, row.agent_id);
        if (!(await insertScheduledJob(tx, columnsOf(row)))) throw duplicate();
      });
      return createdScheduledJobView(row, now);
    },

    /** All of the organization, newest first. */
    async list(organizationId: string) {
      const now = clock.now();
      const rows = await listScheduledJobs(database.read, organizationId);
      return rows.map((row) => scheduledJobSummary(row, now));
    },

    /** As `list`, each with why its slots would be refused now; of their inputs nothing is judged. */
    async listWithRefusals(organizationId: string) {
      const now = clock.now();
      const rows = await listScheduledJobs(database.read, organizationId);
      const readiness = await readinessOf({ apiKeys, skills, agents }, rows);
      return rows.map((row, i) => ({
        ...scheduledJobSummary(row, now),
        refusal: refusalView(readiness[i] as Readiness),
      }));
    },

    async get(organizationId: string, id: string) {
      return scheduledJobView(await find(organizationId, id), clock.now());
    },

    /** As `get`, with why its slots would be refused now. */
    async getWithRefusal(organizationId: string, id: string) {
      const row = await find(organizationId, id);
      const deps = { apiKeys, skills, agents };
      const [readiness] = await readinessOf(deps, [row], ({ input }) => input);
      const refusal = refusalView(readiness as Readiness);
      return { ...scheduledJobView(row, clock.now()), refusal };
    },

    /** Changes what `fields` name; the key that made it stays the one that its runs are made by. */
    async update(caller: Caller, id: string, fields: ScheduledJobFields) {
      const { organizationId } = caller;
      return database.write(async (tx) => {
        const before = await lock(tx, organizationId, id);
        const now = clock.now();
        if (Object.keys(fields).length === 0) return scheduledJobView(before, now);
        const after = changed(before, fields, now);
        if (uniqueColumns.some((column) => after[column] !== before[column])) {
          await agents.lock(tx, organizationId, after.agent_id);
        }
        judgeChange(caller, before, after, fields);
        const next_run_at = planned(before, after, now);
        await recordGivenUp(tx, before, after, now);
        if (!(await updateScheduledJob(tx, columnsOf({ ...after, next_run_at }))))
          throw duplicate();
        if (before.enabled === 1 && after.enabled === 0) await stopRuns(tx, before);
        return scheduledJobView(await lock(tx, organizationId, id), now);
      });
    },

    async remove(organizationId: string, id: string): Promise<void> {
      await database.write(async (tx) => {
        const row = await lock(tx, organizationId, id);
        await stopRuns(tx, row);
        await parts.removeDependents(tx, organizationId, id);
        await deleteScheduledJob(tx, id);
      });
    },

    /** Runs it at once, enabled or not, in the name of the caller's key. */
    async runNow(caller: Caller, id: string) {
      const { organizationId } = caller;
      return database.write(async (tx) => {
        const row = await lock(tx, organizationId, id);
        const skill = admitted(caller, row);
        refuseInvalidInput(skill, JSON.parse(row.input));
        const { status } = await agents.lock(tx, organizationId, row.agent_id);
        if (status === 'paused') throw agentPaused(row.agent_id);
        const now = clock.now();
        const [acceptance] = await accept.within(tx, [runRequest(row, caller, skill)]);
        const { job } = acceptance as { job: AcceptedJob };
        const record = { slot: null, outcome: 'run_now', slots: 1, message: null } as const;
        await insertRuns(tx, [newRun(row, record, job.id, now)]);
        await beginLastRuns(tx, [{ scheduled_job_id: id, at: now, job_id: job.id }]);
        return jobSummary({ ...job, status: 'queued' });
      });
    },

    /** The outcomes of its due slots, newest first. */
    async runs(organizationId: string, id: string, page: { limit: number; offset: number }) {
      await find(organizationId, id);
      const { runs, total } = await listRuns(database.read, id, page);
      return { runs: runs.map(scheduledRunView), total };
    },
  };

  function judgeChange(
    caller: Caller,
    before: ScheduledJobRow,
    after: ScheduledJobRow,
    fields: ScheduledJobFields,
  ): void {
    const { skill_category, skill_name, skill_version, input } = fields;
    const changesSkill = skill_category ?? skill_name ?? skill_version;
    const skill =
      changesSkill === undefined && input === undefined
        ? null
        : skills.active(after.skill_category, after.skill_version, after.skill_name);
    requireScopesOf(caller, before);
    if (skill !== null) requireScopes(caller.scopes, skill.requiredScopes);
    if (fields.cron_expression !== undefined) cronOf(fields.cron_expression);
    if (skill !== null) refuseInvalidInput(skill, JSON.parse(after.input));
  }

  /** Records as missed the slots that are due and that a change keeps the tick from running. */
  async function recordGivenUp(
    tx: Transaction,
    before: ScheduledJobRow,
    after: ScheduledJobRow,
    now: number,
  ): Promise<void> {
    if (before.enabled === 0 || before.next_run_at > now) return;
    const isReplanned = after.cron_key !== before.cron_key;
    if (!isReplanned && after.enabled === 1) return;
    const taken = await findTakenSlots(tx, [before.id], now);
    const schedule = {
      cron: parseCron(before.cron_expression),
      dueAt: before.next_run_at,
      taken: new Set(taken.map(({ slot }) => slot)),
    };
    const why = isReplanned
      ? 'the cron expression was changed before it could run'
      : 'the scheduled job was disabled before it could run';
    const records = missedSlots(schedule, why, now);
    await insertRuns(
      tx,
      records.map((record) => newRun(before, record, null, now)),
    );
  }
}

type SkillNamed = Pick<ScheduledJobRow, 'skill_category' | 'skill_name' | 'skill_version'>;

const neverRun = { last_run_at: null, last_run_status: null, last_run_job_id: null };

/** The columns of a scheduled job, without those of its last run. */
function columnsOf(row: ScheduledJobRow) {
  const { last_run_at: _, last_run_status: __, last_run_job_id: ___, ...columns } = row;
  return columns;
}

/** The parsed expression, or `400 validation_error`. */
function cronOf(expression: string): Cron {
  try {
    return parseCron(expression);
  } catch (error) {
    if (error instanceof CronError) throw invalid('cron_expression', error.message);
    throw error;
  }
}

function cronColumns(expression: string) {
  return { cron_expression: expression, cron_key: normalForm(expression) };
}

/** What a change makes of a scheduled job, but for its next slot: it has not been judged yet. */
function changed(
  before: ScheduledJobRow,
  fields: ScheduledJobFields,
  now: number,
): ScheduledJobRow {
  const { input, enabled, cron_expression: expression, ...named } = fields;
  return {
    ...before,
    ...named,
    ...(expression === undefined ? {} : cronColumns(expression)),
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    ...(enabled === undefined ? {} : { enabled: enabled ? 1 : 0 }),
    updated_at: Math.max(now, before.updated_at + 1),
  };
}

/** The next slot after a change; it stays when neither the expression changes nor slots come anew. */
function planned(before: ScheduledJobRow, after: ScheduledJobRow, now: number): number {
  const isResumed = before.enabled === 0 && after.enabled === 1;
  if (after.cron_key === before.cron_key && !isResumed) return before.next_run_at;
  return nextMatch(parseCron(after.cron_expression), now);
}

/** Throws `400 validation_error` for an input that the skill's schema refuses, naming its fields. */
function refuseInvalidInput(skill: Skill, input: unknown): void {
  const issues = skill.inputIssues(input);
  if (issues === null) return;
  const details = issues.map(({ field, issue }) => ({
    field: field === 'body' ? 'input' : `input.${field}`,
    issue,
  }));
  const [first] = details;
  const what = first === undefined ? '' : `: ${first.field} ${first.issue}`;
  throw new PlatformError('validation_error', `The input does not fit the skill's schema${what}`, {
    details,
  });
}

function duplicate(): PlatformError {
  return new PlatformError(
    'conflict',
    'There is a scheduled job of this agent, skill and cron expression already',
  );
}
