/**
 * Collects the parts that the SDK streams into an answer. Every part is bounded. A part beyond its bound
 * ends the call, with two exceptions that are cut instead: the text, because it was paid for (the answer
 * then says that it is too long), and the arguments of one tool call (they are then invalid JSON, and
 * the agent's tools tell the model so).
 */
import type { ModelAnswer, ToolCall } from './model.ts';
import type { Opaque, OpaquePart, ProviderOptions, SdkModel } from './prompt.ts';
import type { Protocol } from './providers.ts';
import { createThinkTagFilter, type ThinkTagFilter } from './think-tag-filter.ts';

export const answerBounds = {
  /** Bytes of the text as JSON: a longer text would exceed the 1 MiB of a job's output. */
  text: 1_000_000,
  /** Characters. */
  reasoning: 4 * 1024 * 1024,
  /** Characters of all text, including text that is cut and reasoning in think tags. */
  written: 16 * 1024 * 1024,
  toolCalls: 128,
  /** Characters of the arguments of one call; longer arguments are cut. */
  toolInput: 1024 * 1024,
  /** Characters of the arguments of all calls. */
  toolInputs: 16 * 1024 * 1024,
};

/** Characters that are measured at a time. */
const pieceLength = 1_024;
const nameOf = { written: 'text', reasoning: 'reasoning', toolInputs: 'arguments' };

type SdkPart =
  Awaited<ReturnType<SdkModel['doStream']>>['stream'] extends ReadableStream<infer Part>
    ? Part
    : never;
type ReasoningPart = Extract<
  SdkPart,
  { type: 'reasoning-start' | 'reasoning-delta' | 'reasoning-end' }
>;
type SdkFinish = Extract<SdkPart, { type: 'finish' }>['finishReason']['unified'];

/** An answer exceeds a bound. */
export class ExcessError extends Error {}

export interface AnswerSoFar {
  /** Throws an ExcessError, or the error that the SDK reports. */
  take(part: SdkPart): void;
  /** Takes text that does not pass through the SDK. Throws an ExcessError. */
  takeText(text: string): void;
  text(): string;
  /** UTF-8 bytes of all parts that were taken. */
  seenBytes(): number;
  /** The answer; null until the SDK has reported its end. */
  whole(model: string): Omit<ModelAnswer, 'usage'> | null;
}

interface State {
  readonly thinkTags: ThinkTagFilter | null;
  readonly onText: (delta: string) => void;
  readonly texts: string[];
  readonly calls: ToolCall[];
  readonly order: OpaquePart[];
  /** The blocks of reasoning that have not ended, by id. */
  readonly reasoning: Map<string, { text: string; signed?: ProviderOptions }>;
  readonly spent: { written: number; reasoning: number; toolInputs: number };
  finish: SdkFinish | null;
  seenBytes: number;
  textBytes: number;
  isTooLong: boolean;
}

export function createAnswer(protocol: Protocol, onText: (delta: string) => void): AnswerSoFar {
  const state: State = {
    thinkTags: protocol === 'chat' ? createThinkTagFilter() : null,
    onText,
    texts: [],
    calls: [],
    order: [],
    reasoning: new Map(),
    spent: { written: 0, reasoning: 0, toolInputs: 0 },
    finish: null,
    seenBytes: 0,
    textBytes: 0,
    isTooLong: false,
  };
  return {
    take: (part) => take(state, part),
    takeText: (text) => takeText(state, text),
    text: () => state.texts.join('') + (state.finish === null ? endOfText(state) : ''),
    seenBytes: () => state.seenBytes,
    whole: (model) => whole(state, model),
  };
}

function take(state: State, part: SdkPart): void {
  switch (part.type) {
    case 'text-delta':
      takeText(state, part.delta);
      break;
    case 'reasoning-start':
    case 'reasoning-delta':
    case 'reasoning-end':
      takeReasoning(state, part);
      break;
    case 'tool-input-delta':
      spend(state, 'toolInputs', part.delta);
      break;
    case 'tool-call':
      takeCall(state, part);
      break;
    case 'finish':
      state.finish = part.finishReason.unified;
      // A think tag that never closed is text, unless the token limit cut the answer inside it.
      if (state.finish !== 'length') addText(state, endOfText(state));
      break;
    case 'error':
      throw part.error;
  }
}

