/** Reads the events of messages. Unknown kinds are ignored, as the protocol asks of clients. */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';
import { countIn, largerOf, largestIn, withParts } from '../counts.ts';
import { messageIn } from '../error-body.ts';
import {
  type AnswerReader,
  type AnswerState,
  type Ending,
  nothingRead,
  ProtocolError,
  takeEnding,
  textIn,
} from '../protocol.ts';

const written = 'cache_creation_input_tokens';
const read = 'cache_read_input_tokens';
const promptCounts = ['input_tokens', written, read];

const endings: ReadonlyMap<unknown, Ending> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'content-filter'],
]);

/** A block that has begun. */
type Block =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'text' }
  | { readonly kind: 'thinking'; readonly texts: string[]; signature: string }
  | { readonly kind: 'redacted_thinking'; readonly data: string }
  | {
      readonly kind: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly inputs: string[];
    };

export class MessagesReader implements AnswerReader {
  readonly state: AnswerState = nothingRead();
  readonly #answer: AnswerSoFar;
  /** The blocks that have not ended, by their index. */
  readonly #blocks = new Map<unknown, Block>();
  /** The counts of the prompt by name. */
  readonly #counts = new Map<string, number | null>();

  constructor(answer: AnswerSoFar) {
    this.#answer = answer;
  }

  take(event: Json): string | null {
    const { type, index, error } = event;
    if (type === 'error' || error) return messageIn(error);
    switch (type) {
      case 'message_start':
        this.#addUsage(objectOf(event['message'])?.['usage'], false);
        break;
      case 'content_block_start':
        this.#beginBlock(index, objectOf(event['content_block']));
        break;
      case 'content_block_delta':
        this.#takeDelta(this.#blocks.get(index), objectOf(event['delta']) ?? {});
        break;
      case 'content_block_stop':
        this.#endBlock(index);
        break;
      case 'message_delta': {
        this.#addUsage(event['usage'], true);
        const reason = objectOf(event['delta'])?.['stop_reason'];
        // Some servers send no `message_stop` after a stop reason.
        if (typeof reason === 'string') takeEnding(this.state, reason, endings.get(reason));
        break;
      }
      case 'message_stop':
        this.state.ending ??= 'other';
        this.state.isOver = true;
        break;
    }
    return null;
  }

  /** Some servers leave the last block open. */
  end(): void {
    for (const index of [...this.#blocks.keys()]) this.#endBlock(index);
  }

  /** Some servers send content with the start of a block. */
  #beginBlock(index: unknown, block: Json | null): void {
    if (block === null) throw new ProtocolError();
    this.state.isBegun = true;
    this.#endBlock(index);
    const { type: kind, text, thinking, signature, data, id, name, input } = block;
    switch (kind) {
      case 'text':
        this.#blocks.set(index, { kind });
        if (text) this.#answer.takeText(textIn(text));
        break;
      case 'thinking':
        this.#blocks.set(index, { kind, texts: [], signature: textIn(signature) });
        this.#takeDelta(this.#blocks.get(index), { type: 'thinking_delta', thinking });
        break;
      case 'redacted_thinking':
        this.#answer.spendReasoning(textIn(data));
        this.#blocks.set(index, { kind, data: textIn(data) });
        break;
      case 'tool_use':
        this.#answer.beginCall();
        this.#blocks.set(index, { kind, id: textIn(id), name: textIn(name), inputs: [] });
        this.#takeInput(this.#blocks.get(index), wholeInput(input));
        break;
      default:
        this.#blocks.set(index, { kind: 'unknown' });
    }
  }

  /** Text may come without the start of its block. */
  #takeDelta(block: Block | undefined, delta: Json): void {
    if (block?.kind === 'unknown') return;
    switch (delta['type']) {
      case 'text_delta': {
        const text = textIn(delta['text']);
        if (text !== '') this.#answer.takeText(text);
        break;
      }
      case 'thinking_delta': {
        const text = textIn(delta['thinking']);
        this.#answer.spendReasoning(text);
        if (block?.kind === 'thinking') block.texts.push(text);
        break;
      }
      case 'signature_delta':
        if (block?.kind === 'thinking') block.signature += textIn(delta['signature']);
        break;
      case 'input_json_delta':
        this.#takeInput(block, textIn(delta['partial_json']));
        break;
    }
  }

  #takeInput(block: Block | undefined, input: string): void {
    if (block?.kind !== 'tool_use') return;
    this.#answer.spendToolInput(input);
    block.inputs.push(input);
  }

  #endBlock(index: unknown): void {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    switch (block?.kind) {
      case 'thinking':
        this.#endThinking(block.texts.join(''), block.signature);
        break;
      case 'redacted_thinking':
        this.#answer.takeReasoning('', { anthropic: { redactedData: block.data } });
        break;
      case 'tool_use':
        this.#answer.takeCall({
          id: block.id,
          name: block.name,
          input: block.inputs.join('') || '{}',
        });
        break;
    }
  }

  /** Other providers than Anthropic sign nothing, and require the block all the same. */
  #endThinking(text: string, signature: string): void {
    if (text === '' && signature === '') return;
    this.#answer.takeReasoning(text, { anthropic: signature === '' ? {} : { signature } });
  }

  /** Of the output only `message_delta` counts: the count in `message_start` does not cover the answer. */
  #addUsage(reported: unknown, isOfAnswer: boolean): void {
    const usage = objectOf(reported);
    if (usage === null) return;
    const count = (name: string) => this.#counts.get(name) ?? null;
    for (const name of promptCounts) {
      this.#counts.set(name, largerOf(count(name), countIn(usage, name)));
    }
    const before = this.state.usage;
    const prompt = promptCounts.reduce((sum, name) => sum + (count(name) ?? 0), 0);
    const totals = {
      prompt: count('input_tokens') === null ? null : prompt,
      completion: largerOf(before.completion, isOfAnswer ? countIn(usage, 'output_tokens') : null),
    };
    this.state.usage = withParts(totals, before, {
      cacheRead: count(read),
      cacheWrite: count(written),
      reasoning: largestIn([[objectOf(usage['output_tokens_details']), 'thinking_tokens']]),
    });
  }
}

/** The arguments that come with the start of a block; empty where they follow it. */
function wholeInput(input: unknown): string {
  if (typeof input === 'string') return input;
  const object = objectOf(input);
  return object === null || Object.keys(object).length === 0 ? '' : JSON.stringify(object);
}
