/** The state of one run of a remote skill, and what its call may do with it. */
import { logCharsMax, noteCharsMax } from '../../core/executors/limits.ts';
import { addSecrets, redacted } from '../../core/executors/redaction.ts';
import type { RunHandlers, RunOutcome, RunRequest } from '../../core/executors/run.ts';
import type { JsonSchema } from '../../kernel/json-schema.ts';
import { cleanText } from '../../kernel/text.ts';
import { TimeLimit } from '../../kernel/time-limit.ts';
import { type Asker, askHeld } from './ask-person.ts';
import { type RemoteSkill, withoutInvisible } from './definitions.ts';
import type { RemoteAnswers, RemoteRun } from './remote-kind.ts';

/** Least time between two reports of progress, and most lines of a log. */
const progressMs = 100;
const logLinesMax = 200;

/** The state of one run. */
export interface Running {
  readonly request: RunRequest;
  readonly stop: AbortController;
  readonly timeout: TimeLimit;
  readonly handlers: RunHandlers;
  /** Aborts when the run ends. */
  readonly end: AbortController;
  /** Whether the run only waits for people, so that it may be suspended. */
  isWaiting: boolean;
  /** Lines of its log. */
  lines: number;
  readonly unloaded: PromiseWithResolvers<RunOutcome>;
  /** Whether the service may have received the call. */
  isSent: boolean;
  skill: RemoteSkill | undefined;
  /** The schema of its output; null where any output is valid. */
  outputSchema: JsonSchema | null;
  /** Of the source, in the forms that are kept out of what the service says. */
  secrets: readonly string[] | undefined;
}

export function newRunning(request: RunRequest, handlers: RunHandlers): Running {
  return {
    ...{ request, handlers, isSent: false, skill: undefined },
    ...{ outputSchema: null, secrets: undefined },
    ...{ isWaiting: false, lines: 0, unloaded: Promise.withResolvers() },
    ...{ stop: new AbortController(), end: new AbortController() },
    timeout: new TimeLimit(request.timeoutMs),
  };
}

export function askerOf(
  running: Running,
  tool: string,
  signal: AbortSignal,
  hold: Asker['hold'],
): Asker {
  const { handlers, end } = running;
  return {
    ...{ tool, handlers, hold, asked: new Map<string, number>() },
    // A call may learn more of them, such as a token.
    get secrets() {
      return running.secrets;
    },
    signal: AbortSignal.any([signal, end.signal]),
    say: (line) => logLine(running, line),
  };
}

export function remoteRunOf(
  running: Running,
  signal: AbortSignal,
  asker: Asker,
  answered: RemoteAnswers | null,
): RemoteRun {
  const { request, handlers, timeout } = running;
  let reportedAt = Number.NEGATIVE_INFINITY;
  let held = 0;
  return {
    signal,
    timeoutMs: request.timeoutMs,
    organizationId: request.context.organizationId,
    answered,
    async ask(question) {
      held += 1;
      timeout.pause();
      try {
        return await askHeld(asker, question);
      } finally {
        held -= 1;
        if (held === 0) timeout.resume();
      }
    },
    sending() {
      running.isSent = true;
    },
    progress(fraction, note) {
      const now = performance.now();
      if (signal.aborted || now - reportedAt < progressMs) return;
      reportedAt = now;
      const clamped = Math.min(1, Math.max(0, fraction));
      if (!Number.isFinite(clamped)) return;
      const said = note === undefined ? {} : { note: saidText(running, note, noteCharsMax) };
      handlers.onReport({ type: 'progress', fraction: clamped, ...said });
    },
    addSecret(text) {
      addSecrets(running, [text]);
    },
    log: (message, level) => logLine(running, message, level),
  };
}

/** Reports a line to the log of the run, until it has ended and up to a bound. */
export function logLine(running: Running, message: string, level?: string): void {
  const { handlers, end } = running;
  running.lines += 1;
  if (end.signal.aborted || running.lines > logLinesMax) return;
  const line = saidText(running, message, logCharsMax);
  const fields = level === undefined ? {} : { fields: { level } };
  handlers.onReport({ type: 'log', message: line, ...fields, at: Date.now() });
}

/** What a service says, for people. Cleaned first: a secret with an invisible character in it would not be found. */
function saidText(running: Running, text: string, charsMax: number): string {
  return cleanText(redacted(running, withoutInvisible(text)).slice(0, charsMax));
}
