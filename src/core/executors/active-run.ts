/**
 * An active run of an executor, as the parent keeps it: its deadline, its stop request, and counters of
 * its messages. Promises that its outcome is settled once, and that every report that is passed on is
 * within its limits, whatever the child sent.
 */
import { cleanText } from '../../kernel/text.ts';
import type { LogFields } from '../skills/definition.ts';
import {
  asksMax,
  logCharsMax,
  logLinesMax,
  messageBytesMax,
  messagesMax,
  noteCharsMax,
} from './limits.ts';
import type { PoolRun } from './pool-run.ts';
import type { ChildMessage } from './protocol.ts';
import type { RunReport, RunRequest } from './run.ts';

/** The request that a run stop, and the run's progress in obeying it. */
export interface StopRequest {
  readonly cause: 'timeout' | 'abort';
  /** The ping after the request: messages before its pong do not respond to the request. */
  readonly ping: number;
  /** No other run's code had begun, so no other run can have delayed this one. */
  readonly wasOnlyBegun: boolean;
  /** When the child had read the request, in monotonic milliseconds: the grace period begins. */
  receivedAt: number | undefined;
  isOverdue: boolean;
}

/** What an active run needs of its run in the pool. */
export type AcceptedRun = Pick<PoolRun, 'request' | 'handlers' | 'settle'>;

export interface ActiveRun {
  readonly id: number;
  readonly accepted: AcceptedRun;
  /** The last ping that the child was sent before the run: without its pong the run has not begun. */
  readonly ping: number;
  /** The same, but for a ping that was sent in one line with the run. */
  readonly pingBefore: number;
  readonly startedAt: number;
  stopRequest: StopRequest | undefined;
  /** The deadline, and after a stop request the end of the grace period. */
  timer: NodeJS.Timeout | undefined;
  /** Milliseconds added to the deadline because other runs blocked the child. */
  extraMs: number;
  logLines: number;
  messages: number;
  /** Unanswered questions. */
  asks: number;
  /** Questions that have arrived, answered ones too. */
  asked: number;
  /** Whether it was asked to end as waiting. */
  isSuspending: boolean;
  /** Aborts the answers to the run's questions; made at the first question. */
  asking: AbortController | undefined;
}

/** `run timed out after 60000 ms`. */
export function timeoutMessage(request: RunRequest): string {
  return `run timed out after ${request.timeoutMs} ms`;
}

type Said = Extract<ChildMessage, ['log' | 'progress' | 'message', ...unknown[]]>;

/** The child's report, cleaned and within its limits; undefined when the run's limit is reached. */
export function readReport(run: ActiveRun, said: Said, now: number): RunReport | undefined {
  switch (said[0]) {
    case 'log': {
      // One more than the limit: the child's own line that says that the rest is left out.
      if (++run.logLines > logLinesMax + 1) return undefined;
      const [, , at, message, fieldsJson] = said;
      return {
        type: 'log',
        message: cleanText(message.slice(0, logCharsMax)),
        at: Math.min(Math.max(at, run.startedAt), now),
        ...readFields(fieldsJson),
      };
    }
    case 'progress': {
      const [, , fraction, note] = said;
      if (note === null) return { type: 'progress', fraction };
      return { type: 'progress', fraction, note: cleanText(note.slice(0, noteCharsMax)) };
    }
    case 'message': {
      const [, , role, content, step] = said;
      if (++run.messages > messagesMax) return undefined;
      const message = cleanText(content.slice(0, messageBytesMax));
      return { type: 'message', role, content: message, ...(step === null ? {} : { step }) };
    }
  }
}

/** Counts a question; false when the run has too many unanswered ones. */
export function countAsk(run: ActiveRun): boolean {
  run.asks += 1;
  run.asked += 1;
  return run.asks <= asksMax;
}

function readFields(json: string | null): { fields?: LogFields } {
  if (json === null || json.length > 2 * logCharsMax) return {};
  try {
    const fields: unknown = JSON.parse(cleanJson(json));
    if (fields === null || typeof fields !== 'object' || Array.isArray(fields)) return {};
    return { fields: fields as LogFields };
  } catch {
    return {};
  }
}

/**
 * Like `cleanText`, for text that `JSON.stringify` wrote: it holds such characters only as escapes.
 */
export function cleanJson(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replace(escapePattern, (whole, replaced: string | undefined) =>
    replaced === undefined ? whole : '\\ufffd',
  );
}

/**
 * One escape; its group is an escape that is replaced. Every escape is consumed whole, so that an
 * escaped backslash before a `u` starts none, and a long run of backslashes is read once.
 */
const escapePattern = /\\(?:(u(?:0000|d[89a-f][0-9a-f]{2}))|.)/gi;
