/**
 * The log of the last calls of each trigger: when each came and how it was answered. A process collects
 * calls in memory and writes them once a second; a process that is killed loses the last second. The log
 * holds neither the content of a call nor its sender's address.
 */
import type { Database } from '../../adapters/database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../../adapters/database/in-batches.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { bind } from '../../kernel/bind.ts';
import { type Clock, dayMs, timestamp } from '../../kernel/clock.ts';
import { type ErrorCode, isUnavailable } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import {
  addCalls,
  deleteCallsBefore,
  findTriggerOf,
  listCalls,
  type TriggerCallRow,
} from './calls.store.ts';

/** The number of calls that are kept for each trigger, and for how long. */
const keptOfOne = 200;
const keptMs = 7 * dayMs;
/** Calls of all triggers that wait to be written. Above it, a new call replaces one of its own trigger. */
const waitingMax = 5_000;
/** Characters of a message. */
const messageMax = 500;
/** Rows deleted in one transaction. */
const deletedMax = 1_000;

/** A call that has been answered. */
export interface EndedCall {
  readonly id: string;
  readonly triggerId: string;
  readonly receivedAt: number;
  readonly durationMs: number;
  /** HTTP status of the answer. */
  readonly status: number;
  readonly error: ErrorCode | null;
  readonly message: string | null;
  readonly jobId: string | null;
  readonly eventId: string | null;
  readonly isReplay: boolean;
  /** Null when the body was not read. */
  readonly bodyBytes: number | null;
}

interface CallsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

interface CallsState extends CallsDeps {
  /** The calls to be written, by trigger, oldest first. */
  waiting: Map<string, TriggerCallRow[]>;
  count: number;
}

export type TriggerCalls = ReturnType<typeof createTriggerCalls>;

export function createTriggerCalls({ database, clock }: CallsDeps) {
  const state: CallsState = { database, clock, waiting: new Map(), count: 0 };
  return bind(state, { record, flush, list, triggerOf, deleteOld });
}

/** Records a call in memory. Never waits. */
function record(state: CallsState, call: EndedCall): void {
  add(state, {
    trigger_id: call.triggerId,
    id: call.id,
    received_at: call.receivedAt,
    duration_ms: call.durationMs,
    status: call.status,
    error: call.error,
    message: call.message === null ? null : cleanText(call.message.slice(0, messageMax)),
    job_id: call.jobId,
    event_id: call.eventId,
    replayed: call.isReplay ? 1 : 0,
    body_bytes: call.bodyBytes,
  });
}

function add(state: CallsState, row: TriggerCallRow): void {
  const calls = state.waiting.get(row.trigger_id) ?? [];
  if (calls.length >= keptOfOne || state.count >= waitingMax) {
    // Replaces the oldest waiting call of the same trigger; without one, the new call is dropped.
    if (calls.shift() === undefined) return;
    state.count -= 1;
  }
  calls.push(row);
  state.count += 1;
  state.waiting.set(row.trigger_id, calls);
}

/** Writes the recorded calls. Keeps them for the next time while the database is unavailable. */
async function flush(state: CallsState): Promise<void> {
  const calls = takeAll(state);
  if (calls.length === 0) return;
  try {
    await state.database.write((tx) => addCalls(tx, calls, keptOfOne));
  } catch (error) {
    if (isUnavailable(error)) for (const row of [...calls, ...takeAll(state)]) add(state, row);
    throw error;
  }
}

function takeAll(state: CallsState): TriggerCallRow[] {
  const calls = [...state.waiting.values()].flat();
  state.waiting = new Map();
  state.count = 0;
  return calls;
}

/** A page of the calls of a trigger, newest first. */
async function list({ database, clock }: CallsState, triggerId: string, page: PageAsked) {
  const { data, total } = await listCalls(database.read, triggerId, clock.now() - keptMs, page);
  return { data: data.map(callBody), total };
}

/** The trigger whose call started a job; undefined when that call has been deleted. */
async function triggerOf({ database }: CallsState, jobId: string): Promise<string | undefined> {
  return (await findTriggerOf(database.read, { job_id: jobId }))?.trigger_id;
}

/** Deletes calls that are too old; how many. */
function deleteOld({ database, clock }: CallsState): Promise<number> {
  const before = clock.now() - keptMs;
  return deleteInBatches(database, deletedMax, async (tx) =>
    foundAndDeleted(await deleteCallsBefore(tx, before, deletedMax)),
  );
}

/** A call as the API shows it. */
function callBody(row: TriggerCallRow) {
  return {
    id: row.id,
    received_at: timestamp(row.received_at),
    status: row.status,
    error: row.error as ErrorCode | null,
    message: row.message,
    job_id: row.job_id,
    event_id: row.event_id,
    duration_ms: row.duration_ms,
    body_bytes: row.body_bytes,
    replayed: row.replayed === 1,
  };
}
