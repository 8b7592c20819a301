/** The state of one run of a remote skill, and what its call may do with it. */
import { logCharsMax, noteCharsMax } from '../../core/executors/limits.ts';
import { addSecrets, redacted } from '../../core/executors/redaction.ts';
import type { RunHandlers, RunOutcome, RunRequest } from '../../core/executors/run.ts';
import type { JsonSchema } from '../../kernel/json-schema.ts';
import { cleanText } from '../../kernel/text.ts';
import { TimeLimit } from '../../kernel/time-limit.ts';
import { askHeld } from './ask-person.ts';
import { type RemoteSkill, withoutInvisible } from './definitions.ts';
import type { HeldQuestions } from './held-questions.ts';
import type { PersonAnswer, PersonQuestion, RemoteAnswers } from './remote-kind.ts';

/** Least time between two reports of progress, and most lines of a log. */
const progressMs = 100;
const logLinesMax = 200;

export class RemoteRun {
  readonly request: RunRequest;
  readonly handlers: RunHandlers;
  readonly timeout: TimeLimit;
  readonly stop = new AbortController();
  /** Aborts when the run ends. */
  readonly end = new AbortController();
  /** Aborts at the deadline and where the run is asked to stop; the call is to be cancelled then. */
  readonly signal: AbortSignal;
  /** Aborts with `signal`, and when the run ends. */
  readonly questionSignal: AbortSignal;
  readonly unloaded = Promise.withResolvers<RunOutcome>();
  /** Questions so far, by their digests. */
  readonly questions = new Map<string, number>();
  /** Whether the run only waits for people, so that it may be suspended. */
  isWaiting = false;
  /** Whether the service may have received the call. */
  isSent = false;
  skill: RemoteSkill | undefined;
  /** The schema of its output; null where any output is valid. */
  outputSchema: JsonSchema | null = null;
  /** Of the source, in the forms that are redacted from the service's texts. A call may add some, such as a token. */
  secrets: readonly string[] | undefined;
  /** The answers to the questions of the previous call; null for the first one. */
  answered: RemoteAnswers | null = null;
  readonly #held: HeldQuestions;
  readonly #sourceId: string;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #logLines = 0;
  #openQuestions = 0;
  #call = new AbortController();

  constructor(request: RunRequest, handlers: RunHandlers, held: HeldQuestions, sourceId: string) {
    this.request = request;
    this.handlers = handlers;
    this.timeout = new TimeLimit(request.timeoutMs);
    this.signal = AbortSignal.any([this.stop.signal, this.timeout.signal]);
    this.questionSignal = AbortSignal.any([this.signal, this.end.signal]);
    this.#held = held;
    this.#sourceId = sourceId;
  }

  get tool(): string {
    return this.skill?.tool ?? '';
  }

  /** A service gets the account of this organization and no other's. */
  get organizationId(): string {
    return this.request.context.organizationId;
  }

  /** Call it before sending anything that may have an effect. */
  sending(): void {
    this.isSent = true;
  }

  progress(fraction: number, note?: string): void {
    const now = performance.now();
    if (this.signal.aborted || now - this.#reportedAt < progressMs) return;
    this.#reportedAt = now;
    const clamped = Math.min(1, Math.max(0, fraction));
    if (!Number.isFinite(clamped)) return;
    const noted = note === undefined ? {} : { note: this.#shown(note, noteCharsMax) };
    this.handlers.onReport({ type: 'progress', fraction: clamped, ...noted });
  }

  /**
   * Reports a line to the log of the run, until it has ended and up to a bound; `level` is what the service calls it.
   */
  log(message: string, level?: string): void {
    this.#logLines += 1;
    if (this.end.signal.aborted || this.#logLines > logLinesMax) return;
    const line = this.#shown(message, logCharsMax);
    const fields = level === undefined ? {} : { fields: { level } };
    this.handlers.onReport({ type: 'log', message: line, ...fields, at: Date.now() });
  }

  /** Aborts with `questionSignal`, and when the call under way has ended. */
  get callSignal(): AbortSignal {
    return AbortSignal.any([this.questionSignal, this.#call.signal]);
  }

  /** Ends the open questions of a call: they must not stop the time limit of the next one. */
  endCall(): void {
    this.#call.abort();
    this.#call = new AbortController();
  }

  /** Asks a person while the call is under way. The time limit is paused meanwhile. */
  async ask(question: PersonQuestion): Promise<PersonAnswer> {
    this.#openQuestions += 1;
    this.timeout.pause();
    try {
      return await askHeld(this, question);
    } finally {
      this.#openQuestions -= 1;
      if (this.#openQuestions === 0) this.timeout.resume();
    }
  }

  /** Takes a place for an open call; returns the function that releases it, or the reason why there is none. */
  hold(): (() => void) | string {
    return this.#held.hold(this.#sourceId, this.organizationId);
  }

  /** Adds a secret that the call has obtained, such as a token, to those that are redacted from the service's texts. */
  addSecret(text: string): void {
    addSecrets(this, [text]);
  }

  /** A text of a service, for people. Cleaned first: a secret with an invisible character in it would not be found. */
  #shown(text: string, charsMax: number): string {
    return cleanText(redacted(this, withoutInvisible(text)).slice(0, charsMax));
  }
}