function takeText(state: State, text: string): void {
  spend(state, 'written', text);
  addText(state, state.thinkTags?.push(text) ?? text);
}

/** The text that the filter of think tags still holds. */
function endOfText({ thinkTags }: State): string {
  return thinkTags?.end() ?? '';
}

function whole(state: State, model: string): Omit<ModelAnswer, 'usage'> | null {
  const { finish, order, calls } = state;
  if (finish === null) return null;
  const opaque = order.some((part) => 'signed' in part)
    ? { opaque: { model, parts: order } satisfies Opaque }
    : {};
  return {
    message: { role: 'assistant', text: state.texts.join(''), toolCalls: calls, ...opaque },
    finish: state.isTooLong ? 'too-long' : finishOf(finish, calls.length > 0),
  };
}

function spend(state: State, what: keyof State['spent'], text: string): void {
  const { spent } = state;
  state.seenBytes += Buffer.byteLength(text);
  spent[what] += text.length;
  if (spent[what] > answerBounds[what]) {
    throw new ExcessError(`${answerBounds[what]} characters of ${nameOf[what]}`);
  }
}

function addText(state: State, text: string): void {
  const delta = fitting(state, text);
  if (delta === '') return;
  const { order } = state;
  state.texts.push(delta);
  const last = order.at(-1);
  if (last?.type === 'text') order.pop();
  const before = last?.type === 'text' ? last.length : 0;
  order.push({ type: 'text', length: before + delta.length });
  state.onText(delta);
}

/** The part of the text that fits into the answer's bound. */
function fitting(state: State, text: string): string {
  if (state.isTooLong) return '';
  for (let from = 0; from < text.length; from += pieceLength) {
    const piece = text.slice(from, from + pieceLength);
    state.textBytes += Buffer.byteLength(JSON.stringify(piece)) - 2;
    if (state.textBytes > answerBounds.text) {
      state.isTooLong = true;
      return text.slice(0, from);
    }
  }
  return text;
}

/** A signature may arrive with any part of a block, or in a part of its own. */
function takeReasoning(state: State, part: ReasoningPart): void {
  const { reasoning, order } = state;
  const block = reasoning.get(part.id) ?? { text: '' };
  reasoning.set(part.id, block);
  if (part.type === 'reasoning-delta') {
    spend(state, 'reasoning', part.delta);
    block.text += part.delta;
  }
  if (part.providerMetadata !== undefined) block.signed = part.providerMetadata;
  if (part.type !== 'reasoning-end') return;
  reasoning.delete(part.id);
  const { text, signed } = block;
  if (signed !== undefined) order.push({ type: 'reasoning', text, signed });
}

function takeCall({ calls, order }: State, part: Extract<SdkPart, { type: 'tool-call' }>): void {
  if (calls.length === answerBounds.toolCalls) {
    throw new ExcessError(`${answerBounds.toolCalls} calls of tools`);
  }
  const id = unusedId(part.toolCallId, calls);
  const input = part.input.slice(0, answerBounds.toolInput);
  calls.push({ id, name: part.toolName, input });
  const signed = part.providerMetadata;
  order.push({ type: 'tool-call', id, ...(signed === undefined ? {} : { signed }) });
}

/** Ids are unique, because results refer to their call by id. */
function unusedId(id: string, calls: readonly ToolCall[]): string {
  const isUsed = (candidate: string) => calls.some((call) => call.id === candidate);
  let candidate = id || 'call';
  for (let n = 2; isUsed(candidate); n += 1) candidate = `${id || 'call'}_${n}`;
  return candidate;
}

/** Some servers report `stop` after tool calls, and some the reverse. */
function finishOf(reported: SdkFinish, hasCalls: boolean): ModelAnswer['finish'] {
  if (reported === 'length' || reported === 'content-filter') return reported;
  if (hasCalls) return 'tool-calls';
  return reported === 'stop' ? 'stop' : 'other';
}
