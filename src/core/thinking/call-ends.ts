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
import { sizeOfMessages, tokensOfBytes, tokensOfSize } from '../../adapters/models/text-size.ts';
import { cleanText } from '../../kernel/text.ts';
import type { BegunCall, CallEnd } from './generations.ts';
import { ThinkingError } from './thinking-error.ts';

/** UTF-8 bytes of a call's arguments; longer ones are refused. */
const argumentsMax = 262_144;
/** Characters of refused arguments that are kept: in full they could fill the model's window. */
const argumentsKept = 1_000;

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

/** The message in a form to store and send again: clean texts, bounded arguments, unique ids. */
export function normalized(
  message: AssistantMessage,
  step: number,
  earlier: readonly DialogueMessage[],
): AssistantMessage {
  const ids = new Set(
    earlier.flatMap((one) => (one.role === 'assistant' ? one.toolCalls.map(({ id }) => id) : [])),
  );
  const toolCalls = message.toolCalls.map(({ id, name, input }, i) => {
    let own = cleanText(id.slice(0, 200));
    for (let tries = 0; own === '' || ids.has(own); tries++) own = `call_${step}_${i + tries}`;
    ids.add(own);
    const isLong = Buffer.byteLength(input) > argumentsMax;
    return {
      id: own,
      name: cleanText(name.slice(0, 200)),
      input: cleanText(isLong ? input.slice(0, argumentsKept) + tooLong : input),
    };
  });
  const { reasoning } = message;
  const thought = reasoning && { reasoning: { ...reasoning, text: cleanText(reasoning.text) } };
  return { ...message, text: cleanText(message.text), toolCalls, ...thought };
}

/** Appended to cut arguments; makes them invalid JSON. */
const tooLong = '\n[too long]';

/** The error for the model when its arguments were cut; else null. */
export function excessOf({ input }: ToolCall): string | null {
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
    error: { code: faultCodes[fault], message: error.message },
    message: costNothing && text === '' ? null : { role: 'assistant', text, toolCalls: [] },
    usage,
    // Charge the part that arrived: the whole reservation would usually be too much.
    estimated: estimateOf(usage, call, Math.min(call.output, tokensOfBytes(error.seenBytes))),
    tools: [],
  };
}

/** The error's code of a call that failed. */
export const faultCodes = {
  aborted: 'interrupted',
  credentials: 'missing_credentials',
  unavailable: 'upstream_unavailable',
  refused: 'skill_execution_failed',
} as const;
