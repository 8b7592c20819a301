/**
 * Scheduled jobs: creating, changing and deleting them, and running one at once. Whatever makes a
 * skill run is judged as an execution of it would be. After a deletion or a disabling nothing runs
 * any more but what is under way. Every verb locks the scheduled job first and how its last run went
 * last, as the tick does, so that neither waits in a circle with the end of a run.
 */
import type { Agents } from '../agents/agents.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { Accept, AcceptedJob } from '../jobs/accept.ts';
import { agentPaused } from '../jobs/execute.ts';
import { type Jobs, listedJob } from '../jobs/jobs.ts';
import { type Caller, requireScopes } from '../kernel/caller.ts';
import type { Clock } from '../kernel/clock.ts';
import { invalid, notFound, PlatformError } from '../kernel/errors.ts';
import { isId, newId } from '../kernel/ids.ts';
import type { Skill, SkillRegistry } from '../skills/registry.ts';
import { type Cron, CronError, nextMatch, normalForm, parseCron } from './cron.ts';
import { runRequest } from './run-request.ts';
import { insertRuns, listRuns, markRunsUnwanted } from './runs.store.ts';
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
import { createdScheduledJob, listedScheduledJob, shownRun, shownScheduledJob } from './shown.ts';

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

/** The same for a new one, with what it has to say. */
export type NewScheduledJob = ScheduledJobFields &
  Required<
    Pick<ScheduledJobFields, 'agent_id' | 'skill_category' | 'skill_name' | 'cron_expression'>
  >;

export type Schedules = ReturnType<typeof createSchedules>;

