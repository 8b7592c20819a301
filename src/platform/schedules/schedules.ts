/**
 * Scheduled jobs: creating, listing and deleting them, and running one at once; `changes.ts` changes
 * them. Each verb needs the same permissions as a run of the skill. After a deletion or a disabling, active attempts
 * finish and are not retried.
 *
 * Every transaction on scheduled jobs, including the tick and the end of a run, locks in this order, so that
 * none deadlock: the organization (if a scheduled job is added), the scheduled job, the agent, the jobs, the counts,
 * their runs, and the last run.
 */

import { requireRoom } from '../../adapters/database/caps.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { Accept, AcceptedJob } from '../../core/jobs/accept.ts';
import { agentPaused, refuseInvalid } from '../../core/jobs/execute.ts';
import { jobSummary } from '../../core/jobs/job-views.ts';
import type { Jobs } from '../../core/jobs/jobs.ts';
import { type ReadinessDeps, refusalsOf, requireSkillScopes } from '../../core/jobs/readiness.ts';
import {
  lookupOf,
  type Skill,
  type SkillColumns,
  type SkillRegistry,
} from '../../core/skills/registry.ts';
import { bind } from '../../kernel/bind.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import type { Clock } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import { change } from './changes.ts';
import { nextRunsOf, timetableColumns, timetableOf } from './cron-fields.ts';
import { beginLastRuns } from './last-runs.store.ts';
import { duplicate, find, lock, stopRuns } from './lookup.ts';
import { runRequest } from './run-request.ts';
import { findScheduledJobOf, insertRuns, listRuns, newRun } from './runs.store.ts';
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

export interface ScheduleDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly slices: {
    readonly agents: Agents;
    readonly apiKeys: ReadinessDeps['apiKeys'];
    readonly skills: SkillRegistry;
    readonly accept: Accept;
    readonly jobs: Pick<Jobs, 'cancelQueued'>;
  };
  /** Deletes what other slices keep of a scheduled job; throws `403` where the caller may not delete it. */
  removeDependents(tx: Transaction, caller: Caller, id: string): Promise<void>;
  /** How many scheduled jobs an organization may have. */
  readonly max: number;
}

export type Schedules = ReturnType<typeof createSchedules>;

export function createSchedules(deps: ScheduleDeps) {
  const reading = { find, ofJob, admitChange, preview, list, get, runs };
  return { ...bind(deps, { ...reading, create, update, remove, runNow }), lock };
}

/** The scheduled job that a job is a run of; undefined when it was deleted. */
async function ofJob(
  { database: { read } }: ScheduleDeps,
  organizationId: string,
  jobId: string,
): Promise<string | undefined> {
  const id = await findScheduledJobOf(read, jobId);
  // Rows of runs outlive their deleted scheduled job until retention deletes them.
  if (id === undefined) return undefined;
  return (await findScheduledJob(read, organizationId, id))?.id;
}

/** `404 not_found` and `403 insufficient_scope` for a change, before its body is checked. */
async function admitChange(deps: ScheduleDeps, caller: Caller, id: string): Promise<void> {
  requireSkillScopes(deps.slices.skills, caller, await find(deps, caller.organizationId, id));
}

/** The next `count` slots of an expression in a time zone. `400` as at creation. */
function preview({ clock }: ScheduleDeps, expression: string, zone: string, count: number) {
  return nextRunsOf(expression, zone, count, clock.now());
}

