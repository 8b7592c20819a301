/**
 * A run in an executor, as the parent keeps it: its deadline, its grace, and what it has been heard
 * to say. Promises that its outcome is settled once, and that what is passed on is within the caps
 * whatever the child sent.
 */
import { cleanText } from '../kernel/text.ts';
import type { LogFields } from '../skills/definition.ts';
import type { RunFacts } from './death-attribution.ts';
import {
  ASKS_MAX,
  LOG_CHARS_MAX,
  LOG_LINES_MAX,
  MESSAGE_BYTES_MAX,
  MESSAGES_MAX,
  NOTE_CHARS_MAX,
} from './limits.ts';
import type { ChildMessage } from './protocol.ts';
import type { RunHandlers, RunOutcome, RunReport, RunRequest } from './run.ts';

/** A run that the pool has accepted, wherever it is. */
export interface AcceptedRun {
  readonly request: RunRequest;
  readonly handlers: RunHandlers;
  readonly settle: (outcome: RunOutcome) => void;
}

/** What a run was told, and when it must have obeyed. */
export interface StopRequest {
  readonly cause: 'timeout' | 'abort';
  /** The ping of the line that tells it: what the child says before its answer came of itself. */
  readonly ping: number;
  /** No other run had begun, so whatever kept it from ending in time was its own doing. */
  readonly isOnly: boolean;
  /** When the child was done with that line, as the executor's clock tells it: the grace begins. */
  receivedAt: number | undefined;
  isOverdue: boolean;
}

export interface ActiveRun {
  readonly id: number;
  readonly accepted: AcceptedRun;
  /** The ping of the line that carried it. */
  readonly ping: number;
  readonly startedAt: number;
  stopRequest: StopRequest | undefined;
  /** The deadline first, then the grace. */
  timer: NodeJS.Timeout | undefined;
  /** Milliseconds that were added to the deadline because others held the child up. */
  extraMs: number;
  logLines: number;
  messages: number;
  asks: number;
  /** Of what the run asks; made when it first asks. */
  asking: AbortController | undefined;
}

/** `run timed out after 60000 ms`. */
export function timeoutMessage(request: RunRequest): string {
  return `run timed out after ${request.timeoutMs} ms`;
}

/** What `attributeDeath` needs to know of a run. */
export function runFacts(
  run: ActiveRun,
  hasAnswered: (ping: number) => boolean,
  beginning?: number,
): RunFacts {
  const { stopRequest, accepted } = run;
  return {
    hasStarted: hasAnswered(run.ping),
    isBeginning: run.id === beginning,
    stopRequest: stopRequest?.cause ?? null,
    hasReceived: stopRequest?.receivedAt !== undefined,
    isOverdue: stopRequest?.isOverdue === true,
    isAlone: accepted.request.alone === true,
    timeoutMessage: timeoutMessage(accepted.request),
  };
}

type Said = Extract<ChildMessage, ['log' | 'progress' | 'message', ...unknown[]]>;

/** What the child said of the run, fit to be passed on; undefined when it has said enough. */
export function readReport(run: ActiveRun, said: Said, now: number): RunReport | undefined {
  switch (said[0]) {
    case 'log': {
      // One more than the skill may have: the line that says so.
      if (++run.logLines > LOG_LINES_MAX + 1) return undefined;
      const [, , at, message, fieldsJson] = said;
      return {
        type: 'log',
        message: cleanText(message.slice(0, LOG_CHARS_MAX)),
        at: Math.min(Math.max(at, run.startedAt), now),
        ...readFields(fieldsJson),
      };
    }
    case 'progress': {
      const [, , fraction, note] = said;
      if (note === null) return { type: 'progress', fraction };
      return { type: 'progress', fraction, note: cleanText(note.slice(0, NOTE_CHARS_MAX)) };
    }
    case 'message': {
      const [, , role, content, step] = said;
      if (++run.messages > MESSAGES_MAX) return undefined;
      const message = cleanText(content.slice(0, MESSAGE_BYTES_MAX));
      return { type: 'message', role, content: message, ...(step === null ? {} : { step }) };
    }
  }
}

/** Counts a question; false when the run asks more than it may. */
export function countAsk(run: ActiveRun): boolean {
  run.asks += 1;
  return run.asks <= ASKS_MAX;
}

function readFields(json: string | null): { fields?: LogFields } {
  if (json === null || json.length > 2 * LOG_CHARS_MAX) return {};
  try {
    const fields: unknown = JSON.parse(cleanJson(json));
    if (fields === null || typeof fields !== 'object' || Array.isArray(fields)) return {};
    return { fields: fields as LogFields };
  } catch {
    return {};
  }
}

/**
 * As `cleanText`, for JSON text that `JSON.stringify` wrote: only escapes can stand for such characters.
 */
export function cleanJson(json: string): string {
  if (!json.includes('\\u')) return json;
  return json.replace(ESCAPE, (whole, replaced: string | undefined) =>
    replaced === undefined ? whole : '\\ufffd',
  );
}

/**
 * One escape; its group is an escape that is replaced. Every escape is consumed whole, so that an
 * escaped backslash before a `u` starts none, and a long run of backslashes is read once.
 */
const ESCAPE = /\\(?:(u(?:0000|d[89a-f][0-9a-f]{2}))|.)/gi;
