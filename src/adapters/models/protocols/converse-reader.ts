/** Reads the events of Converse. Unknown kinds are ignored. */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';
import { countIn, largerOf, withParts } from '../counts.ts';
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

const endings: ReadonlyMap<unknown, Ending> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['guardrail_intervened', 'content-filter'],
  ['content_filtered', 'content-filter'],
]);

/** A block that has begun; a call where it has an id. */
interface Block {
  readonly call: { readonly id: string; readonly name: string } | null;
  readonly inputs: string[];
  readonly thoughts: string[];
  signature: string;
  redactedContent: string;
}

export class ConverseReader implements AnswerReader {
  readonly state: AnswerState = nothingRead();
  readonly #answer: AnswerSoFar;
  /** The blocks that have not ended, by their index. */
  readonly #blocks = new Map<unknown, Block>();

  constructor(answer: AnswerSoFar) {
    this.#answer = answer;
  }

  take(event: Json): string | null {
    const { type, error, contentBlockIndex: index } = event;
    if (type === 'error' || error) return messageIn(error);
    switch (type) {
      case 'contentBlockStart':
        this.#beginBlock(index, objectOf(objectOf(event['start'])?.['toolUse']));
        break;
      case 'contentBlockDelta': {
        // Blocks of text have no start.
        const block = this.#blocks.get(index) ?? this.#beginBlock(index, null);
        this.#takeDelta(block, objectOf(event['delta']) ?? {});
        break;
      }
      case 'contentBlockStop':
        this.#endBlock(index);
        break;
      case 'messageStop':
        takeEnding(this.state, textIn(event['stopReason']), endings.get(event['stopReason']));
        break;
      case 'metadata':
        this.#addUsage(objectOf(event['usage']));
        this.state.isOver = this.state.ending !== null;
        break;
    }
    return null;
  }

  end(): void {
    for (const index of [...this.#blocks.keys()]) this.#endBlock(index);
  }

  #beginBlock(index: unknown, toolUse: Json | null): Block {
    this.#endBlock(index);
    this.state.isBegun = true;
    const call =
      toolUse === null ? null : { id: textIn(toolUse['toolUseId']), name: textIn(toolUse['name']) };
    if (call !== null) this.#answer.beginCall();
    const block = { call, inputs: [], thoughts: [], signature: '', redactedContent: '' };
    this.#blocks.set(index, block);
    return block;
  }

  #takeDelta(block: Block, delta: Json): void {
    const text = textIn(delta['text']);
    if (text !== '') this.#answer.takeText(text);
    const toolUse = objectOf(delta['toolUse']);
    if (toolUse !== null) {
      if (block.call === null) throw new ProtocolError('arguments of no call');
      const input = textIn(toolUse['input']);
      this.#answer.spendToolInput(input);
      block.inputs.push(input);
    }
    const reasoning = objectOf(delta['reasoningContent']);
    if (reasoning !== null) this.#takeReasoning(block, reasoning);
  }

  #takeReasoning(block: Block, { text, signature, redactedContent }: Json): void {
    this.#answer.spendReasoning(textIn(text) + textIn(redactedContent));
    block.thoughts.push(textIn(text));
    block.signature += textIn(signature);
    block.redactedContent += textIn(redactedContent);
  }

  #endBlock(index: unknown): void {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (block === undefined) return;
    const { call, inputs, thoughts, signature, redactedContent } = block;
    if (call !== null) this.#answer.takeCall({ ...call, input: inputs.join('') || '{}' });
    // Without a signature nothing can be sent back.
    if (signature !== '') {
      this.#answer.takeReasoning(thoughts.join(''), { bedrock: { signature } });
    }
    if (redactedContent !== '') this.#answer.takeReasoning('', { bedrock: { redactedContent } });
  }

  /** What was read from a cache or written to it is counted beside the input. */
  #addUsage(reported: Json | null): void {
    if (reported === null) return;
    const before = this.state.usage;
    const input = countIn(reported, 'inputTokens');
    const cacheRead = countIn(reported, 'cacheReadInputTokens');
    const cacheWrite = countIn(reported, 'cacheWriteInputTokens');
    const counts = {
      prompt: largerOf(
        before.prompt,
        input === null ? null : input + (cacheRead ?? 0) + (cacheWrite ?? 0),
      ),
      completion: largerOf(before.completion, countIn(reported, 'outputTokens')),
    };
    this.state.usage = withParts(counts, before, { cacheRead, cacheWrite, reasoning: null });
  }
}
