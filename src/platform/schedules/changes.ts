/** Changing a scheduled job: validation, permissions, and the due slots that the change makes missed. */

import type { Transaction } from '../../adapters/database/database.ts';
import { keyOfRuns } from '../../core/api-keys/key-of-runs.ts';
import { refuseInvalid, requireFileScope } from '../../core/jobs/execute.ts';
import { requireSkillScopes } from '../../core/jobs/readiness.ts';
import { lookupOf, type Skill, type SkillRegistry } from '../../core/skills/registry.ts';
import { type Caller, requireScopes } from '../../kernel/caller.ts';
import { timetableColumns, timetableOf } from './cron-fields.ts';
import { duplicate, lockRow, stopRuns } from './lookup.ts';
import { missedSlots } from './run-due.ts';
import { findTakenSlots, insertRuns, newRun } from './runs.store.ts';
import type { ScheduledJobChanges } from './schedules.schemas.ts';
import { type ScheduledJobRow, uniqueColumns, updateScheduledJob } from './schedules.store.ts';
import type { Schedules } from './schedules.ts';
import { nextSlot, parseStoredTimetable } from './timetable.ts';

/** Changes the given fields; returns the new row. */
export function changeScheduledJob(
  { context: { config, database, clock }, parts: { agents, skills, settler } }: Schedules,
  caller: Caller,
  id: string,
  fields: ScheduledJobChanges,
): Promise<ScheduledJobRow> {
  const { organizationId } = caller;
  return database.write(async (tx) => {
    const before = await lockRow(tx, organizationId, id);
    if (Object.keys(fields).length === 0) return before;
    const now = clock.now();
    const given = givenColumns(before, fields);
    const { id: api_key_id } = await keyOfRuns(tx, caller, before, given);
    const updated_at = Math.max(now, before.updated_at + 1);
    const after: ScheduledJobRow = { ...before, ...given, api_key_id, updated_at };
    if (uniqueColumns.some((column) => after[column] !== before[column])) {
      await agents.lock(tx, organizationId, after.agent_id);
    }
    const skill = requireValidChange(skills, caller, before, after, fields);
    if (skill !== null) requireFileScope(config, caller, skill, JSON.parse(after.input));
    const next_run_at = planned(before, after, now);
    await recordGivenUp(tx, before, after, now);
    if (!(await updateScheduledJob(tx, { ...after, next_run_at }))) throw duplicate();
    if (before.enabled === 1 && after.enabled === 0) await stopRuns(tx, settler, id);
    return lockRow(tx, organizationId, id);
  });
}

/** The columns of the given fields, not validated yet. */
function givenColumns(
  before: ScheduledJobRow,
  fields: ScheduledJobChanges,
): Partial<ScheduledJobRow> {
  const { input, enabled, cron_expression, timezone, ...named } = fields;
  return {
    ...named,
    ...timetableColumns(cron_expression ?? before.cron_expression, timezone ?? before.timezone),
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    ...(enabled === undefined ? {} : { enabled: enabled ? 1 : 0 }),
  };
}

/**
 * Throws `404` for a new skill that is not active, `403` for a skill that the caller may not run, `400`
 * for the expression, the time zone or the input. Returns the skill where what it runs is changed, or for whom.
 */
function requireValidChange(
  skills: SkillRegistry,
  caller: Caller,
  before: ScheduledJobRow,
  after: ScheduledJobRow,
  { skill_category, skill_name, skill_version, input, ...fields }: ScheduledJobChanges,
): Skill | null {
  const isChecked = (skill_category ?? skill_name ?? skill_version ?? input) !== undefined;
  const skill = isChecked ? skills.active(...lookupOf(caller.organizationId, after)) : null;
  requireSkillScopes(skills, caller, before);
  if (skill !== null) requireScopes(caller.scopes, skill.requiredScopes);
  if ((fields.cron_expression ?? fields.timezone) !== undefined) timetableOf(after);
  if (skill !== null) refuseInvalid(skill, JSON.parse(after.input), 'input');
  if (fields.agent_id === undefined) return skill;
  return skills.findActive(...lookupOf(caller.organizationId, after)) ?? null;
}

/** The next slot after a change. It stays unless the timetable changes or the scheduled job is enabled again. */
function planned(before: ScheduledJobRow, after: ScheduledJobRow, now: number): number {
  const isResumed = before.enabled === 0 && after.enabled === 1;
  if (after.cron_key === before.cron_key && !isResumed) return before.next_run_at;
  const timetable = parseStoredTimetable(after);
  return timetable === null ? before.next_run_at : nextSlot(timetable, now);
}

/** Records due slots as missed that the change prevents from running. */
async function recordGivenUp(
  tx: Transaction,
  before: ScheduledJobRow,
  after: ScheduledJobRow,
  now: number,
): Promise<void> {
  if (before.enabled === 0 || before.next_run_at > now) return;
  const isReplanned = after.cron_key !== before.cron_key;
  if (!isReplanned && after.enabled === 1) return;
  const timetable = parseStoredTimetable(before);
  if (timetable === null) return;
  const taken = await findTakenSlots(tx, { ids: [before.id], now });
  const schedule = {
    timetable,
    dueAt: before.next_run_at,
    taken: new Set(taken.map(({ slot }) => slot)),
  };
  const why = isReplanned
    ? 'the cron expression or its time zone was changed before it could run'
    : 'the scheduled job was disabled before it could run';
  const records = missedSlots(schedule, why, now);
  await insertRuns(
    tx,
    records.map((record) => newRun(before, record, null, now)),
  );
}
