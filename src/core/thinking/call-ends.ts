/**
 * How a call of a model ends on record: its message in a form to store and send again, and its cost where
 * the provider does not report it.
 */

import {
  type AssistantMessage,
  type DialogueMessage,
  type ModelError,
  nothingSpent,
  type ToolCall,
  type Usage,
} from '../../adapters/models/model.ts';
import type { Opaque } from '../../adapters/models/prompt.ts';
import { sizeOfMessages, tokensOfBytes, tokensOfSize } from '../../adapters/models/text-size.ts';
import { cleanText } from '../../kernel/text.ts';
import { cutText } from './dialogue.ts';
import type { BegunCall, CallEnd } from './generations.ts';
import { ThinkingError } from './thinking-error.ts';

/** UTF-8 bytes of a call's arguments; longer ones are refused. */
const argumentsMax = 262_144;
/** Characters of refused arguments that are kept: in full they could fill the model's window. */
const argumentsKept = 1_000;

/** Characters of a refusal in its error. */
const refusalMax = 500;

/** A budget limited an answer to fewer tokens than it needed. */
export class BudgetCutError extends ThinkingError {
  /** The tokens at which the answer was cut. */
  readonly output: number;

  constructor(output: number) {
    super('budget_exceeded', cutAt(output, 'a budget had left'));
    this.output = output;
  }
}

const cutAt = (output: number, bound: string) =>
  `The answer was cut at ${output} tokens, which is what ${bound}`;

/** The error of an answer that was cut below the tokens asked for, or that is empty; else null. */
export function shortageOf(
  message: AssistantMessage,
  { output }: BegunCall,
  permitted: number,
  wanted: number,
): ThinkingError | null {
  if (output < permitted) return new BudgetCutError(output);
  if (permitted < wanted) {
    const message = cutAt(output, 'the run had left of its tokens');
    return new ThinkingError('skill_execution_failed', message);
  }
  if (message.text.trim() !== '' || message.toolCalls.length > 0) return null;
  return new ThinkingError(
    'skill_execution_failed',
    `The model used up all ${output} tokens of its answer without saying anything, by reasoning most likely: ask for more tokens or less reasoning`,
  );
}

/** What is said of an answer that refuses to answer; its text is bounded. */
export function refusalOf(
  model: string,
  finish: 'content-filter' | 'refusal',
  text: string,
): string {
  const said = text.trim() === '' ? '' : `: ${cutText(text.trim(), refusalMax)}`;
  const who = finish === 'refusal' ? model : `${model}, or the filter of its provider,`;
  return `${who} refused to answer${said}`;
}

/** The end of a call that was recorded as begun and never made. */
export const notMade = {
  status: 'interrupted',
  error: { code: 'worker_lost', message: 'The call was not made' },
  message: null,
  isDialogue: false,
  usage: nothingSpent,
  estimated: 0,
  tools: [],
} as const;

/**
 * The message in a form to store and send again: clean texts, bounded arguments, unique ids. `cutAt` is the limit of
 * tokens that has cut it, else null.
 */
export function normalized(
  message: AssistantMessage,
  { n: step, cutAt }: { readonly n: number; readonly cutAt: number | null },
  earlier: readonly DialogueMessage[],
): AssistantMessage {
  const ids = new Set(
    earlier.flatMap((one) => (one.role === 'assistant' ? one.toolCalls.map(({ id }) => id) : [])),
  );
  const renamed = new Map<string, string>();
  const last = message.toolCalls.length - 1;
  const toolCalls = message.toolCalls.map(({ id, name, input }, i) => {
    let own = cleanText(id.slice(0, 200));
    for (let tries = 0; own === '' || ids.has(own); tries++) own = `call_${step}_${i + tries}`;
    ids.add(own);
    renamed.set(id, own);
    const isCut = cutAt !== null && isUnfinished(input, i === last);
    const isLong = Buffer.byteLength(input) > argumentsMax;
    const kept = isCut || isLong ? input.slice(0, isLong ? argumentsKept : undefined) : input;
    const mark = isCut ? cutMark(cutAt) : isLong ? tooLong : '';
    return { id: own, name: cleanText(name.slice(0, 200)), input: cleanText(kept + mark) };
  });
  const { reasoning } = message;
  const thought = reasoning && { reasoning: { ...reasoning, text: cleanText(reasoning.text) } };
  const opaque = message.opaque as Opaque | undefined;
  return {
    ...message,
    text: cleanText(message.text),
    toolCalls,
    ...thought,
    ...(opaque && { opaque: withIds(opaque, renamed) }),
  };
}

/** The parts of a turn name its calls by their ids. */
function withIds({ model, parts }: Opaque, renamed: ReadonlyMap<string, string>): Opaque {
  const own = parts.map((part) =>
    part.type === 'tool-call' ? { ...part, id: renamed.get(part.id) ?? part.id } : part,
  );
  return { model, parts: own };
}

/** Appended to refused arguments; they make them invalid JSON. */
const tooLong = '\n[too long]';
const cutMark = (tokens: number) => `\n[cut at ${tokens} tokens]`;
const cutMarked = /\n\[cut at (\d{1,9}) tokens\]$/;

/**
 * Whether the limit of a cut answer may have cut these arguments. A call without any is whole only where others follow it;
 * some protocols show none as an empty object.
 */
function isUnfinished(input: string, isLast: boolean): boolean {
  if (['', '{}'].includes(input.trim())) return isLast;
  try {
    JSON.parse(input);
    return false;
  } catch {
    return true;
  }
}

/** The error for the model when its arguments were cut; else null. */
export function excessOf({ input }: ToolCall): string | null {
  const [, tokens] = cutMarked.exec(input.slice(-40)) ?? [];
  if (tokens !== undefined) {
    return `The answer was cut at ${tokens} tokens, the most that one answer may have, in the arguments of this call, so the tool was not called. Call it with shorter arguments, or split the work into several calls`;
  }
  if (!input.endsWith(tooLong)) return null;
  return `The arguments are too long: at most ${argumentsMax / 1024} KiB`;
}

/** The estimated tokens to charge in place of unreported counts. */
export function estimateOf(usage: Usage, { expected }: BegunCall, completion: number): number {
  const prompt = usage.prompt === null ? expected : 0;
  return prompt + (usage.completion === null ? completion : 0);
}

/** The estimated tokens of an answer, capped at its maximum. */
export function lengthOf(message: AssistantMessage, { output }: BegunCall): number {
  return Math.min(output, tokensOfSize(sizeOfMessages([message])));
}

/** The record of a call without an answer, with its partial text and its cost. */
export function failedEnd(error: ModelError, call: BegunCall): Omit<CallEnd, 'isDialogue'> {
  const { fault, usage } = error;
  const text = cleanText(error.text);
  const costNothing = usage.prompt === 0 && usage.completion === 0;
  return {
    status: fault === 'aborted' ? 'interrupted' : 'failed',
    error: { code: codeOf(error), message: error.message },
    message: costNothing && text === '' ? null : { role: 'assistant', text, toolCalls: [] },
    usage,
    // Charge the part that arrived: the whole reservation would usually be too much.
    estimated: estimateOf(usage, call, Math.min(call.output, tokensOfBytes(error.seenBytes))),
    tools: [],
  };
}

/** The error's code of a call that failed. */
export function codeOf({ fault, isDeclined }: ModelError) {
  return isDeclined ? 'model_refused' : faultCodes[fault];
}

const faultCodes = {
  aborted: 'interrupted',
  credentials: 'missing_credentials',
  unavailable: 'upstream_unavailable',
  refused: 'skill_execution_failed',
} as const;
