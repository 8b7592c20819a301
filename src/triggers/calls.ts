/**
 * The last calls of each trigger: what came, and what it was answered. They are gathered in memory,
 * where a call costs next to nothing, and written together once a second; a process that is killed
 * loses those of its last second. Nothing of what was sent is kept, and not from where.
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

/** Calls of one trigger that are kept, and for how long. */
const keptOfOne = 200;
const keptMs = 7 * dayMs;
/** Calls that wait to be written, of all triggers; a flood beyond it costs its own. */
const waitingMax = 5_000;
/** Characters of a message. */
const messageMax = 500;
/** Rows deleted in one transaction. */
const deletedMax = 1_000;

/** What became of a call. */
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
  /** Null where its body was not read. */
  readonly bodyBytes: number | null;
}

export interface TriggerCalls {
  /** Takes note of a call. Cheap, and never waits. */
  note(call: EndedCall): void;
  /** Writes what was noted. What the database could not be reached for is kept for the next time. */
  flush(): Promise<void>;
  /** A page of the calls of a trigger, newest first. */
  list(
    triggerId: string,
    page: { limit: number; offset: number },
  ): Promise<{ calls: ReturnType<typeof shown>[]; total: number }>;
  /** The trigger whose call a job came of; undefined when that call is not kept any more. */
  triggerOf(jobId: string): Promise<string | undefined>;
  /** Deletes what is too old; how many. */
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
    const of = waiting.get(row.trigger_id) ?? [];
    if (of.length >= keptOfOne || count >= waitingMax) {
      // Whoever calls most pays with its own; one that has none there goes without.
      if (of.shift() === undefined) return;
      count -= 1;
    }
    of.push(row);
    count += 1;
    waiting.set(row.trigger_id, of);
  }

  return {
    note(call) {
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
      return { calls: calls.map(shown), total };
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

function shown(row: TriggerCallRow) {
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
