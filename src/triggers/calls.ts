/**
 * The log of the last calls of each trigger: when each came and how it was answered. A process collects
 * calls in memory and writes them once a second; a process that is killed loses the last second. The log
 * holds neither the content of a call nor its sender's address.
 */
import type { Database } from '../database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../database/in-batches.ts';
import { type Clock, dayMs, timestamp } from '../kernel/clock.ts';
import { type ErrorCode, isUnavailable } from '../kernel/errors.ts';
import { cleanText } from '../kernel/text.ts';
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
  readonly isReplay: boolean;
  /** Null when the body was not read. */
  readonly bodyBytes: number | null;
}

export interface TriggerCalls {
  /** Records a call in memory. Never waits. */
  record(call: EndedCall): void;
  /** Writes the recorded calls. Keeps them for the next time while the database is unavailable. */
  flush(): Promise<void>;
  /** A page of the calls of a trigger, newest first. */
  list(
    triggerId: string,
    page: { limit: number; offset: number },
  ): Promise<{ calls: ReturnType<typeof callBody>[]; total: number }>;
  /** The trigger whose call started a job; undefined when that call has been deleted. */
  triggerOf(jobId: string): Promise<string | undefined>;
  /** Deletes calls that are too old; how many. */
  deleteOld(): Promise<number>;
}

export function createTriggerCalls({
  database,
  clock,
}: {
  database: Database;
  clock: Clock;
}): TriggerCalls {
  /** By trigger, oldest first. */
  let waiting = new Map<string, TriggerCallRow[]>();
  let count = 0;

  function add(row: TriggerCallRow): void {
    const calls = waiting.get(row.trigger_id) ?? [];
    if (calls.length >= keptOfOne || count >= waitingMax) {
      // Replaces the oldest waiting call of the same trigger; without one, the new call is dropped.
      if (calls.shift() === undefined) return;
      count -= 1;
    }
    calls.push(row);
    count += 1;
    waiting.set(row.trigger_id, calls);
  }

  return {
    record(call) {
      add({
        trigger_id: call.triggerId,
        id: call.id,
        received_at: call.receivedAt,
        duration_ms: call.durationMs,
        status: call.status,
        error: call.error,
        message: call.message === null ? null : cleanText(call.message.slice(0, messageMax)),
        job_id: call.jobId,
        replayed: call.isReplay ? 1 : 0,
        body_bytes: call.bodyBytes,
      });
    },

    async flush() {
      if (count === 0) return;
      const calls = [...waiting.values()].flat();
      waiting = new Map();
      count = 0;
      try {
        await database.write((tx) => addCalls(tx, calls, keptOfOne));
      } catch (error) {
        if (isUnavailable(error)) {
          const newer = [...waiting.values()].flat();
          waiting = new Map();
          count = 0;
          for (const row of [...calls, ...newer]) add(row);
        }
        throw error;
      }
    },

    async list(triggerId, page) {
      const since = clock.now() - keptMs;
      const { calls, total } = await listCalls(database.read, triggerId, since, page);
      return { calls: calls.map(callBody), total };
    },

    triggerOf: (jobId) => findTriggerOf(database.read, jobId),

    deleteOld() {
      const before = clock.now() - keptMs;
      return deleteInBatches(database, deletedMax, async (tx) =>
        foundAndDeleted(await deleteCallsBefore(tx, before, deletedMax)),
      );
    },
  };
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
    duration_ms: row.duration_ms,
    body_bytes: row.body_bytes,
    replayed: row.replayed === 1,
  };
}