/** Creates one in the name of the caller's key. */
async function create(deps: ScheduleDeps, caller: Caller, fields: NewScheduledJob) {
  const { database, clock, max } = deps;
  const { skills, agents } = deps.slices;
  const { organizationId } = caller;
  const { enabled = true, input = {}, cron_expression, timezone = null, ...given } = fields;
  const named = { skill_version: defaultVersion, ...given };
  await agents.statusOf(organizationId, named.agent_id);
  const skill = admittedSkill(skills, caller, named);
  const columns = timetableColumns(cron_expression, timezone);
  const timetable = timetableOf(columns);
  refuseInvalid(skill, input, 'input');
  const now = clock.now();
  const row: ScheduledJobRow = {
    id: newId(),
    organization_id: organizationId,
    api_key_id: caller.keyId,
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
  await database.write(async (tx) => {
    const cap = { table: 'scheduled_jobs', things: 'scheduled jobs', max } as const;
    await requireRoom(tx, organizationId, [cap]);
    await agents.lock(tx, organizationId, row.agent_id);
    if (!(await insertScheduledJob(tx, row))) throw duplicate();
  });
  return createdScheduledJobView(row, now);
}

/** All of the organization, newest first; on request with the refusal that a slot would get now, without input checks. */
async function list(deps: ScheduleDeps, organizationId: string, include?: 'refusal') {
  const rows = await listScheduledJobs(deps.database.read, organizationId);
  const refusals = include === undefined ? [] : await refusalsOf(deps.slices, rows);
  const now = deps.clock.now();
  return rows.map((row, i) => ({ ...scheduledJobSummary(row, now), ...refusals[i] }));
}

/** One scheduled job; on request with the refusal that its slots would get now. */
async function get(deps: ScheduleDeps, organizationId: string, id: string, include?: 'refusal') {
  const row = await find(deps, organizationId, id);
  const [refusal] =
    include === undefined ? [] : await refusalsOf(deps.slices, [row], ({ input }) => input);
  return { ...scheduledJobView(row, deps.clock.now()), ...refusal };
}

/** Changes the given fields. Runs use the key of the last change of what is run (`keyOfRuns`). */
async function update(deps: ScheduleDeps, caller: Caller, id: string, fields: ScheduledJobChanges) {
  return scheduledJobView(await change(deps, caller, id, fields), deps.clock.now());
}

async function remove(
  { database, slices: { jobs }, removeDependents }: ScheduleDeps,
  caller: Caller,
  id: string,
): Promise<void> {
  await database.write(async (tx) => {
    await lock(tx, caller.organizationId, id);
    await stopRuns(tx, jobs, id);
    await removeDependents(tx, caller, id);
    await deleteScheduledJob(tx, id);
  });
}

/** Runs it at once, enabled or not, in the name of the caller's key. */
function runNow(
  { database, slices: { skills, agents, accept }, clock }: ScheduleDeps,
  caller: Caller,
  id: string,
) {
  const { organizationId } = caller;
  return database.write(async (tx) => {
    const row = await lock(tx, organizationId, id);
    const skill = admittedSkill(skills, caller, row);
    refuseInvalid(skill, JSON.parse(row.input), 'input');
    const { status } = await agents.lock(tx, organizationId, row.agent_id);
    if (status === 'paused') throw agentPaused(row.agent_id);
    const now = clock.now();
    const [acceptance] = await accept.within(tx, [runRequest(row, caller, skill)]);
    const { job } = acceptance as { job: AcceptedJob };
    const record = { slot: null, outcome: 'run_now', slots: 1, message: null } as const;
    await insertRuns(tx, [newRun(row, record, job.id, now)]);
    await beginLastRuns(tx, [{ scheduled_job_id: id, at: now, job_id: job.id }]);
    return jobSummary(job, 'queued');
  });
}

/** The outcomes of its due slots, newest first. */
async function runs(deps: ScheduleDeps, organizationId: string, id: string, page: PageAsked) {
  await find(deps, organizationId, id);
  const { data, total } = await listRuns(deps.database.read, id, page);
  return { data: data.map(scheduledRunView), total };
}

/** The skill, which the caller may run; else `404` or `403`. */
function admittedSkill(skills: SkillRegistry, caller: Caller, named: SkillColumns): Skill {
  const skill = skills.active(...lookupOf(caller.organizationId, named));
  requireScopes(caller.scopes, skill.requiredScopes);
  return skill;
}
