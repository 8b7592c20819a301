/**
 * What is on record of a generation, read back: the dialogue so far, what it cost, what its tools did,
 * and which of them have not answered. Pure.
 */
import type { MemoryChange } from '../memories/run-memory.ts';
import {
  type AssistantMessage,
  type DialogueMessage,
  mayBeCharged,
  type ToolCall,
  type ToolMessage,
  type Usage,
} from '../models/model.ts';

import type { StepRow } from './steps.store.ts';

/** A tool that is about to run. */
export interface PlannedTool {
  readonly n: number;
  readonly call: ToolCall;
  /** What it is called on record. */
  readonly name: string;
}

/** What a call cost; `estimated` tokens stand in for what was not reported. */
export interface CallCost {
  readonly usage: Usage;
  readonly estimated: number;
}

/** What is on record of a generation. */
export interface RecordedGeneration {
  readonly messages: readonly DialogueMessage[];
  readonly turns: number;
  /** Of all its calls, also of those that gave no answer. */
  readonly costs: readonly CallCost[];
  /** Calls of each turn that gave no answer and may have been charged by the provider. */
  readonly unanswered: ReadonlyMap<number, number>;
  /** Tools that were called and have not answered, by the call's id. */
  readonly open: ReadonlyMap<string, PlannedTool>;
  /** What its tools did to the agent's memory, in order. */
  readonly memory: readonly MemoryChange[];
}

export const nothingRecorded: RecordedGeneration = {
  messages: [],
  turns: 0,
  costs: [],
  unanswered: new Map(),
  open: new Map(),
  memory: [],
};

/** The dialogue of a generation from its steps, each turn's answers after its calls. */
export function readRecord(
  rows: readonly StepRow[],
  data: ReadonlyMap<string, string>,
  model: string,
): RecordedGeneration {
  const messages: DialogueMessage[] = [];
  const costs: CallCost[] = [];
  const unanswered = new Map<number, number>();
  const open = new Map<string, PlannedTool>();
  const memory: MemoryChange[] = [];
  let turns = 0;
  const messageOf = <M extends DialogueMessage>({ message_id }: StepRow): M | undefined => {
    const json = message_id === null ? undefined : data.get(message_id);
    return json === undefined ? undefined : (JSON.parse(json) as M);
  };
  const calls = rows.filter(({ kind }) => kind === 'model').sort((a, b) => a.turn - b.turn);
  for (const call of calls) {
    const usage = { prompt: call.prompt_tokens, completion: call.completion_tokens };
    costs.push({ usage, estimated: call.estimated });
    if (call.status === 'failed' && mayBeCharged(usage)) {
      unanswered.set(call.turn, 1 + (unanswered.get(call.turn) ?? 0));
    }
    if (call.status !== 'completed') continue;
    const answer = messageOf<AssistantMessage>(call);
    if (answer === undefined) continue;
    turns = call.turn;
    const { opaque: _opaque, reasoning: _reasoning, ...plain } = answer;
    messages.push(call.name === model ? answer : plain);
    const tools = new Map(
      rows
        .filter(({ kind, turn }) => kind === 'tool' && turn === call.turn)
        .map((row) => [row.call_id, row]),
    );
    for (const asked of answer.toolCalls) {
      const tool = tools.get(asked.id);
      if (tool === undefined) continue;
      const said = messageOf<ToolMessage>(tool);
      if (said === undefined) {
        open.set(asked.id, { n: tool.n, call: asked, name: tool.name });
        continue;
      }
      messages.push(said);
      if (tool.memory !== null) memory.push(...(JSON.parse(tool.memory) as MemoryChange[]));
    }
  }
  return { messages, turns, costs, unanswered, open, memory };
}
