/** Parses the events of messages. Unknown kinds are ignored, as the protocol asks of clients. */

import { type Json, objectOf } from '../../kernel/json.ts';
import { countIn, largerOf, largestIn, withParts } from './counts.ts';
import { messageIn } from './error-body.ts';
import {
  nothingStreamed,
  type ParsedEvent,
  type StreamParser,
  type StreamState,
} from './stream-parser.ts';

const promptCounts = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
] as const;
const knownDeltas: ReadonlySet<unknown> = new Set([
  'text_delta',
  'thinking_delta',
  'signature_delta',
  'input_json_delta',
]);

interface MessagesState extends StreamState {
  /** The counts of the prompt by name. */
  readonly counts: Map<string, number | null>;
  /** Indexes of blocks of unknown kinds; their deltas are not forwarded either. */
  readonly skippedBlocks: Set<unknown>;
  /** Whether the SDK was given a part of the answer: then it gets all later parts too, which keeps their order. */
  isInSdk: boolean;
}

export class MessagesParser implements StreamParser {
  readonly state: MessagesState = {
    ...nothingStreamed,
    counts: new Map(),
    skippedBlocks: new Set(),
    isInSdk: false,
  };

  parse(value: unknown): ParsedEvent {
    const { state } = this;
    const event = objectOf(value);
    if (event === null) return { error: 'an event that is no object' };
    if (event['type'] === 'error' || event['error']) return { error: messageIn(event['error']) };
    if (event['type'] === 'content_block_start' && objectOf(event['content_block']) === null) {
      return { error: 'a content block that is no object' };
    }
    addUsage(state, event);
    const text = state.isInSdk ? '' : textOf(state, event);
    if (text !== '') return { text };
    const events = sdkEventsOf(state, event);
    state.isInSdk ||= events.some(hasPart);
    return { events };
  }

  end(): Json[] {
    this.state.isOver = true;
    return [{ type: 'message_stop' }];
  }
}

/** The text of a delta; empty for any other event. */
function textOf({ skippedBlocks }: MessagesState, { type, index, delta }: Json): string {
  if (type !== 'content_block_delta' || skippedBlocks.has(index)) return '';
  const { type: kind, text } = objectOf(delta) ?? {};
  return kind === 'text_delta' && typeof text === 'string' ? text : '';
}

/** Whether an event for the SDK has a part of the answer, or begins one that is no text. */
function hasPart({ type, content_block, delta }: Json): boolean {
  if (type === 'content_block_start') return objectOf(content_block)?.['type'] !== 'text';
  return type === 'content_block_delta' && objectOf(delta)?.['text'] !== '';
}

/** Of the output only `message_delta` counts: the count in `message_start` does not cover the answer. */
function addUsage(state: MessagesState, event: Json): void {
  const holder = event['type'] === 'message_start' ? objectOf(event['message']) : event;
  const usage = objectOf(holder?.['usage']);
  if (usage === null) return;
  const { counts } = state;
  for (const name of promptCounts) {
    counts.set(name, largerOf(counts.get(name) ?? null, countIn(usage, name)));
  }
  const completion = event['type'] === 'message_delta' ? countIn(usage, 'output_tokens') : null;
  const totals = {
    prompt:
      counts.get('input_tokens') === null
        ? null
        : promptCounts.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0),
    completion: largerOf(state.usage.completion, completion),
  };
  state.usage = withParts(totals, state.usage, {
    cacheRead: counts.get('cache_read_input_tokens') ?? null,
    cacheWrite: counts.get('cache_creation_input_tokens') ?? null,
    reasoning: largestIn([[objectOf(usage['output_tokens_details']), 'thinking_tokens']]),
  });
}

/** The SDK requires counts in its events, so they are zeros here; `addUsage` reads the real ones. */
function sdkEventsOf(state: MessagesState, event: Json): Json[] {
  const { type, index } = event;
  const { skippedBlocks } = state;
  const delta = objectOf(event['delta']) ?? {};
  switch (type) {
    case 'message_start':
      return [{ type, message: { usage: { input_tokens: 0 } } }];
    case 'content_block_start':
      state.isBegun = true;
      return blockEventsOf(state, index, objectOf(event['content_block']) ?? {});
    case 'content_block_delta':
      return skippedBlocks.has(index) || !knownDeltas.has(delta['type']) ? [] : [event];
    case 'content_block_stop':
      return skippedBlocks.has(index) ? [] : [event];
    case 'message_delta': {
      const reason = delta['stop_reason'];
      const stop_reason = typeof reason === 'string' ? reason : null;
      // Some servers send no `message_stop` after a stop reason.
      if (stop_reason !== null) state.isFinished = true;
      return [{ type, delta: { stop_reason }, usage: { output_tokens: 0 } }];
    }
    case 'message_stop':
      state.isFinished = true;
      state.isOver = true;
      return [event];
    default:
      return [];
  }
}

function blockEventsOf({ skippedBlocks }: MessagesState, index: unknown, block: Json): Json[] {
  const parts = splitBlock(block);
  if (parts === null) {
    skippedBlocks.add(index);
    return [];
  }
  skippedBlocks.delete(index);
  return [
    { type: 'content_block_start', index, content_block: parts.start },
    ...parts.deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  ];
}

/**
 * An empty block, and its first content as deltas: some servers send content with the start of a
 * block. Null for an unknown kind.
 */
function splitBlock(block: Json): { start: Json; deltas: Json[] } | null {
  const { type, text, thinking, signature, data, id, name, input } = block;
  switch (type) {
    case 'text':
      return { start: { type, text: '' }, deltas: [...deltaOf('text_delta', { text })] };
    case 'thinking':
      return {
        start: { type, thinking: '' },
        deltas: [
          ...deltaOf('thinking_delta', { thinking }),
          ...deltaOf('signature_delta', { signature }),
        ],
      };
    case 'redacted_thinking':
      return { start: { type, data }, deltas: [] };
    case 'tool_use':
      return { start: { type, id, name, input: objectOf(input) ?? {} }, deltas: [] };
    default:
      return null;
  }
}

/** Empty when the block has no such content. */
function deltaOf(type: string, value: Json): Json[] {
  return Object.values(value).every((text) => text == null || text === '')
    ? []
    : [{ type, ...value }];
}
