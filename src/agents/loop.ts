/**
 * The loop: asks the model, runs the tools that it calls, tells it what they gave, until it answers
 * without calling any. Pure: the model and the tools are passed in, and whoever passes them in records
 * what they do. It begins anywhere in a dialogue, so a run that broke off goes on with what is
 * recorded: a turn that is finished is not asked for again, a tool that has answered is not called
 * again. It ends always, for its turns are bounded.
 */
import type { DialogueMessage, ModelAnswer, ToolCall, ToolMessage } from '../models/model.ts';
import { openCalls } from './dialogue.ts';

/** Tools of one turn that run at a time; the others wait for a place. */
const toolsAtATime = 8;

export interface LoopParts {
  /** Asks the model for the turn of this number. Rejects when there will be no answer. */
  ask(messages: readonly DialogueMessage[], turn: number): Promise<Pick<ModelAnswer, 'message'>>;
  /**
   * Runs a tool; what goes wrong in it is an answer too. Rejects only when the loop has to end, which
   * it then does once the tools that run beside it have ended.
   */
  runTool(call: ToolCall, turn: number): Promise<ToolMessage>;
}

/** Where the loop begins. */
export interface LoopState {
  /** The dialogue up to the task, and what the model and its tools have said to it already. */
  readonly messages: readonly DialogueMessage[];
  /** Index of the task in `messages`. */
  readonly task: number;
  /** Turns that are in `messages`. */
  readonly turns: number;
  /** What was wrong with the answers to the task so far; the first answer after them is the result. */
  readonly corrections: readonly string[];
}

export interface LoopResult {
  readonly text: string;
  /** Whether the text ended because it had reached its most tokens. */
  readonly isCut: boolean;
  readonly turns: number;
}

/** The loop has come to its bound; running it again would come to it again. */
export class LoopError extends Error {
  override readonly name = 'LoopError';
}

export async function runLoop(
  parts: LoopParts,
  { messages: begun, task, turns, corrections }: LoopState,
  turnsMax: number,
): Promise<LoopResult> {
  const messages: DialogueMessage[] = [...begun.slice(0, task + 1)];
  let corrected = 0;
  let turn = turns;

  /** Adds to the dialogue; what it results in, if that is its end. */
  function add(message: DialogueMessage): Omit<LoopResult, 'turns'> | undefined {
    messages.push(message);
    if (message.role !== 'assistant' || message.toolCalls.length > 0) return undefined;
    const correction = corrections[corrected];
    if (correction === undefined) return { text: message.text, isCut: message.isCut === true };
    corrected += 1;
    messages.push({ role: 'user', text: correction });
    return undefined;
  }

  for (const message of begun.slice(task + 1)) {
    const result = add(message);
    if (result !== undefined) return { ...result, turns };
  }
  for (;;) {
    const calls = openCalls(messages.slice(task));
    if (calls.length > 0) messages.push(...(await runTools(parts, calls, turn)));
    if (turn >= turnsMax) {
      throw new LoopError(`The model did not come to an answer within ${turnsMax} turns`);
    }
    turn += 1;
    const { message } = await parts.ask(messages, turn);
    const result = add(message);
    if (result !== undefined) return { ...result, turns: turn };
  }
}

/** The tools' answers, in the order in which the model called them. */
async function runTools(
  { runTool }: LoopParts,
  calls: readonly ToolCall[],
  turn: number,
): Promise<ToolMessage[]> {
  const answers: ToolMessage[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < calls.length && failures.length === 0) {
      const at = next++;
      try {
        answers[at] = await runTool(calls[at] as ToolCall, turn);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(toolsAtATime, calls.length) }, work));
  if (failures.length > 0) throw failures[0];
  return answers;
}
