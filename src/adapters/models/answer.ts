/**
 * Collects the parts that the SDK streams into an answer. Every part is bounded. A part beyond its bound
 * ends the call, with two exceptions that are cut instead: the text, because it was paid for (the answer
 * then says that it is too long), and the arguments of one tool call (they are then invalid JSON, and
 * the agent's tools tell the model so).
 */
import type { ModelAnswer, ToolCall } from './model.ts';
import type { Opaque, OpaquePart, ProviderOptions, SdkModel } from './prompt.ts';
import type { Protocol } from './providers.ts';
import { ThinkTagFilter } from './think-tag-filter.ts';

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

/** The answer of one call, as far as it has arrived. */
export class AnswerSoFar {
  readonly #thinkTags: ThinkTagFilter | null;
  readonly #onText: (delta: string) => void;
  readonly #texts: string[] = [];
  readonly #calls: ToolCall[] = [];
  readonly #order: OpaquePart[] = [];
  /** The blocks of reasoning that have not ended, by id. */
  readonly #reasoning = new Map<string, { text: string; signed?: ProviderOptions }>();
  readonly #spent = { written: 0, reasoning: 0, toolInputs: 0 };
  #finish: SdkFinish | null = null;
  #seenBytes = 0;
  #textBytes = 0;
  #isTooLong = false;

  constructor(protocol: Protocol, onText: (delta: string) => void) {
    this.#thinkTags = protocol === 'chat' ? new ThinkTagFilter() : null;
    this.#onText = onText;
  }

  text(): string {
    return this.#texts.join('') + (this.#finish === null ? this.#endOfText() : '');
  }

  /** UTF-8 bytes of all parts that were taken. */
  get seenBytes(): number {
    return this.#seenBytes;
  }

  /** Throws an ExcessError, or the error that the SDK reports. */
  take(part: SdkPart): void {
    switch (part.type) {
      case 'text-delta':
        this.takeText(part.delta);
        break;
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        this.#takeReasoning(part);
        break;
      case 'tool-input-delta':
        this.#spend('toolInputs', part.delta);
        break;
      case 'tool-call':
        this.#takeCall(part);
        break;
      case 'finish':
        this.#finish = part.finishReason.unified;
        // A think tag that never closed is text, unless the token limit cut the answer inside it.
        if (this.#finish !== 'length') this.#addText(this.#endOfText());
        break;
      case 'error':
        throw part.error;
    }
  }

  /** Takes text that does not pass through the SDK. Throws an ExcessError. */
  takeText(text: string): void {
    this.#spend('written', text);
    this.#addText(this.#thinkTags?.push(text) ?? text);
  }

  /** The text that the filter of think tags still holds. */
  #endOfText(): string {
    return this.#thinkTags?.end() ?? '';
  }

  /** The answer; null until the SDK has reported its end. */
  whole(model: string): Omit<ModelAnswer, 'usage'> | null {
    if (this.#finish === null) return null;
    const opaque = this.#order.some((part) => 'signed' in part)
      ? { opaque: { model, parts: this.#order } satisfies Opaque }
      : {};
    return {
      message: { role: 'assistant', text: this.#texts.join(''), toolCalls: this.#calls, ...opaque },
      finish: this.#isTooLong ? 'too-long' : finishOf(this.#finish, this.#calls.length > 0),
    };
  }

  #spend(what: keyof typeof nameOf, text: string): void {
    this.#seenBytes += Buffer.byteLength(text);
    this.#spent[what] += text.length;
    if (this.#spent[what] > answerBounds[what]) {
      throw new ExcessError(`${answerBounds[what]} characters of ${nameOf[what]}`);
    }
  }

  #addText(text: string): void {
    const delta = this.#fitting(text);
    if (delta === '') return;
    this.#texts.push(delta);
    const last = this.#order.at(-1);
    if (last?.type === 'text') this.#order.pop();
    const before = last?.type === 'text' ? last.length : 0;
    this.#order.push({ type: 'text', length: before + delta.length });
    this.#onText(delta);
  }

  /** The part of the text that fits into the answer's bound. */
  #fitting(text: string): string {
    if (this.#isTooLong) return '';
    for (let from = 0; from < text.length; from += pieceLength) {
      const piece = text.slice(from, from + pieceLength);
      this.#textBytes += Buffer.byteLength(JSON.stringify(piece)) - 2;
      if (this.#textBytes > answerBounds.text) {
        this.#isTooLong = true;
        return text.slice(0, from);
      }
    }
    return text;
  }

  /** A signature may arrive with any part of a block, or in a part of its own. */
  #takeReasoning(part: ReasoningPart): void {
    const block = this.#reasoning.get(part.id) ?? { text: '' };
    this.#reasoning.set(part.id, block);
    if (part.type === 'reasoning-delta') {
      this.#spend('reasoning', part.delta);
      block.text += part.delta;
    }
    if (part.providerMetadata !== undefined) block.signed = part.providerMetadata;
    if (part.type !== 'reasoning-end') return;
    this.#reasoning.delete(part.id);
    const { text, signed } = block;
    if (signed !== undefined) this.#order.push({ type: 'reasoning', text, signed });
  }

  #takeCall(part: Extract<SdkPart, { type: 'tool-call' }>): void {
    if (this.#calls.length === answerBounds.toolCalls) {
      throw new ExcessError(`${answerBounds.toolCalls} calls of tools`);
    }
    const id = unusedId(part.toolCallId, this.#calls);
    const input = part.input.slice(0, answerBounds.toolInput);
    this.#calls.push({ id, name: part.toolName, input });
    const signed = part.providerMetadata;
    this.#order.push({ type: 'tool-call', id, ...(signed === undefined ? {} : { signed }) });
  }
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
