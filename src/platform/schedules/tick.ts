/**
 * The tick: accepts runs of due scheduled jobs. Any number of processes may tick: a scheduled job is locked while it is
 * handled, its slot is unique, and its next slot is set by compare-and-set, all in the transaction that accepts the run.
 * The tick executes nothing itself. After a long downtime it works in small transactions, so that other writers are not
 * blocked.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import { envelopeOf, type NewEvent } from '../../core/events/events.ts';
import { appendEvents } from '../../core/events/outbox.ts';
import type { Acceptor } from '../../core/jobs/accept.ts';
import {
  type Obstacle,
  type Readiness,
  type Ready,
  readinessOf,
  type StarterSlices,
} from '../../core/jobs/readiness.ts';
import { isUnavailable } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { createSetBackWatch } from '../../kernel/set-back.ts';
import { beginLastRuns, clampLastRuns } from './last-runs.store.ts';
import { planAnew } from './plan-anew.ts';
import { type Decision, decide, type Refusal, recordsDue, refuseUnknown } from './run-due.ts';
import { runRequest } from './run-request.ts';
import { findRunning, findTakenSlots, insertRuns, newRun, type RunRow } from './runs.store.ts';
import { findDue, findScheduledJobs, lockDue, planScheduledJobs } from './schedules.store.ts';
import { parseStoredTimetable } from './timetable.ts';

/** Scheduled jobs handled in one transaction. */
const batchMax = 500;
/** Bytes of their inputs that are held at once, beyond those of the first. */
const inputsMax = 16 * 1024 * 1024;
/** Slots recorded in one transaction, not counting the first scheduled job's. */
const recordsMax = 2_000;
const minuteMs = 60_000;

type ScheduledJob = Awaited<ReturnType<typeof findScheduledJobs>>[number];

/** A due scheduled job, with the results of the checks made before its transaction. */
interface Prepared {
  readonly job: ScheduledJob;
  readonly readiness: Ready | Refusal;
}

/** A locked scheduled job, and the decision on its slots. */
interface Decided extends Prepared {
  readonly decision: Decision;
  readonly from: number;
}

interface TickParts extends StarterSlices {
  readonly acceptor: Acceptor;
}

export class Tick {
  readonly context: Context;
  readonly parts: TickParts;
  /** Whether the clock was set back since the last call; true at the first one. */
  readonly wasSetBack: () => boolean;
  /** Whether next slots must be recomputed; true until that has succeeded. */
  mustPlan = false;

  constructor(context: Context, parts: TickParts) {
    this.context = context;
    this.parts = parts;
    this.wasSetBack = createSetBackWatch(context.clock);
  }

  /** Handles all due scheduled jobs; returns how many there were. */
  async run(): Promise<number> {
    await this.#planAfterSetback();
    let total = 0;
    for (;;) {
      const batch = await nextBatch(this.context);
      if (batch.length === 0) return total;
      const done = await runBatch(this, batch);
      total += done;
      // Other processes have locked all of them; the next tick finds those that they leave.
      if (done === 0) return total;
      await yieldToEventLoop();
    }
  }

  /** Recomputes next slots at the start and when the clock was set back. */
  async #planAfterSetback(): Promise<void> {
    const { database, clock } = this.context;
    this.mustPlan ||= this.wasSetBack();
    if (!this.mustPlan) return;
    await planAnew(this.context);
    await database.write((tx) => clampLastRuns(tx, clock.now()));
    this.mustPlan = false;
  }
}

async function nextBatch({ database, clock }: Context): Promise<ScheduledJob[]> {
  const now = clock.now();
  const ids: string[] = [];
  let bytes = 0;
  let records = 0;
  for (const job of await findDue(database.read, { now, limit: batchMax })) {
    bytes += job.input_bytes;
    records += recordsOf(job, now);
    if (ids.length > 0 && (bytes > inputsMax || records > recordsMax)) break;
    ids.push(job.id);
  }
  return ids.length === 0 ? [] : findScheduledJobs(database.read, { ids });
}

/** An upper bound of the slots to record for a due scheduled job. */
function recordsOf(
  { next_run_at, ...columns }: Pick<ScheduledJob, 'cron_expression' | 'timezone' | 'next_run_at'>,
  now: number,
): number {
  // Slots are at least a minute apart.
  if (now - next_run_at < minuteMs) return 1;
  const timetable = parseStoredTimetable(columns);
  return timetable === null ? 1 : recordsDue(timetable, next_run_at, now);
}

/** Handles a batch; a failure with one scheduled job leaves the others as they are. */
async function runBatch(tick: Tick, batch: readonly ScheduledJob[]): Promise<number> {
  try {
    return await runTogether(tick, batch);
  } catch (error) {
    if (isUnavailable(error) || batch.length === 1) throw error;
  }
  let done = 0;
  for (const job of batch) {
    try {
      done += await runTogether(tick, [job]);
    } catch (err) {
      tick.context.log.error(
        { err, scheduled_job_id: job.id },
        'a scheduled job could not be handled',
      );
    }
  }
  return done;
}

/** A transaction awaits only its own queries, so all other checks come before it. */
async function runTogether(tick: Tick, batch: readonly ScheduledJob[]): Promise<number> {
  const prepared = await prepare(tick, batch);
  return tick.context.database.write((tx) => runDue(tick, tx, prepared));
}

