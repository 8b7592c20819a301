/**
 * Scheduled jobs: creates, lists and deletes them, and runs one at once; `changes.ts` changes
 * them. Each verb needs the same permissions as a run of the skill. After a deletion or a disabling, active attempts
 * finish and are not retried.
 *
 * Every transaction on scheduled jobs, including the tick and the end of a run, locks in this order, so that
 * none deadlock: the organization (if a scheduled job is added), the scheduled job, the agent, the jobs, the counts,
 * their runs, and the last run.
 */

import { requireRoom } from '../../adapters/database/caps.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { deleteAll } from '../../adapters/database/in-batches.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Context } from '../../core/context/context.ts';
import type { Acceptance, Acceptor } from '../../core/jobs/accept.ts';
import {
  agentPaused,
  type Executed,
  executedOf,
  refuseInvalid,
  replayOf,
  requireFileScope,
} from '../../core/jobs/execute.ts';
import { keyOfCaller } from '../../core/jobs/idempotency.ts';
import { jobSummary } from '../../core/jobs/job-views.ts';
import { refusalsOf, requireSkillScopes, type StarterSlices } from '../../core/jobs/readiness.ts';
import type { Settler } from '../../core/jobs/settle.ts';
import { findScheduledJobOf } from '../../core/scheduled-runs/scheduled-runs.ts';
import {
  lookupOf,
  type Skill,
  type SkillColumns,
  type SkillRegistry,
} from '../../core/skills/registry.ts';
import { removeBudgetOfScheduledJob } from '../../core/usage/budgets.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { type Clock, dayMs } from '../../kernel/clock.ts';
import { idFloor, newId } from '../../kernel/ids.ts';
import { changeScheduledJob } from './changes.ts';
import { nextRunsOf, timetableColumns, timetableOf } from './cron-fields.ts';
import { beginLastRuns } from './last-runs.store.ts';
import { duplicate, lockRow, readScheduledJob, stopRuns } from './lookup.ts';
import { runRequest } from './run-request.ts';
import { deleteRuns, insertRuns, listRuns, newRun } from './runs.store.ts';
import type { NewScheduledJob, ScheduledJobChanges } from './schedules.schemas.ts';
import {
  deleteScheduledJob,
  findScheduledJob,
  insertScheduledJob,
  listScheduledJobs,
  type ScheduledJobRow,
} from './schedules.store.ts';
import { nextSlot } from './timetable.ts';
import {
  createdScheduledJobView,
  scheduledJobSummary,
  scheduledJobView,
  scheduledRunView,
} from './views.ts';

/** The version of a skill when none is named (specification: Versioning). */
const defaultVersion = 'v1.0';

/** The parts of the platform that scheduled jobs use. */
interface SchedulesParts extends StarterSlices {
  readonly acceptor: Acceptor;
  readonly settler: Settler;
}

export class Schedules {
  readonly context: Context;
  readonly parts: SchedulesParts;

  constructor(context: Context, parts: SchedulesParts) {
    this.context = context;
    this.parts = parts;
  }

  /** The organization's scheduled job, or `404 not_found`. */
  find(organizationId: string, id: string): Promise<ScheduledJobRow> {
    return readScheduledJob(this.context.database.read, organizationId, id);
  }

  /** Like `find`, and locks the row until the transaction ends. */
  lock(tx: Transaction, organizationId: string, id: string): Promise<ScheduledJobRow> {
    return lockRow(tx, organizationId, id);
  }

  /** The scheduled job whose run a job is; undefined when it was deleted. */
  async ofJob(organizationId: string, jobId: string): Promise<string | undefined> {
    const { read } = this.context.database;
    const id = await findScheduledJobOf(read, jobId);
    // Rows of runs outlive their deleted scheduled job until retention deletes them.
    if (id === undefined) return undefined;
    return (await findScheduledJob(read, organizationId, id))?.id;
  }

  /** `404 not_found` and `403 insufficient_scope` for a change, before its body is checked. */
  async admitChange(caller: Caller, id: string): Promise<void> {
    requireSkillScopes(this.parts.skills, caller, await this.find(caller.organizationId, id));
  }

  /** The next `count` slots of an expression in a time zone. `400` as at creation. */
  preview(expression: string, zone: string, count: number) {
    return nextRunsOf(expression, zone, count, this.context.clock.now());
  }

