/**
 * The log of the last calls of each trigger: the time and the response of each. A process collects
 * calls in memory and writes them once a second; a process that is killed loses the last second. The log
 * holds neither the content of a call nor its sender's address.
 */
import type { Database } from '../../adapters/database/database.ts';
import { deleteAll } from '../../adapters/database/in-batches.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Context } from '../../core/context/context.ts';
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

/** A call with its response. */
export interface EndedCall {
  readonly id: string;
  readonly triggerId: string;
  readonly receivedAt: number;
  readonly durationMs: number;
  /** HTTP status of the response. */
  readonly status: number;
  readonly error: ErrorCode | null;
  readonly message: string | null;
  readonly jobId: string | null;
  readonly eventId: string | null;
  readonly isReplay: boolean;
  /** Null when the body was not read. */
  readonly bodyBytes: number | null;
}

export class TriggerCalls {
  readonly #database: Database;
  readonly #clock: Clock;
  /** The calls to be written, by trigger, oldest first. */
  #waiting = new Map<string, TriggerCallRow[]>();
  #count = 0;

  constructor({ database, clock }: Context) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Records a call in memory. Never waits. */
  record(call: EndedCall): void {
    this.#add({
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

  #add(row: TriggerCallRow): void {
    const calls = this.#waiting.get(row.trigger_id) ?? [];
    if (calls.length >= keptOfOne || this.#count >= waitingMax) {
      // Replaces the oldest waiting call of the same trigger; without one, the new call is dropped.
      if (calls.shift() === undefined) return;
      this.#count -= 1;
    }
    calls.push(row);
    this.#count += 1;
    this.#waiting.set(row.trigger_id, calls);
  }

  /** Writes the recorded calls. Keeps them for the next time while the database is unavailable. */
  async flush(): Promise<void> {
    const calls = this.#takeAll();
    if (calls.length === 0) return;
    try {
      await this.#database.write((tx) => addCalls(tx, calls, keptOfOne));
    } catch (error) {
      if (isUnavailable(error)) for (const row of [...calls, ...this.#takeAll()]) this.#add(row);
      throw error;
    }
  }

  #takeAll(): TriggerCallRow[] {
    const calls = [...this.#waiting.values()].flat();
    this.#waiting = new Map();
    this.#count = 0;
    return calls;
  }

  /** A page of the calls of a trigger, newest first. */
  async list(triggerId: string, page: PageAsked) {
    const since = this.#clock.now() - keptMs;
    const { data, total } = await listCalls(this.#database.read, triggerId, since, page);
    return { data: data.map(callBody), total };
  }

  /** The trigger whose call started a job; undefined when that call has been deleted. */
  async triggerOf(jobId: string): Promise<string | undefined> {
    return (await findTriggerOf(this.#database.read, { job_id: jobId }))?.trigger_id;
  }

  /** Deletes calls that are too old; how many. */
  deleteOld(): Promise<number> {
    const before = this.#clock.now() - keptMs;
    return deleteAll(this.#database, deletedMax, (tx) => deleteCallsBefore(tx, before, deletedMax));
  }
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
