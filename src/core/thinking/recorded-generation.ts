/**
 * A generation as its steps record it: the dialogue so far, its cost, the memory changes of its tools,
 * the tools that have not answered, and its failure. Pure.
 */

import {
  type AssistantMessage,
  type DialogueMessage,
  mayBeCharged,
  type ToolCall,
  type ToolMessage,
  type Usage,
} from '../../adapters/models/model.ts';
import type { GuardVerdict } from '../agents/guards.ts';
import type { RuleDecision } from '../agents/tool-rules.ts';
import { costsOf } from '../journal/call-costs.ts';
import type { StepFailure } from '../journal/journal-steps.ts';
import type { StepOfGeneration } from '../journal/step-queries.ts';
import type { StepError } from '../journal/step-rows.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import { triesKey, type Unanswered } from './call-retries.ts';
import type { Summary } from './compaction-plan.ts';
import type { BegunCall } from './generations.ts';
import { withoutMark } from './guard-records.ts';
import type { GuardStep } from './text-guards.ts';

/** A tool that is about to run. */
export interface PlannedTool {
  readonly n: number;
  readonly call: ToolCall;
  /** The name on record. */
  readonly name: string;
  /** How an earlier claim left it; undefined where none can have begun it. */
  readonly left?: LeftTool | undefined;
}

/** A tool that has not answered. */
export interface LeftTool {
  /** Whether that claim was lost or failed; else its run was unloaded, because it waited. */
  readonly isInterrupted: boolean;
  /** Whether it had started with a person's approval. */
  readonly isApproved: boolean;
  /** What the rules of the agent had decided about the call; null where they had not. */
  readonly decision: RuleDecision | null;
}

/** The cost of a call; `estimated` tokens replace unreported counts. */
export interface CallCost {
  readonly usage: Usage;
  readonly estimated: number;
}

/** A call with what its reported tokens cost. */
export interface PricedCall extends CallCost {
  /** Nano-dollars; null where the price is unknown or no token was reported. */
  readonly cost: number | null;
}

/** A call that has ended, with what its reported tokens cost. */
export function pricedCall({ usage, estimated }: CallCost, call: BegunCall): PricedCall {
  return { usage, estimated, cost: costsOf(usage, estimated, call).cost };
}

/** A message that guards had not passed when its claim ended, by the step in which it resulted. */
export type HeldMessage =
  | { readonly n: number; readonly message: AssistantMessage; readonly tool: null }
  /** The result of a tool, with the code of its error. */
  | {
      readonly n: number;
      readonly message: ToolMessage;
      readonly tool: PlannedTool;
      readonly code: string | null;
    };

export interface RecordedGeneration {
  readonly messages: readonly DialogueMessage[];
  readonly turns: number;
  /** The last summary of earlier messages, null where there is none. */
  readonly summary: Summary | null;
  /** Those of the messages that guards have to pass before they are sent or shown. */
  readonly held: readonly HeldMessage[];
  readonly guards: readonly GuardStep[];
  /** Of all calls, including those without an answer. */
  readonly costs: readonly PricedCall[];
  /** Calls without an answer that the provider may have charged, by `triesKey`. */
  readonly unanswered: ReadonlyMap<string, number>;
  /** Tokens at which a budget cut an answer, by `triesKey`. */
  readonly cuts: ReadonlyMap<string, number>;
  /** Tools that were called and have not answered, by call id. */
  readonly open: ReadonlyMap<string, PlannedTool>;
  /** The memory changes of its tools and guards, in the order of their steps. */
  readonly memory: readonly MemoryChange[];
  /** The automatically recalled memories of its prompt, as JSON; null for none. */
  readonly recalled: string | null;
  /** Why it failed in this attempt, else null. */
  readonly failure: StepFailure | null;
}

/**
 * Reads a generation from its steps. `data` has the messages by id; `attempt` is the present one; `steered` has what users have said
 * after a turn.
 */
