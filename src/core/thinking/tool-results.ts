/** What a tool results in, for the model, the conversation and the clients that follow the job. */
import type {
  AttachedFile,
  GivenFile,
  ToolCall,
  ToolMessage,
} from '../../adapters/models/model.ts';
import type { RunMessage } from '../jobs/settle-effects.ts';
import type { StepError } from '../journal/step-rows.ts';
import type { ThinkingAttempt } from './attempt.ts';
import { cutResultText, cutText } from './dialogue.ts';
import type { PlannedTool } from './recorded-generation.ts';
import { keepsResult } from './recorded-results.ts';
import { resultText } from './result-text.ts';

/** Characters of a result that is sent to a model. */
const resultMax = 50_000;
/** Characters of the JSON of an input or output in events and messages. */
const previewMax = 30_000;
/** Characters of an answer in its `message` event; the `token` events carry all of it. */
export const messageShownMax = 60_000;

export interface ToolOutcome {
  /** JSON value. */
  readonly output?: unknown;
  readonly error?: StepError;
  /** The message for the model and the conversation; the step keeps the error's own message. */
  readonly shown?: string;
  readonly messages?: readonly RunMessage[] | undefined;
}

/** Files that a message or a result names: as they are, and others in words, which `texts` has. */
export interface NamedFiles {
  readonly texts: readonly string[];
  readonly worded: readonly GivenFile[];
  readonly files: readonly AttachedFile[];
}

export const noFiles: NamedFiles = { texts: [], worded: [], files: [] };

/** An outcome as the conversation and the stream have it. */
export type ShownOutcome = { readonly output: unknown } | { readonly error: StepError };

export function shownOutcome({ output, error, shown }: ToolOutcome): ShownOutcome {
  if (error === undefined) return { output };
  return { error: { ...error, message: shown ?? error.message } };
}

/** The message for the model, and the whole result where that is longer. */
export function messageOf(
  attempt: ThinkingAttempt,
  tool: PlannedTool,
  outcome: ToolOutcome,
  { texts, worded, files }: NamedFiles,
) {
  const shown = shownOutcome(outcome);
  const isError = 'error' in shown;
  const said = isError ? shown.error.message : resultText(shown.output);
  const text = [said, ...texts].join('\n\n');
  return resultMessage(attempt, tool, { text, isError, worded, files });
}

/** The same of a text. */
export function resultMessage(
  { generations, run }: ThinkingAttempt,
  { n, call: { id: callId, name } }: PlannedTool,
  { text, isError, worded = [], files = [] }: Omit<ToolMessage, 'role' | 'callId' | 'name'>,
): { message: ToolMessage; whole: string | null } {
  const shown = {
    ...(worded.length > 0 && { worded }),
    ...(files.length > 0 && { files }),
  };
  const message = { role: 'tool', callId, name, text, isError, ...shown } as const;
  if (text.length <= resultMax) return { message, whole: null };
  if (!keepsResult(generations, text)) {
    return { message: { ...message, text: cutText(text, resultMax) }, whole: null };
  }
  const whole = { job: run.job.id, step: n, characters: text.length };
  const cut = cutResultText({ ...message, whole }, resultMax);
  return { message: { ...message, text: cut, whole }, whole: text };
}

/** An outcome as messages and events have it: of a long output the beginning. */
export const previewOf = (shown: ShownOutcome): ShownOutcome =>
  'error' in shown ? shown : { output: preview(shown.output) };

/** The content of the conversation's message: the tool, its input and its result. */
export function contentOf(call: ToolCall, tool: string, shown: ShownOutcome): string {
  return JSON.stringify({ tool, input: previewOfJson(call.input), ...previewOf(shown) });
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

/** A value for events and messages: itself, or the start of its JSON when that is too long. */
function preview(value: unknown): unknown {
  const json = textOf(value);
  return json.length <= previewMax ? (value ?? null) : cutText(json, previewMax);
}

/** The same for arguments, which may be invalid JSON. */
export function previewOfJson(text: string): unknown {
  try {
    return preview(text.trim() === '' ? {} : JSON.parse(text));
  } catch {
    return cutText(text, previewMax);
  }
}