  /** Creates one in the name of the caller's key. */
  async create(caller: Caller, fields: NewScheduledJob) {
    const { organizationId } = caller;
    const { enabled = true, input = {}, cron_expression, timezone = null, ...given } = fields;
    const named = { skill_version: defaultVersion, ...given };
    await this.parts.agents.stateOf(organizationId, named.agent_id);
    const skill = admittedSkill(this.parts.skills, caller, named);
    const columns = timetableColumns(cron_expression, timezone);
    const timetable = timetableOf(columns);
    requireFileScope(this.context.config, caller, skill, input);
    refuseInvalid(skill, input, 'input');
    const now = this.context.clock.now();
    const row: ScheduledJobRow = {
      id: newId(),
      organization_id: organizationId,
      api_key_id: caller.keyId,
      priority: null,
      ...named,
      ...columns,
      input: JSON.stringify(input),
      enabled: Number(enabled),
      next_run_at: nextSlot(timetable, now),
      created_at: now,
      updated_at: now,
      last_run_at: null,
      last_run_status: null,
      last_run_job_id: null,
    };
    await this.context.database.write(async (tx) => {
      const cap = {
        table: 'scheduled_jobs',
        things: 'scheduled jobs',
        max: this.context.config.scheduledJobsMax,
      } as const;
      await requireRoom(tx, organizationId, [cap]);
      await this.parts.agents.lock(tx, organizationId, row.agent_id);
      if (!(await insertScheduledJob(tx, row))) throw duplicate();
    });
    return createdScheduledJobView(row, now);
  }

  /** All of the organization, newest first; on request with the refusal that a slot would get now, without input checks. */
  async list(organizationId: string, include?: 'refusal') {
    const rows = await listScheduledJobs(this.context.database.read, organizationId);
    const refusals = include === undefined ? [] : await refusalsOf(this.parts, rows);
    const now = this.context.clock.now();
    return rows.map((row, i) => ({ ...scheduledJobSummary(row, now), ...refusals[i] }));
  }

  /** One scheduled job; on request with the refusal that its slots would get now. */
  async get(organizationId: string, id: string, include?: 'refusal') {
    const row = await this.find(organizationId, id);
    const [refusal] =
      include === undefined ? [] : await refusalsOf(this.parts, [row], ({ input }) => input);
    return { ...scheduledJobView(row, this.context.clock.now()), ...refusal };
  }

  /** Changes the given fields. Runs use the key of the last change of skill, agent or input (`keyOfRuns`). */
  async update(caller: Caller, id: string, fields: ScheduledJobChanges) {
    const row = await changeScheduledJob(this, caller, id, fields);
    return scheduledJobView(row, this.context.clock.now());
  }

  /** Deletes one, with its budget; throws `403` where the caller may not delete that. */
  async remove(caller: Caller, id: string): Promise<void> {
    await this.context.database.write(async (tx) => {
      await lockRow(tx, caller.organizationId, id);
      await stopRuns(tx, this.parts.settler, id);
      await removeBudgetOfScheduledJob(tx, caller, id);
      await deleteScheduledJob(tx, id);
    });
  }

  /** Runs it at once, enabled or not, in the name of the caller's key; a repeat with `key` gets the job of the first. */
  runNow(caller: Caller, id: string, key?: string) {
    const { organizationId } = caller;
    return this.context.database.write(async (tx) => {
      const row = await lockRow(tx, organizationId, id);
      const skill = admittedSkill(this.parts.skills, caller, row);
      const input: unknown = JSON.parse(row.input);
      requireFileScope(this.context.config, caller, skill, input);
      const now = this.context.clock.now();
      const idempotency = keyOfCaller(caller, key, ['run', row.id]);
      // The lock of the row lets one repeat after the other look.
      const earlier = idempotency && (await replayOf(tx, now, idempotency));
      if (earlier !== undefined) return startedRun(executedOf(earlier));
      refuseInvalid(skill, input, 'input');
      const { status, priority } = await this.parts.agents.lock(tx, organizationId, row.agent_id);
      if (status === 'paused') throw agentPaused(row.agent_id);
      const request = runRequest(row, caller, skill, priority, idempotency);
      const [acceptance] = await this.parts.acceptor.acceptWithin(tx, [request]);
      const accepted = executedOf(acceptance as Acceptance);
      const { job } = accepted;
      const record = { slot: null, outcome: 'run_now', slots: 1, message: null } as const;
      await insertRuns(tx, [newRun(row, record, job.id, now)]);
      await beginLastRuns(tx, [{ scheduled_job_id: id, at: now, job_id: job.id }]);
      return startedRun(accepted);
    });
  }

  /** The outcomes of its due slots, newest first. */
  async runs(organizationId: string, id: string, page: PageAsked) {
    await this.find(organizationId, id);
    const { data, total } = await listRuns(this.context.database.read, id, page);
    return { data: data.map(scheduledRunView), total };
  }
}

const startedRun = ({ job, isReplay }: Executed) => ({ job: jobSummary(job, 'queued'), isReplay });

/** The skill, which the caller may run; else `404` or `403`. */
function admittedSkill(skills: SkillRegistry, caller: Caller, named: SkillColumns): Skill {
  const skill = skills.active(...lookupOf(caller.organizationId, named));
  requireScopes(caller.scopes, skill.requiredScopes);
  return skill;
}

/** Rows deleted in one transaction. */
const rowsMax = 1_000;

/** Deletes runs recorded more than `days` ago, unless their job has not ended; returns how many. */
export function deleteExpiredRuns(database: Database, clock: Clock, days: number): Promise<number> {
  const before = idFloor(clock.now() - days * dayMs);
  return deleteAll(database, rowsMax, (tx) => deleteRuns(tx, before, rowsMax));
}