export function readGeneration(
  rows: readonly StepOfGeneration[],
  data: ReadonlyMap<string, string>,
  attempt: number,
  steered: ReadonlyMap<number, readonly DialogueMessage[]> = new Map(),
): RecordedGeneration {
  const messages: DialogueMessage[] = [];
  const costs: PricedCall[] = [];
  const unanswered: Unanswered = new Map();
  const cuts = new Map<string, number>();
  const open = new Map<string, PlannedTool>();
  const held: HeldMessage[] = [];
  const guards = rows.filter(({ kind }) => kind === 'guard');
  const memory = rows.filter(({ kind }) => kind === 'guard' || kind === 'tool').flatMap(memoryOf);
  let turns = 0;
  let summary: Summary | null = null;
  const messageOf = <M extends DialogueMessage | Summary>({
    message_id,
  }: StepOfGeneration): M | undefined => {
    const json = message_id === null ? undefined : data.get(message_id);
    return json === undefined ? undefined : (JSON.parse(json) as M);
  };
  const calls = rows.filter(({ kind }) => kind === 'model').sort((a, b) => a.turn - b.turn);
  for (const call of calls) {
    const usage = { prompt: call.prompt_tokens, completion: call.completion_tokens };
    costs.push({ usage, estimated: call.estimated, cost: call.cost });
    if (call.status === 'failed' && mayBeCharged(usage)) {
      const key = triesKey(call.turn, call.name);
      if (isBudgetCut(call)) cuts.set(key, call.completion_tokens ?? 0);
      else unanswered.set(key, 1 + (unanswered.get(key) ?? 0));
    }
    if (call.status !== 'completed') continue;
    const stored = messageOf<AssistantMessage | Summary>(call);
    if (stored === undefined) continue;
    if (stored.role === 'summary') {
      summary = stored;
      continue;
    }
    turns = call.turn;
    const { message: answer, isHeld } = withoutMark<AssistantMessage>(stored);
    messages.push(answer);
    if (isHeld) held.push({ n: call.n, message: answer, tool: null });
    const tools = new Map(
      rows
        .filter(({ kind, turn }) => kind === 'tool' && turn === call.turn)
        .map((row) => [row.call_id, row]),
    );
    for (const toolCall of answer.toolCalls) {
      const tool = tools.get(toolCall.id);
      if (tool === undefined) continue;
      const result = messageOf<ToolMessage>(tool);
      if (result === undefined) {
        // No tool begins before the guards have passed the answer that calls it.
        const left = isHeld ? undefined : leftTool(tool);
        open.set(toolCall.id, { n: tool.n, call: toolCall, name: tool.name, left });
        continue;
      }
      const { message, isHeld: isResultHeld } = withoutMark(result);
      messages.push(message);
      const planned = { n: tool.n, call: toolCall, name: tool.name };
      const code = tool.error && (JSON.parse(tool.error) as StepError).code;
      if (isResultHeld) held.push({ n: tool.n, message, tool: planned, code });
    }
    messages.push(...(steered.get(call.turn) ?? []));
  }
  // Before the first turn.
  const recall = rows.find(({ kind, turn }) => kind === 'tool' && turn === 0);
  const recalled = (recall && messageOf<ToolMessage>(recall)?.text) ?? null;
  const failed = rows.find((row) => row.kind === 'generate' && row.attempt === attempt);
  const failure = failed?.error ? (JSON.parse(failed.error) as StepFailure) : null;
  const calling = { costs, unanswered, cuts };
  const guarded = { held, guards: guards.map(guardStep) };
  return {
    messages,
    turns,
    summary,
    ...guarded,
    ...calling,
    open,
    memory,
    recalled,
    failure,
  };
}

function memoryOf({ memory }: StepOfGeneration): MemoryChange[] {
  return memory === null ? [] : (JSON.parse(memory) as MemoryChange[]);
}

function guardStep({ n, call_id, guard }: StepOfGeneration): GuardStep {
  const verdict = guard === null ? null : (JSON.parse(guard) as GuardVerdict);
  return { n, call_id, verdict };
}

/** Whether a budget cut the answer: no other call that was made fails with this code. */
function isBudgetCut({ error }: StepOfGeneration): boolean {
  return error !== null && (JSON.parse(error) as StepError).code === 'budget_exceeded';
}

function leftTool({ status, digest, rule }: StepOfGeneration): LeftTool {
  return {
    isInterrupted: status === 'interrupted',
    isApproved: digest !== null,
    decision: rule === null ? null : (JSON.parse(rule) as RuleDecision),
  };
}

export const nothingRecorded = readGeneration([], new Map(), 1);
