/** The events of messages; the protocol asks clients to pass by the kinds that they do not know. */
import { countIn, largerOf } from './counts.ts';
import { messageIn } from './error-body.ts';
import type { Heard, Hearing } from './hearing.ts';
import { type Json, objectOf } from './json.ts';

const promptCounts = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
] as const;
const deltas: ReadonlySet<unknown> = new Set([
  'text_delta',
  'thinking_delta',
  'signature_delta',
  'input_json_delta',
]);

export function createMessagesHearing(): Hearing {
  const reported = new Map<string, number | null>();
  /** What `message_start` counts as output is a beginning, no count of the answer. */
  let completion: number | null = null;
  /** Whether the message said why it ended, which some servers do without a `message_stop`. */
  let isFinished = false;
  let isBegun = false;
  let isOver = false;
  /** Blocks that are not passed on, nor is what belongs to them. */
  const passedBy = new Set<unknown>();

  function note(said: Json): void {
    const bearer = said['type'] === 'message_start' ? objectOf(said['message']) : said;
    const usage = objectOf(bearer?.['usage']);
    if (usage === null) return;
    for (const name of promptCounts) {
      reported.set(name, largerOf(reported.get(name) ?? null, countIn(usage, name)));
    }
    if (said['type'] === 'message_delta') {
      completion = largerOf(completion, countIn(usage, 'output_tokens'));
    }
  }

  function blockEventsOf(index: unknown, block: Json): Json[] {
    const parts = partsOf(block);
    if (parts === null) {
      passedBy.add(index);
      return [];
    }
    passedBy.delete(index);
    return [
      { type: 'content_block_start', index, content_block: parts.start },
      ...parts.deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    ];
  }

  /** Counts, on which the SDK insists, are read here and nowhere else. */
  function passedOf(said: Json): Json[] {
    const { type, index } = said;
    const delta = objectOf(said['delta']) ?? {};
    switch (type) {
      case 'message_start':
        return [{ type, message: { usage: { input_tokens: 0 } } }];
      case 'content_block_start':
        isBegun = true;
        return blockEventsOf(index, objectOf(said['content_block']) ?? {});
      case 'content_block_delta':
        return passedBy.has(index) || !deltas.has(delta['type']) ? [] : [said];
      case 'content_block_stop':
        return passedBy.has(index) ? [] : [said];
      case 'message_delta': {
        const reason = delta['stop_reason'];
        const stop_reason = typeof reason === 'string' ? reason : null;
        if (stop_reason !== null) isFinished = true;
        return [{ type, delta: { stop_reason }, usage: { output_tokens: 0 } }];
      }
      case 'message_stop':
        isFinished = true;
        isOver = true;
        return [said];
      default:
        return [];
    }
  }

  return {
    hear(event): Heard {
      const said = objectOf(event);
      if (said === null) return { error: 'an event that is no object' };
      if (said['type'] === 'error' || said['error']) return { error: messageIn(said['error']) };
      if (said['type'] === 'content_block_start' && objectOf(said['content_block']) === null) {
        return { error: 'a content block that is no object' };
      }
      note(said);
      return { events: passedOf(said) };
    },
    done() {
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

/** A block as it begins, and what it has already; null for a kind that nobody reads. */
function partsOf(block: Json): { start: Json; deltas: Json[] } | null {
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

/** None for what was left out. */
function deltaOf(type: string, value: Json): Json[] {
  return Object.values(value).every((text) => text == null || text === '')
    ? []
    : [{ type, ...value }];
}
