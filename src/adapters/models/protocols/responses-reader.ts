/** Reads the events of responses. Unknown kinds of events and items are ignored, as the protocol asks of clients. */
import { randomUUID } from 'node:crypto';
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';
import { countIn, largerOf, largestIn, withParts } from '../counts.ts';
import { messageIn } from '../error-body.ts';
import {
  type AnswerReader,
  type AnswerState,
  nothingRead,
  ProtocolError,
  textIn,
} from '../protocol.ts';

/** An item of the output that is not done. */
interface OpenItem {
  readonly inputs: string[];
  /** Whether any text of it has arrived. */
  hasText: boolean;
}

export class ResponsesReader implements AnswerReader {
  readonly state: AnswerState = nothingRead();
  readonly #answer: AnswerSoFar;
  /** By their index. */
  readonly #open = new Map<unknown, OpenItem>();
  #hasText = false;
  #isRefusal = false;

  constructor(answer: AnswerSoFar) {
    this.#answer = answer;
  }

  take(event: Json): string | null {
    const { type, output_index: index, delta, item } = event;
    if (type === 'error' || event['error']) return messageIn(event['error'] ?? event);
    switch (type) {
      case 'response.output_item.added':
        this.#begin(index, itemIn(item));
        break;
      case 'response.refusal.delta':
        this.#isRefusal = true;
        this.#takeText(index, textIn(delta));
        break;
      case 'response.output_text.delta':
        this.#takeText(index, textIn(delta));
        break;
      case 'response.function_call_arguments.delta':
        this.#takeInput(index, textIn(delta));
        break;
      case 'response.output_item.done':
        this.#finish(index, itemIn(item));
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return this.#end(type, objectOf(event['response']) ?? {});
    }
    return null;
  }

  end(): void {}

  /** The parts of a message with their phase are kept in their place, because the model has to see it again. */
  #begin(index: unknown, { type, phase }: Json): OpenItem {
    const item = { inputs: [], hasText: false };
    this.#open.set(index, item);
    if (type === 'function_call') this.#answer.beginCall();
    if (type === 'message') {
      // Two messages of one answer are two paragraphs.
      if (this.#hasText) this.#answer.takeText('\n\n');
      this.#answer.beginText(typeof phase === 'string' ? { openai: { phase } } : undefined);
    }
    return item;
  }

  #takeText(index: unknown, text: string): void {
    if (text === '') return;
    const item = this.#open.get(index) ?? this.#begin(index, { type: 'message' });
    item.hasText = true;
    this.#hasText = true;
    this.state.isBegun = true;
    this.#answer.takeText(text);
  }

  #takeInput(index: unknown, input: string): void {
    const item = this.#open.get(index);
    if (item === undefined) throw new ProtocolError('arguments of no call');
    this.state.isBegun = true;
    this.#answer.spendToolInput(input);
    item.inputs.push(input);
  }

  /** Some servers send an item only when it is done. */
  #finish(index: unknown, item: Json): void {
    const open = this.#open.get(index) ?? this.#begin(index, item);
    switch (item['type']) {
      case 'message':
        if (!open.hasText) this.#takeContent(index, item['content']);
        break;
      case 'function_call':
        this.#finishCall(open, item);
        break;
      case 'image_generation_call':
        this.state.isBegun = true;
        this.#answer.takePicture(textIn(item['result']));
        break;
      case 'reasoning':
        this.#takeReasoning(item);
        break;
    }
    this.#open.delete(index);
  }

  #takeContent(index: unknown, content: unknown): void {
    for (const part of Array.isArray(content) ? content.map(itemIn) : []) {
      const { type, text, refusal } = part;
      if (type === 'refusal') this.#isRefusal = true;
      if (type === 'refusal' || type === 'output_text')
        this.#takeText(index, textIn(refusal ?? text));
    }
  }

  #finishCall({ inputs }: OpenItem, item: Json): void {
    if (inputs.length === 0) this.#answer.spendToolInput(textIn(item['arguments']));
    this.state.isBegun = true;
    this.#answer.takeCall({
      id: textIn(item['call_id']) || `call_${randomUUID().slice(0, 18)}`,
      name: textIn(item['name']),
      input: inputs.join('') || textIn(item['arguments']) || '{}',
    });
  }

  /** Reasoning that is not encrypted is kept at the provider, which was asked not to. */
  #takeReasoning({ id, summary, encrypted_content: content }: Json): void {
    if (typeof content !== 'string' || content === '') return;
    const own = { id, summary: summary ?? [], encrypted_content: content };
    this.#answer.spendReasoning(JSON.stringify(own));
    this.#answer.takeReasoning('', { openai: own });
  }

  #end(type: string, response: Json): string | null {
    this.#addUsage(objectOf(response['usage']));
    if (type === 'response.failed') return messageIn(response['error'] ?? 'it does not say why');
    const why = objectOf(response['incomplete_details'])?.['reason'];
    if (type === 'response.completed') this.state.ending = this.#isRefusal ? 'refusal' : 'stop';
    else if (why === 'max_output_tokens') this.state.ending = 'length';
    else this.state.ending = why === 'content_filter' ? 'content-filter' : 'other';
    this.state.isOver = true;
    return null;
  }

  #addUsage(reported: Json | null): void {
    if (reported === null) return;
    const before = this.state.usage;
    const input = objectOf(reported['input_tokens_details']);
    const output = objectOf(reported['output_tokens_details']);
    const counts = {
      prompt: largerOf(before.prompt, countIn(reported, 'input_tokens')),
      completion: largerOf(before.completion, countIn(reported, 'output_tokens')),
    };
    this.state.usage = withParts(counts, before, {
      cacheRead: largestIn([[input, 'cached_tokens']]),
      cacheWrite: largestIn([[input, 'cache_write_tokens']]),
      reasoning: largestIn([[output, 'reasoning_tokens']]),
    });
  }
}

function itemIn(value: unknown): Json {
  const item = objectOf(value);
  if (item === null) throw new ProtocolError();
  return item;
}
