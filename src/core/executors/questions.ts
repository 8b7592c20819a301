/**
 * Answers a run's questions to the platform, through the handlers of its job. Every question gets an
 * answer that fits into a message: a value, or a refusal with a reason.
 */
import { permanentError } from '../../kernel/permanent-error.ts';
import type { RunSettings } from '../skills/settings.ts';
import type { ActiveRun } from './active-run.ts';
import { askBytesMax, envelopeBytes, errorCharsMax } from './limits.ts';
import type { ParentMessage, Refusal } from './protocol.ts';
import { formsOf, type KnownSecrets } from './redaction.ts';

export interface Question {
  readonly id: number;
  readonly kind: string;
  readonly payload: unknown;
  /** The step of the run in which it is asked, null for the run itself. */
  readonly step: number | null;
}

/** The message for the child, as JSON text. Adds to `secrets` those that it tells the child. Never rejects. */
export async function answerQuestion(
  run: ActiveRun,
  question: Question,
  secrets: KnownSecrets,
): Promise<string> {
  run.asking ??= new AbortController();
  const { signal } = run.asking;
  if (run.stopRequest !== undefined) run.asking.abort();
  try {
    const { kind, payload, step } = question;
    const answer = await run.accepted.handlers.onAsk(kind, payload, signal, step);
    if (kind === 'begin-step') {
      const { settings } = answer as { readonly settings?: RunSettings };
      if (settings !== undefined) secrets.add(formsOf(settings.secrets));
    }
    return `["answer",${run.id},${question.id},${answerJson(answer)}]`;
  } catch (error) {
    const message: ParentMessage = ['refuse', run.id, question.id, readRefusal(error)];
    return JSON.stringify(message);
  }
}

/** An answer as JSON text; throws where it is too large. */
function answerJson(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null';
  if (Buffer.byteLength(json) > askBytesMax + envelopeBytes) {
    throw permanentError(`the answer is larger than ${askBytesMax / 1024} KiB`);
  }
  return json;
}

/** What a skill is told of the error that its question met. */
function readRefusal(error: unknown): Refusal {
  if (!(error instanceof Error)) return { message: 'the platform refused' };
  const { code, retryable, at } = error as { code?: unknown; retryable?: unknown; at?: unknown };
  return {
    message: error.message.slice(0, errorCharsMax),
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof retryable === 'boolean' ? { retryable } : {}),
    ...(typeof at === 'number' ? { at } : {}),
  };
}
