/** Reads the events of responses. Unknown kinds of events and items are ignored, as the protocol asks of clients. */
import { randomUUID } from 'node:crypto';
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
  textIn,
} from '../protocol.ts';

/** Why a response is incomplete. */
const endings: ReadonlyMap<unknown, Ending> = new Map([
  ['max_output_tokens', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content-filter'],
]);

/** An item of the output that is not done. */
interface OpenItem {
  /** As it was added. */
  readonly item: Json;
  readonly inputs: string[];
  /** Whether any text of it has arrived. */
  hasText: boolean;
  /** Whether it was taken before: its parts are left out. */
  readonly isRepeated: boolean;
}

export class ResponsesReader implements AnswerReader {
  readonly state: AnswerState = nothingRead();
  readonly #answer: AnswerSoFar;
  /** By their index. */
  readonly #open = new Map<unknown, OpenItem>();
  /** The keys of the items that are done: some gateways send an item again. */
  readonly #done = new Set<string>();
  readonly #callIds = new Set<unknown>();
  /** The number of items that are done, by their type. */
  readonly #counts = new Map<unknown, number>();
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
      case 'response.function_call_arguments.done':
        if (this.#open.get(index)?.inputs.length === 0) {
          this.#takeInput(index, textIn(event['arguments']));
        }
        break;
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        this.#answer.spendReasoning(textIn(delta));
        break;
      case 'response.output_item.done':
        this.#finish(index, itemIn(item));
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#end(type, objectOf(event['response']) ?? {});
    }
    return null;
  }

  end(): void {}

  /** The parts of a message with their phase are kept in their place, because the model has to see it again. */
  #begin(index: unknown, item: Json): OpenItem {
    const { type, phase } = item;
    const isRepeated = this.#done.has(keyOf(index, item));
    const open = { item, inputs: [], hasText: false, isRepeated };
    this.#open.set(index, open);
    if (isRepeated) return open;
    if (type === 'function_call') this.#answer.beginCall();
    if (type === 'message') {
      // Two messages of one answer are two paragraphs.
      if (this.#hasText) this.#answer.takeText('\n\n');
      this.#answer.beginText(typeof phase === 'string' ? { openai: { phase } } : undefined);
    }
    return open;
  }

  #takeText(index: unknown, text: string): void {
    if (text === '') return;
    const item = this.#open.get(index) ?? this.#begin(index, { type: 'message' });
    item.hasText = true;
    if (item.isRepeated) return;
    this.#hasText = true;
    this.state.isBegun = true;
    this.#answer.takeText(text);
  }

  #takeInput(index: unknown, input: string): void {
    const item = this.#open.get(index);
    if (item === undefined) throw new ProtocolError('arguments of no call');
    if (item.isRepeated) return;
    this.state.isBegun = true;
    this.#answer.spendToolInput(input);
    item.inputs.push(input);
  }

  /** Some servers send an item only when it is done. */
  #finish(index: unknown, item: Json): void {
    const open = this.#open.get(index) ?? this.#begin(index, item);
    if (!open.isRepeated) this.#takeItem(index, open, item);
    this.#open.delete(index);
    if (index !== undefined) this.#done.add(keyOf(index, item));
  }

  #takeItem(index: unknown, open: OpenItem, item: Json): void {
    const { type } = item;
    this.#counts.set(type, 1 + (this.#counts.get(type) ?? 0));
    switch (type) {
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
  }

  /** Some servers leave items open, or send them with the whole response alone. */
  #finishAll(output: unknown): void {
    for (const [index, { item, hasText }] of [...this.#open]) {
      if (hasText) this.#finish(index, { ...item, type: 'message' });
    }
    const before = new Map<unknown, number>(this.#counts);
    for (const [i, item] of (Array.isArray(output) ? output : []).map(itemIn).entries()) {
      // Of items without an id, the first ones are those that came before.
      const { type, call_id: id } = item;
      const left = before.get(type) ?? 0;
      if (id ? !this.#callIds.has(id) : left === 0) this.#finish(i, item);
      else before.set(type, left - 1);
    }
    for (const [index, { item }] of [...this.#open]) {
      const isLeft = item['type'] === 'function_call' && !this.#callIds.has(item['call_id']);
      if (isLeft) this.#finish(index, item);
    }
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
    if (item['call_id']) this.#callIds.add(item['call_id']);
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
    if (type === 'response.failed' || type === 'response.cancelled') {
      return messageIn(response['error'] ?? 'it does not say why');
    }
    this.#finishAll(response['output']);
    this.state.isOver = true;
    if (type === 'response.completed') {
      this.state.ending = this.#isRefusal ? 'refusal' : 'stop';
      return null;
    }
    const why = objectOf(response['incomplete_details'])?.['reason'];
    const ending = endings.get(why);
    if (ending === undefined) {
      this.state.givenUp = typeof why === 'string' ? why : 'incomplete';
    }
    this.state.ending = ending ?? 'other';
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

/** Gateways may give two items of an answer the same index, but not the same type and call. */
function keyOf(index: unknown, { type, call_id: call }: Json): string {
  return JSON.stringify([type, index, call]);
}

function itemIn(value: unknown): Json {
  const item = objectOf(value);
  if (item === null) throw new ProtocolError();
  return item;
}