export function createSchedules(parts: {
  database: Database;
  skills: SkillRegistry;
  agents: Agents;
  accept: Accept;
  jobs: Pick<Jobs, 'cancelWaiting'>;
  clock: Clock;
}) {
  const { database, skills, agents, accept, jobs, clock } = parts;

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
    // What it required before it vanished was its category at least.
    requireScopes(caller.scopes, skill?.requiredScopes ?? [row.skill_category]);
  }

  /** The skill as the caller may run it on this input; else `404`, `403` or `400`. */
  function runnable(caller: Caller, row: SkillNamed, input: unknown): Skill {
    const skill = skills.active(row.skill_category, row.skill_version, row.skill_name);
    requireScopes(caller.scopes, skill.requiredScopes);
    refuseInvalidInput(skill, input);
    return skill;
  }

  /** Ends what waits of a scheduled job's runs, and lets what is under way have no further attempt. */
  async function stopRuns(tx: Transaction, row: ScheduledJobRow): Promise<void> {
    const jobIds = await markRunsUnwanted(tx, row.id);
    await jobs.cancelWaiting(tx, jobIds);
  }

  return {
    find,

    /** `404 not_found` and `403 insufficient_scope` for a change, before its body is judged. */
    async admitChange(caller: Caller, id: string): Promise<void> {
      requireScopesOf(caller, await find(caller.organizationId, id));
    },

    /** Creates one in the name of the caller's key. */
    async create(caller: Caller, fields: NewScheduledJob) {
      const cron = cronOf(fields.cron_expression);
      const now = clock.now();
      const row: ScheduledJobRow = {
        id: newId(),
        organization_id: caller.organizationId,
        api_key_id: caller.keyId,
        agent_id: fields.agent_id,
        skill_category: fields.skill_category,
        skill_name: fields.skill_name,
        skill_version: fields.skill_version ?? defaultVersion,
        ...cronColumns(fields.cron_expression),
        input: JSON.stringify(fields.input ?? {}),
        enabled: fields.enabled === false ? 0 : 1,
        next_run_at: nextMatch(cron, now),
        created_at: now,
        updated_at: now,
        ...neverRun,
      };
      await agents.statusOf(row.organization_id, row.agent_id);
      runnable(caller, row, fields.input ?? {});
      await database.write(async (tx) => {
        await agents.hold(tx, row.organization_id, row.agent_id);
        if (!(await insertScheduledJob(tx, columnsOf(row)))) throw duplicate();
      });
      return createdScheduledJob(row, now);
    },

    /** All of the organization, newest first. */
    async list(organizationId: string) {
      const now = clock.now();
      const rows = await listScheduledJobs(database.read, organizationId);
      return rows.map((row) => listedScheduledJob(row, now));
    },

    async get(organizationId: string, id: string) {
      return shownScheduledJob(await find(organizationId, id), clock.now());
    },

    /** Changes what `fields` name; the key that made it stays the one that its runs are made by. */
    async update(caller: Caller, id: string, fields: ScheduledJobFields) {
      const { organizationId } = caller;
      if (fields.cron_expression !== undefined) cronOf(fields.cron_expression);
      return database.write(async (tx) => {
        const before = await lock(tx, organizationId, id);
        const now = clock.now();
        if (Object.keys(fields).length === 0) return shownScheduledJob(before, now);
        const after = changed(before, fields, now);
        if (uniqueColumns.some((column) => after[column] !== before[column])) {
          await agents.hold(tx, organizationId, after.agent_id);
        }
        judgeChange(caller, before, after, fields);
        if (!(await updateScheduledJob(tx, columnsOf(after)))) throw duplicate();
        if (before.enabled === 1 && after.enabled === 0) await stopRuns(tx, before);
        return shownScheduledJob(await lock(tx, organizationId, id), now);
      });
    },

    async remove(organizationId: string, id: string): Promise<void> {
      await database.write(async (tx) => {
        const row = await lock(tx, organizationId, id);
        await stopRuns(tx, row);
        await deleteScheduledJob(tx, id);
      });
    },

    /** Runs it at once, enabled or not, in the name of the caller's key. */
    async runNow(caller: Caller, id: string) {
      const { organizationId } = caller;
      return database.write(async (tx) => {
        const row = await lock(tx, organizationId, id);
        const skill = runnable(caller, row, JSON.parse(row.input));
        const status = await agents.hold(tx, organizationId, row.agent_id);
        if (status === 'paused') throw agentPaused(row.agent_id);
        const now = clock.now();
        const [acceptance] = await accept.within(tx, [runRequest(row, caller, skill)]);
        const { job } = acceptance as { job: AcceptedJob };
        await insertRuns(tx, [
          {
            id: newId(),
            organization_id: organizationId,
            scheduled_job_id: id,
            slot: null,
            scheduled_for: now,
            outcome: 'run_now',
            slots: 1,
            message: null,
            job_id: job.id,
            unwanted: 0,
            created_at: now,
          },
        ]);
        await beginLastRuns(tx, [{ scheduled_job_id: id, at: now, job_id: job.id }]);
        return listedJob({ ...job, status: 'queued' });
      });
    },

    /** What became of its slots, newest first. */
    async runs(organizationId: string, id: string, page: { limit: number; offset: number }) {
      await find(organizationId, id);
      const { runs, total } = await listRuns(database.read, id, page);
      return { runs: runs.map(shownRun), total };
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
    if (skill === null) return;
    requireScopes(caller.scopes, skill.requiredScopes);
    refuseInvalidInput(skill, JSON.parse(after.input));
  }
}

type SkillNamed = Pick<ScheduledJobRow, 'skill_category' | 'skill_name' | 'skill_version'>;

const neverRun = { last_run_at: null, last_run_status: null, last_run_job_id: null };

/** What is stored of a scheduled job itself, apart from its last run. */
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

function changed(before: ScheduledJobRow, fields: ScheduledJobFields, now: number) {
  const { input, enabled, cron_expression: expression, ...named } = fields;
  const after: ScheduledJobRow = {
    ...before,
    ...named,
    ...(expression === undefined ? {} : cronColumns(expression)),
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    ...(enabled === undefined ? {} : { enabled: enabled ? 1 : 0 }),
    updated_at: Math.max(now, before.updated_at + 1),
  };
  const isResumed = before.enabled === 0 && after.enabled === 1;
  if (after.cron_key !== before.cron_key || isResumed) {
    after.next_run_at = nextMatch(parseCron(after.cron_expression), now);
  }
  return after;
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