async function prepare(
  { parts }: Tick,
  batch: readonly ScheduledJob[],
): Promise<Map<string, Prepared>> {
  const readiness = await readinessOf(parts, batch, ({ input }) => input);
  const prepared = batch.map((job, i) => {
    const found = readiness[i] as Readiness;
    return { job, readiness: 'code' in found ? refusalOf(job, found) : found };
  });
  return new Map(prepared.map((one) => [one.job.id, one]));
}

async function runDue(
  { parts: { acceptor }, context: { clock, log } }: Tick,
  tx: Transaction,
  prepared: ReadonlyMap<string, Prepared>,
): Promise<number> {
  const now = clock.now();
  const decided = await decideLocked(tx, prepared, now);
  const firing = decided.filter(({ decision }) => decision.runs !== null);
  const accepted = await acceptor.acceptWithin(
    tx,
    firing.map(({ job, readiness }) => {
      const { caller, skill, priority } = readiness as Ready;
      return runRequest(job, caller, skill, priority);
    }),
  );
  const jobIds = new Map(
    accepted.map((one, i) => [firing[i]?.job.id, (one as { job: { id: string } }).job.id]),
  );
  await insertRuns(
    tx,
    decided.flatMap((one) => rowsOf(one, jobIds.get(one.job.id) ?? null, now)),
  );
  await appendEvents(tx, decided.flatMap(errorEvents), now);
  const moved = await planScheduledJobs(
    tx,
    decided.map(({ job, from, decision }) => ({
      id: job.id,
      updated_at: job.updated_at,
      from,
      to: decision.nextRunAt,
    })),
  );
  if (moved.includes(false)) throw new Error('A locked scheduled job was moved on by another.');
  await beginLastRuns(
    tx,
    firing.map(({ job }) => ({
      scheduled_job_id: job.id,
      at: now,
      job_id: jobIds.get(job.id) as string,
    })),
  );
  tx.afterCommit(() => {
    for (const one of decided) logSkipped(log, one);
  });
  return decided.length;
}

async function decideLocked(
  tx: Transaction,
  prepared: ReadonlyMap<string, Prepared>,
  now: number,
): Promise<Decided[]> {
  const locked = await lockDue(tx, { ids: [...prepared.keys()], now });
  const ids = locked.map(({ id }) => id);
  const running = await findRunning(tx, ids);
  const taken = Map.groupBy(
    await findTakenSlots(tx, { ids, now }),
    ({ scheduled_job_id }) => scheduled_job_id,
  );
  return locked.flatMap((row) => {
    const one = prepared.get(row.id);
    // Changed since it was read: the checks may no longer hold, so the next round makes them again.
    if (one === undefined || one.job.updated_at !== row.updated_at) return [];
    const from = row.next_run_at;
    const due = {
      dueAt: from,
      isRunning: running.has(row.id),
      taken: new Set(taken.get(row.id)?.map(({ slot }) => slot)),
    };
    const timetable = parseStoredTimetable(one.job);
    if (timetable === null) {
      const readiness = unknownTimes(one.job);
      return [{ ...one, readiness, from, decision: refuseUnknown(due, readiness, now) }];
    }
    const schedule = { ...due, timetable };
    const refusal = 'outcome' in one.readiness ? one.readiness : null;
    return [{ ...one, from, decision: decide(schedule, refusal, now) }];
  });
}

function logSkipped(log: Logger, { job, decision }: Decided): void {
  const last = decision.records.at(-1);
  if (last === undefined || decision.runs !== null) return;
  const { slot, outcome, message } = last;
  log.info({ scheduled_job_id: job.id, slot, outcome }, message ?? 'a slot was skipped');
}

const outcomeOf: Record<Obstacle['code'], Refusal['outcome']> = {
  invalid_api_key: 'key_revoked',
  skill_not_found: 'skill_inactive',
  insufficient_scope: 'insufficient_scope',
  validation_error: 'input_invalid',
  agent_paused: 'agent_paused',
};

function refusalOf({ id }: ScheduledJob, { code, reason }: Obstacle): Refusal {
  const message = `The scheduled job ${id} did not run: ${reason}.`;
  return { outcome: outcomeOf[code], code, message };
}

/** The runtime has lost the zone, or an earlier version has stored an expression that this one refuses. */
function unknownTimes({ id, cron_expression, timezone }: ScheduledJob): Refusal {
  const times = `${cron_expression}${timezone === null ? '' : ` in ${timezone}`}`;
  const message = `The scheduled job ${id} did not run: this platform does not know its times (${times}). Set its cron_expression and timezone anew.`;
  return { outcome: 'input_invalid', code: 'validation_error', message };
}

function rowsOf({ job, decision }: Decided, jobId: string | null, now: number): RunRow[] {
  return decision.records.map((record) =>
    newRun(job, record, record === decision.runs ? jobId : null, now),
  );
}

function errorEvents({ job, readiness, decision }: Decided): NewEvent[] {
  if (!decision.isRefused) return [];
  const { code, message } = readiness as Refusal;
  return [
    {
      ...envelopeOf(job),
      type: 'agent.error',
      data: { code, message, job_id: null },
    },
  ];
}
