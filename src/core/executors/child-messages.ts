/**
 * Takes the messages of a child about its runs: reports, questions and outcomes. Ignores messages about
 * runs that are not active, passes on what is within the limits, and reports the rest as garbled.
 */
import { cleanText } from '../../kernel/text.ts';
import { type ActiveRun, countAsk, readReport } from './active-run.ts';
import type { ExecutorState } from './executor-end.ts';
import { errorCharsMax, logCharsMax, outputBytesMax } from './limits.ts';
import type { ChildMessage } from './protocol.ts';
import { answerQuestion, type Question } from './questions.ts';

type Message<Kind extends ChildMessage[0]> = Extract<ChildMessage, [Kind, ...unknown[]]>;
type Report = Message<'log' | 'progress' | 'message'>;

/** Takes a message about a run. Returns why it is garbled, or undefined. */
export function takeRunMessage(
  executor: ExecutorState,
  message: Report | Message<'done' | 'fail' | 'waiting' | 'ask' | 'print'>,
): string | undefined {
  const run = executor.activeRuns.get(message[1]);
  if (run === undefined) return undefined;
  switch (message[0]) {
    case 'done':
      return takeOutput(executor, run, message[2]);
    case 'fail':
      takeFailure(executor, run, message);
      return undefined;
    case 'waiting':
      if (!run.isSuspending) return 'a run that waits without having been asked to';
      executor.activeRuns.finish(run, { kind: 'waiting' });
      return undefined;
    case 'print':
      takePrint(executor, run, message);
      return undefined;
    case 'ask': {
      if (!countAsk(run)) return 'more questions than a run may ask at once';
      const [, , id, kind, payload, step] = message;
      void answer(executor, run, { id, kind, payload, step });
      return undefined;
    }
    default:
      takeReport(executor, run, message);
      return undefined;
  }
}

/** Logs a message that belongs to no run; only a bounded number of them in a second. */
export function logStrayMessage(
  { child: { pid }, settings: { log }, console }: ExecutorState,
  message: Message<'stray' | 'dropped'>,
): void {
  if (!console.strays.spend()) return;
  if (message[0] === 'dropped') {
    log.warn({ executor: pid, bytes: message[1] }, 'skills print too much; bytes were dropped');
    return;
  }
  const [, skill, text] = message;
  const error = cleanText(text.slice(0, errorCharsMax));
  log.warn({ executor: pid, skill, error }, 'code of a skill threw outside of its run');
}

function takeOutput(
  { activeRuns }: ExecutorState,
  run: ActiveRun,
  value: unknown,
): string | undefined {
  const output = writeOutput(value);
  if (output === undefined) return 'an output that is too large';
  activeRuns.finish(run, { kind: 'completed', output });
  return undefined;
}

/**
 * The JSON text of the parsed output; undefined when it is too large. NUL and lone surrogates are kept:
 * JSON writes them as escapes, which every database can store.
 */
function writeOutput(value: unknown): string | undefined {
  const json = JSON.stringify(value);
  if (json.length * 3 <= outputBytesMax) return json;
  return Buffer.byteLength(json) <= outputBytesMax ? json : undefined;
}

function takeFailure(
  { activeRuns }: ExecutorState,
  run: ActiveRun,
  [, , code, text, retryable, stack, retryAfterMs]: Message<'fail'>,
): void {
  activeRuns.finish(run, {
    kind: 'failed',
    code,
    message: cleanText(text.slice(0, errorCharsMax)),
    retryable,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...(stack === null ? {} : { stack: cleanText(stack.slice(0, errorCharsMax)) }),
  });
}

function takeReport({ settings }: ExecutorState, run: ActiveRun, message: Report): void {
  const report = readReport(run, message, settings.clock.now());
  if (report === undefined) return;
  try {
    run.accepted.handlers.onReport(report);
  } catch (error) {
    settings.log.error({ err: error }, 'a report of a run could not be taken');
  }
}

/** Logs a run's console output for the operator; bounded here and in the child. */
function takePrint(
  { settings, console }: ExecutorState,
  run: ActiveRun,
  [, , stream, text]: Message<'print'>,
): void {
  if (!console.printed.spend(text.length)) return;
  const { skill, context } = run.accepted.request;
  const printedText = cleanText(text.slice(0, logCharsMax));
  settings.log.info({ job_id: context.jobId, skill, [stream]: printedText }, 'skill output');
}

async function answer(
  { activeRuns, channel, console }: ExecutorState,
  run: ActiveRun,
  question: Question,
): Promise<void> {
  const message = await answerQuestion(run, question, console.secrets);
  run.asks -= 1;
  if (activeRuns.get(run.id) === run) channel.push(message);
}
