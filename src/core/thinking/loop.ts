/**
 * The loop of an agent: asks the model, runs the tools that it calls, sends it their results, until it
 * answers without a tool call. Pure: the model and the tools are passed in, and the caller records their
 * results. The loop can start anywhere in a dialogue, so a repeated attempt continues from its record:
 * a finished turn is not asked for again, and a tool that has answered is not called again. The loop
 * always ends, because its turns are bounded.
 */
import type {
  DialogueMessage,
  MadeFile,
  ModelAnswer,
  ToolCall,
  ToolMessage,
} from '../../adapters/models/model.ts';
import { openCalls } from './dialogue.ts';

/** Tools of one turn that run concurrently; the others wait for a slot. */
const toolsAtATime = 8;

/** Asks the model for the turn of this number. Rejects when there will be no answer. */
type AskModel = (
  messages: readonly DialogueMessage[],
  turn: number,
) => Promise<Pick<ModelAnswer, 'message'>>;
/**
 * Runs a tool; its failure is a result too. Rejects only to end the loop, which then waits for the tools that run
 * concurrently.
 */
type RunTool = (call: ToolCall) => Promise<ToolMessage>;

/** What the user has said by the end of the turn of this number, with its tools. */
type TakeMessages = (turn: number) => Promise<readonly DialogueMessage[]>;

/** Where the loop begins. */
export interface LoopState {
  /** The dialogue up to the task, and the recorded turns and results that follow it. */
  readonly messages: readonly DialogueMessage[];
  /** Index of the task in `messages`. */
  readonly task: number;
  /** Turns that are in `messages`. */
  readonly turns: number;
  /** The corrections to earlier answers; the first answer after them is the result. */
  readonly corrections: readonly string[];
}

export interface LoopResult {
  readonly text: string;
  /** Whether the token limit cut the text. */
  readonly isCut: boolean;
  readonly turns: number;
  /** The pictures that the model has made; absent without any. */
  readonly files?: readonly MadeFile[];
}

/** The loop reached its maximum of turns without an answer that holds; a retry would reach it too. */
export class LoopError extends Error {
  override readonly name = 'LoopError';
}

/** The dialogue of a loop, with as many corrections as its answers have got. */
interface Dialogue {
  readonly messages: DialogueMessage[];
  readonly corrections: readonly string[];
  corrected: number;
  readonly files: MadeFile[];
}

/** The recorded result among the messages after the task; undefined when the loop has to go on. */
export function recordedResult(
  recorded: readonly DialogueMessage[],
  { turns, corrections }: Pick<LoopState, 'turns' | 'corrections'>,
): LoopResult | undefined {
  return replay({ messages: [], corrections, corrected: 0, files: [] }, recorded, turns);
}

function replay(
  dialogue: Dialogue,
  recorded: readonly DialogueMessage[],
  turns: number,
): LoopResult | undefined {
  for (const message of recorded) {
    const result = add(dialogue, message);
    if (result !== undefined) return { ...result, turns };
  }
  return undefined;
}

/** Adds a message to the dialogue. Returns the result if the message ends the loop. */
function add(dialogue: Dialogue, message: DialogueMessage): Omit<LoopResult, 'turns'> | undefined {
  const { messages, corrections } = dialogue;
  messages.push(message);
  if (message.role === 'assistant') dialogue.files.push(...(message.files ?? []));
  if (message.role !== 'assistant' || message.toolCalls.length > 0) return undefined;
  const correction = corrections[dialogue.corrected];
  if (correction === undefined) {
    const { text, isCut = false } = message;
    const { files } = dialogue;
    return files.length > 0 ? { text, isCut, files } : { text, isCut };
  }
  dialogue.corrected += 1;
  messages.push({ role: 'user', text: correction });
  return undefined;
}

export async function runLoop(
  { messages: begun, task, turns, corrections }: LoopState,
  turnsMax: number,
  askModel: AskModel,
  runTool: RunTool,
  takeMessages: TakeMessages = async () => [],
): Promise<LoopResult> {
  const messages: DialogueMessage[] = [...begun.slice(0, task + 1)];
  const dialogue: Dialogue = { messages, corrections, corrected: 0, files: [] };
  let turn = turns;

  const recorded = replay(dialogue, begun.slice(task + 1), turns);
  if (recorded !== undefined) return recorded;
  for (;;) {
    const calls = openCalls(messages.slice(task));
    if (calls.length > 0) messages.push(...(await runTools(calls, runTool)));
    if (turn >= turnsMax) {
      throw new LoopError(`The model did not come to an answer within ${turnsMax} turns`);
    }
    if (turn > 0) messages.push(...(await takeMessages(turn)));
    turn += 1;
    const { message } = await askModel(messages, turn);
    const result = add(dialogue, message);
    if (result !== undefined) return { ...result, turns: turn };
  }
}

/** Runs the tools. Returns their results in the order of the calls. */
async function runTools(calls: readonly ToolCall[], runTool: RunTool): Promise<ToolMessage[]> {
  const answers: ToolMessage[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < calls.length && failures.length === 0) {
      const at = next++;
      try {
        answers[at] = await runTool(calls[at] as ToolCall);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(toolsAtATime, calls.length) }, work));
  if (failures.length > 0) throw failures[0];
  return answers;
}
