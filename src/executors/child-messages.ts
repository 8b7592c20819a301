/**
 * Handles the messages of a child about its runs: reports, questions and outcomes. Ignores messages about
 * runs that are not active, passes on what is within the limits, and reports the rest as garbled.
 */
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { cleanText } from '../kernel/text.ts';
import { type ActiveRun, countAsk, readReport } from './active-run.ts';
import type { ActiveRuns, Channel } from './active-runs.ts';
import { createByteBudget } from './console-budget.ts';
import {
  createRate,
  ERROR_CHARS_MAX,
  LOG_CHARS_MAX,
  OUTPUT_BYTES_MAX,
  STRAYS_PER_SECOND,
} from './limits.ts';
import type { ChildMessage } from './protocol.ts';
import { answerQuestion } from './questions.ts';

export type RunMessage = Extract<
  ChildMessage,
  ['done' | 'fail' | 'log' | 'progress' | 'message' | 'ask' | 'print', ...unknown[]]
>;

/** The handler returns why a message is garbled, or undefined. */
export function createRunMessageHandler(parts: {
  activeRuns: ActiveRuns;
  channel: Channel;
  clock: Clock;
  log: Pick<Logger, 'info' | 'error'>;
}): (message: RunMessage) => string | undefined {
  const { activeRuns, channel, clock, log } = parts;
  const printed = createByteBudget(() => {});

  function takeOutput(run: ActiveRun, value: unknown): string | undefined {
    const output = writeOutput(value);
    if (output === undefined) return 'an output that is too large';
    activeRuns.finish(run, { kind: 'completed', output });
    return undefined;
  }

  function takeFailure(run: ActiveRun, message: Extract<RunMessage, ['fail', ...unknown[]]>): void {
    const [, , code, text, retryable, stack] = message;
    const reason = cleanText(text.slice(0, ERROR_CHARS_MAX));
    activeRuns.finish(run, {
      kind: 'failed',
      code,
      message: reason,
      retryable,
      ...(stack === null ? {} : { stack: cleanText(stack.slice(0, ERROR_CHARS_MAX)) }),
    });
  }

  function takeReport(run: ActiveRun, message: Parameters<typeof readReport>[1]): void {
    const report = readReport(run, message, clock.now());
    if (report === undefined) return;
    try {
      run.accepted.handlers.onReport(report);
    } catch (error) {
      log.error({ err: error }, 'a report of a run could not be taken');
    }
  }

  /** Logs a run's console output for the operator; bounded here and in the child. */
  function takePrint(run: ActiveRun, name: 'stdout' | 'stderr', text: string): void {
    if (!printed.spend(text.length)) return;
    const { skill, context } = run.accepted.request;
    const printedText = cleanText(text.slice(0, LOG_CHARS_MAX));
    log.info({ job_id: context.jobId, skill, [name]: printedText }, 'skill output');
  }

  async function answer(
    run: ActiveRun,
    question: Parameters<typeof answerQuestion>[1],
  ): Promise<void> {
    const message = await answerQuestion(run, question);
    run.asks -= 1;
    if (activeRuns.get(run.id) === run) channel.push(message);
  }

  return (message) => {
    const run = activeRuns.get(message[1]);
    if (run === undefined) return undefined;
    switch (message[0]) {
      case 'done':
        return takeOutput(run, message[2]);
      case 'fail':
        takeFailure(run, message);
        return undefined;
      case 'print':
        takePrint(run, message[2], message[3]);
        return undefined;
      case 'ask':
        if (!countAsk(run)) return 'more questions than a run may ask at once';
        void answer(run, {
          id: message[2],
          kind: message[3],
          payload: message[4],
          step: message[5],
        });
        return undefined;
      default:
        takeReport(run, message);
        return undefined;
    }
  };
}

/** Logs messages that belong to no run, at most STRAYS_PER_SECOND of them. */
export function createStrayMessageLogger(
  pid: number | undefined,
  log: Pick<Logger, 'warn'>,
): (message: Extract<ChildMessage, ['stray' | 'dropped', ...unknown[]]>) => void {
  const mayTell = createRate(STRAYS_PER_SECOND);
  return (message) => {
    if (!mayTell()) return;
    if (message[0] === 'dropped') {
      log.warn({ executor: pid, bytes: message[1] }, 'skills print too much; bytes were dropped');
      return;
    }
    const [, skill, text] = message;
    const error = cleanText(text.slice(0, ERROR_CHARS_MAX));
    log.warn({ executor: pid, skill, error }, 'code of a skill threw outside of its run');
  };
}

/**
 * The JSON text of the parsed output; undefined when it is too large. NUL and lone surrogates are kept:
 * JSON writes them as escapes, which every database can store.
 */
function writeOutput(value: unknown): string | undefined {
  const json = JSON.stringify(value);
  if (json.length * 3 <= OUTPUT_BYTES_MAX) return json;
  return Buffer.byteLength(json) <= OUTPUT_BYTES_MAX ? json : undefined;
}
