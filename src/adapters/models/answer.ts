/**
 * Collects the parts of an answer that a protocol's reader takes out of its events. Every part is bounded. A part beyond
 * its bound ends the call, with two exceptions that are cut instead: the text, because it was paid for (the answer then
 * says that it is too long), and the arguments of one tool call (they are then invalid JSON, and the agent's tools tell
 * the model so).
 */
import type { ModelAnswer, ToolCall } from './model.ts';
import type { Opaque, OpaquePart, Signed } from './prompt.ts';
import type { Ending } from './protocol.ts';
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
  pictures: 8,
  /** Characters of base64 of all pictures. */
  pictureCharacters: 24 * 1024 * 1024,
};

/** Characters that are measured at a time. */
const pieceLength = 1_024;
const nameOf = { written: 'text', reasoning: 'reasoning', toolInputs: 'arguments' };

/** An answer exceeds a bound. */
export class ExcessError extends Error {}

/** A call of a tool, as its provider wrote it. */
interface TakenCall extends ToolCall {
  /** What its provider requires with it in later requests. */
  readonly signed?: Signed | undefined;
}

/** The answer of one call, as far as it has arrived. */
export class AnswerSoFar {
  readonly #onText: (delta: string) => void;
  #thinkTags: ThinkTagFilter | null = null;
  readonly #texts: string[] = [];
  readonly #calls: ToolCall[] = [];
  readonly #order: OpaquePart[] = [];
  readonly #spent = { written: 0, reasoning: 0, toolInputs: 0 };
  readonly #pictures: string[] = [];
  #parts = 0;
  #callsBegun = 0;
  #seenBytes = 0;
  #textBytes = 0;
  #isTooLong = false;

  constructor(onText: (delta: string) => void) {
    this.#onText = onText;
  }

  /** Removes a block of `<think>` at the start of the text, for protocols whose servers may leave one there. */
  hideThinkTags(): void {
    this.#thinkTags = new ThinkTagFilter();
  }

  /** The text, with what the filter of think tags still holds. */
  text(): string {
    return this.#texts.join('') + (this.#thinkTags?.held ?? '');
  }

  /** UTF-8 bytes of all parts that were taken. */
  get seenBytes(): number {
    return this.#seenBytes;
  }

  /** The number of parts, and pieces of parts, that have arrived. */
  get parts(): number {
    return this.#parts;
  }

  /** Throws an ExcessError, as the other methods that take a part. */
  takeText(text: string): void {
    this.#spend('written', text);
    this.#addText(this.#thinkTags === null ? text : this.#thinkTags.push(text));
  }

  /** Begins a part of the text with what its provider requires with it in later requests. */
  beginText(signed: Signed | undefined): void {
    if (signed !== undefined) this.#order.push({ type: 'text', length: 0, signed });
  }

  /** Counts a piece of reasoning, which its reader keeps until it is whole. */
  spendReasoning(piece: string): void {
    this.#spend('reasoning', piece);
  }

  /** Keeps reasoning that its provider requires unchanged in later requests, in its place. */
  takeReasoning(text: string, signed: Signed): void {
    this.#order.push({ type: 'reasoning', text, signed });
  }

  /** Counts a call of a tool that has begun. */
  beginCall(): void {
    this.#callsBegun += 1;
    this.#parts += 1;
    if (this.#callsBegun > answerBounds.toolCalls) {
      throw new ExcessError(`${answerBounds.toolCalls} calls of tools`);
    }
  }

  /** Counts a piece of arguments, which its reader keeps until they are whole. */
  spendToolInput(piece: string): void {
    this.#spend('toolInputs', piece);
  }

  /** Takes a whole call, which has begun. */
  takeCall({ id, name, input, signed }: TakenCall): void {
    const own = unusedId(id, this.#calls);
    this.#calls.push({ id: own, name, input: input.slice(0, answerBounds.toolInput) });
    this.#order.push(
      signed === undefined
        ? { type: 'tool-call', id: own }
        : { type: 'tool-call', id: own, signed },
    );
  }

  /** Takes a picture, as base64. A server may send the same one again with the whole answer. */
  takePicture(base64: string): void {
    if (base64 === '' || this.#pictures.includes(base64)) return;
    this.#pictures.push(base64);
    this.#parts += 1;
    const characters = this.#pictures.reduce((sum, { length }) => sum + length, 0);
    if (this.#pictures.length > answerBounds.pictures) {
      throw new ExcessError(`${answerBounds.pictures} pictures`);
    }
    if (characters > answerBounds.pictureCharacters) {
      throw new ExcessError(`${answerBounds.pictureCharacters} characters of pictures`);
    }
  }

  /** The whole answer of a call that ended so. */
  whole(model: string, ending: Ending): Omit<ModelAnswer, 'usage'> {
    // A think tag that never closed is text, unless the token limit cut the answer inside it.
    const rest = this.#thinkTags?.end() ?? '';
    if (ending !== 'length') this.#addText(rest);
    const opaque = this.#order.some((part) => 'signed' in part)
      ? { opaque: { model, parts: this.#order } satisfies Opaque }
      : {};
    return {
      message: { role: 'assistant', text: this.#texts.join(''), toolCalls: this.#calls, ...opaque },
      finish: this.#isTooLong ? 'too-long' : finishOf(ending, this.#calls.length > 0),
      ...(this.#pictures.length > 0 && { pictures: this.#pictures }),
    };
  }

  #spend(what: keyof typeof nameOf, text: string): void {
    if (text !== '') this.#parts += 1;
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
    if (last?.type === 'text') {
      this.#order[this.#order.length - 1] = { ...last, length: last.length + delta.length };
    } else this.#order.push({ type: 'text', length: delta.length });
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
}

/** Ids are unique, because results refer to their call by id. */
function unusedId(id: string, calls: readonly ToolCall[]): string {
  const isUsed = (candidate: string) => calls.some((call) => call.id === candidate);
  let candidate = id || 'call';
  for (let n = 2; isUsed(candidate); n += 1) candidate = `${id || 'call'}_${n}`;
  return candidate;
}

/** Some servers report `stop` after tool calls, and some the reverse. */
function finishOf(ending: Ending, hasCalls: boolean): ModelAnswer['finish'] {
  if (ending === 'length' || ending === 'content-filter') return ending;
  if (hasCalls) return 'tool-calls';
  return ending === 'tool-calls' ? 'other' : ending;
}
