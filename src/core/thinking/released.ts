/**
 * Messages that are held until the guards of their agent have seen them: a model's answer and a tool's result are on record
 * before their guards run, so that neither is paid for or run again; users and models get them afterwards. What the user says is judged before the
 * model is asked.
 */
import type {
  AssistantMessage,
  DialogueMessage,
  ToolMessage,
} from '../../adapters/models/model.ts';
import { messageText } from '../jobs/message-text.ts';
import { findToolResult } from '../journal/step-queries.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import { lookupOf } from '../skills/registry.ts';
import { type BegunGeneration, report, type ThinkingAttempt } from './attempt.ts';
import { cutContent } from './generations.ts';
import { recordRelease, recordTask } from './guard-records.ts';
import { reportMessage } from './made-files.ts';
import type { HeldMessage, PlannedTool, RecordedGeneration } from './recorded-generation.ts';
import { TextBatches } from './text-batches.ts';
import type { Judged, TextGuards } from './text-guards.ts';
import { ThinkingError } from './thinking-error.ts';
import { contentOf, previewOf, resultMessage } from './tool-results.ts';

/** The prompt as the guards have left it. Rejects with a ThinkingError where one refuses it. */
export async function passTask(
  attempt: ThinkingAttempt,
  guards: TextGuards,
  { prompt, isDialogue }: { readonly prompt: string; readonly isDialogue: boolean },
  scope: WaitScope,
  parent: number | null,
): Promise<string> {
  if (!guards.judges('message')) return prompt;
  const judged = await guards.judge({ on: 'message', text: prompt, key: 'message', parent }, scope);
  const text = judgedText(judged);
  if (isDialogue) await changeTask(attempt, prompt, text, judged.kind === 'refused');
  if (judged.kind === 'refused') throw refusal('message', judged.reason);
  return text;
}

/** What models and users get in place of a message of the user. */
export function judgedText(judged: Judged): string {
  return judged.kind === 'passed' ? judged.text : `[refused by a guard: ${judged.reason}]`;
}

/** Changes the message in the conversation where it is the task; the input of the job stays as it is. */
async function changeTask(
  { parts, run, generations }: ThinkingAttempt,
  prompt: string,
  text: string,
  isRefused: boolean,
): Promise<void> {
  const { job } = run;
  const field = parts.skills.definition(...lookupOf(job.organization_id, job))?.taskField ?? null;
  const changed = inputWithTask(job.input, field, prompt, text, isRefused);
  if (changed !== null) await recordTask(generations, messageText(changed));
}

/** The input with another task, as JSON; of a refused one nothing else. Null where the prompt is not its task. */
export function inputWithTask(
  json: string,
  field: string | null,
  task: string,
  text: string,
  isRefused: boolean,
): string | null {
  const input = JSON.parse(json) as Record<string, unknown>;
  if (field === null || input[field] !== task) return null;
  return JSON.stringify(isRefused ? { [field]: text } : { ...input, [field]: text });
}

/** The recorded messages, of which those that were held have been released. */
export async function releaseHeld(
  begun: BegunGeneration,
  { messages, held }: RecordedGeneration,
): Promise<readonly DialogueMessage[]> {
  const released = new Map<DialogueMessage, DialogueMessage>();
  for (const one of held) released.set(one.message, await releaseOne(begun, one));
  return messages.map((message) => released.get(message) ?? message);
}

async function releaseOne(begun: BegunGeneration, held: HeldMessage): Promise<DialogueMessage> {
  const { n } = held;
  if (held.tool === null) return releaseAnswer(begun, n, held.message);
  const { message, tool, code } = held;
  const { job, journal } = begun.attempt.generations;
  const of = { job_id: job.id, n };
  const row = message.whole && (await findToolResult(journal.database.read, of));
  const whole = row?.result == null ? null : (JSON.parse(row.result) as string);
  return releaseResult(begun, tool, { message, whole, code });
}

/** The answer as its guards have left it, which users and the model get from now on. */
export async function releaseAnswer(
  { attempt, generation, guards, scope }: BegunGeneration,
  n: number,
  message: AssistantMessage,
): Promise<AssistantMessage> {
  const { generations } = attempt;
  const text = { on: 'answer', text: message.text, key: `answer/${n}`, parent: n } as const;
  const judged = await guards.judge(text, scope);
  if (judged.kind === 'refused') {
    const content = judgedText(judged);
    await recordRelease(generations, { n, content, data: null, isDialogue: false });
    throw refusal('answer', judged.reason);
  }
  const released = judged.isReplaced ? withText(message, judged.text) : message;
  await recordRelease(generations, {
    n,
    content: cutContent(released.text),
    data: JSON.stringify(released),
    isDialogue: generation.isDialogue,
  });
  reportAnswer(attempt, n, released);
  return released;
}

/**
 * What a provider has signed, and what it has reasoned, belongs to the text before. With calls of tools some providers require
 * reasoning back, and accept any.
 */
function withText(message: AssistantMessage, text: string): AssistantMessage {
  const { opaque: _opaque, reasoning, ...own } = message;
  if (reasoning === undefined || own.toolCalls.length === 0) return { ...own, text };
  return { ...own, text, reasoning: { ...reasoning, text: '[withheld]' } };
}

function reportAnswer(attempt: ThinkingAttempt, step: number, message: AssistantMessage): void {
  const { text } = message;
  const batches = new TextBatches((part) =>
    report(attempt, { type: 'token', data: { step, text: part } }),
  );
  batches.add(text);
  batches.end();
  reportMessage(attempt, step, message);
}

interface HeldResult {
  readonly message: ToolMessage;
  readonly whole: string | null;
  /** Of its error; null without one. */
  readonly code: string | null;
}

/** The result of a tool as its guards have left it; one that they refuse becomes an error for the model. */
export async function releaseResult(
  { attempt, generation, guards, scope }: BegunGeneration,
  tool: PlannedTool,
  { message, whole, code }: HeldResult,
): Promise<ToolMessage> {
  const { n, call, name } = tool;
  const given = whole ?? message.text;
  const text = { on: 'tool_result', tool: name, text: given, key: `tool/${n}`, parent: n } as const;
  const judged = await guards.judge(text, scope);
  const result =
    judged.kind === 'refused'
      ? { text: `The result of ${name} was withheld: ${judged.reason}`, code: 'guard_refused' }
      : { text: judged.text, code };
  const isUnchanged = judged.kind === 'passed' && !judged.isReplaced;
  const made = isUnchanged
    ? { message, whole }
    : resultMessage(attempt, tool, {
        text: result.text,
        isError: result.code !== null,
        ...(judged.kind !== 'refused' && { worded: message.worded, files: message.files }),
      });
  const shown =
    result.code === null
      ? { output: outputIn(result.text) }
      : { error: { code: result.code, message: result.text } };
  await recordRelease(
    attempt.generations,
    {
      n,
      content: cutContent(contentOf(call, name, shown)),
      data: JSON.stringify(made.message),
      isDialogue: generation.isDialogue,
    },
    isUnchanged ? undefined : made.whole,
  );
  report(attempt, {
    type: 'tool_result',
    data: { step: n, call_id: call.id, tool: name, ...previewOf(shown) },
  });
  return made.message;
}

/** An output as it is shown. */
function outputIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function refusal(what: 'message' | 'answer', reason: string): ThinkingError {
  return new ThinkingError('guard_refused', `The ${what} was refused: ${reason}`);
}
