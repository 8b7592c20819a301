/** Parses the events of messages. Unknown kinds are ignored, as the protocol asks of clients. */
import { countIn, largerOf } from './counts.ts';
import { messageIn } from './error-body.ts';
import { type Json, objectOf } from './json.ts';
import type { ParsedEvent, StreamParser } from './stream-parser.ts';

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

export function createMessagesParser(): StreamParser {
  const reported = new Map<string, number | null>();
  /** From `message_delta` alone: the output count in `message_start` does not cover the answer. */
  let completion: number | null = null;
  /** Set by a stop reason: some servers send no `message_stop` after it. */
  let isFinished = false;
  let isBegun = false;
  let isOver = false;
  /** Indexes of blocks of unknown kinds; their deltas are not forwarded either. */
  const skippedBlocks = new Set<unknown>();

  function addUsage(event: Json): void {
    const holder = event['type'] === 'message_start' ? objectOf(event['message']) : event;
    const usage = objectOf(holder?.['usage']);
    if (usage === null) return;
    for (const name of promptCounts) {
      reported.set(name, largerOf(reported.get(name) ?? null, countIn(usage, name)));
    }
    if (event['type'] === 'message_delta') {
      completion = largerOf(completion, countIn(usage, 'output_tokens'));
    }
  }

  function blockEventsOf(index: unknown, block: Json): Json[] {
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

  /** The SDK requires counts in its events, so they are zeros here; `addUsage` reads the real ones. */
  function sdkEventsOf(event: Json): Json[] {
    const { type, index } = event;
    const delta = objectOf(event['delta']) ?? {};
    switch (type) {
      case 'message_start':
        return [{ type, message: { usage: { input_tokens: 0 } } }];
      case 'content_block_start':
        isBegun = true;
        return blockEventsOf(index, objectOf(event['content_block']) ?? {});
      case 'content_block_delta':
        return skippedBlocks.has(index) || !knownDeltas.has(delta['type']) ? [] : [event];
      case 'content_block_stop':
        return skippedBlocks.has(index) ? [] : [event];
      case 'message_delta': {
        const reason = delta['stop_reason'];
        const stop_reason = typeof reason === 'string' ? reason : null;
        if (stop_reason !== null) isFinished = true;
        return [{ type, delta: { stop_reason }, usage: { output_tokens: 0 } }];
      }
      case 'message_stop':
        isFinished = true;
        isOver = true;
        return [event];
      default:
        return [];
    }
  }

  return {
    parse(value): ParsedEvent {
      const event = objectOf(value);
      if (event === null) return { error: 'an event that is no object' };
      if (event['type'] === 'error' || event['error']) return { error: messageIn(event['error']) };
      if (event['type'] === 'content_block_start' && objectOf(event['content_block']) === null) {
        return { error: 'a content block that is no object' };
      }
      addUsage(event);
      return { events: sdkEventsOf(event) };
    },
    end() {
      isOver = true;
      return [{ type: 'message_stop' }];
    },
    reasoning: () => null,
    usage: () => ({
      prompt:
        (reported.get('input_tokens') ?? null) === null
          ? null
          : promptCounts.reduce((sum, name) => sum + (reported.get(name) ?? 0), 0),
      completion,
    }),
    isBegun: () => isBegun,
    isFinished: () => isFinished,
    isOver: () => isOver,
  };
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
