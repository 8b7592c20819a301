/**
 * What the events of a stream say about the call itself: its usage, that it finished, that it failed.
 * Read here and not from the SDK, which shows a missing count as 0 and tells usage at the end only,
 * so that nothing would be known of a call that was cut. What servers leave out or add, and the SDK
 * insists on, is mended on the way.
 */
import { type Json, objectOf } from './json.ts';
import { nothingReported, type Usage } from './model.ts';
import type { Protocol } from './providers.ts';

/** What became of one event. */
export type Heard =
  /** For the SDK as it is, or mended: then it is to be written anew. */
  | { readonly pass: true; readonly isMended: boolean }
  /** Nothing that the SDK has to see. */
  | { readonly pass: false }
  /** The provider says that the call failed. */
  | { readonly error: string };

export interface Hearing {
  hear(event: unknown): Heard;
  /** As the provider reported it so far. */
  usage(): Usage;
  /** Whether the provider said that the answer is whole. */
  isFinished(): boolean;
  /** Whether nothing more is to come. */
  isOver(): boolean;
}

const unaltered: Heard = { pass: true, isMended: false };
const mended: Heard = { pass: true, isMended: true };
const nothing: Heard = { pass: false };

export function createHearing(protocol: Protocol): Hearing {
  return protocol === 'chat' ? chatHearing() : messagesHearing();
}

/** The chunks of chat completions; `[DONE]` is not one of them. */
function chatHearing(): Hearing {
  let usage = nothingReported;
  let isFinished = false;
  const calls = createCallIndexes();

  return {
    hear(event) {
      const chunk = objectOf(event);
      if (chunk === null) return { error: 'an event that is no object' };
      const error = chunk['error'] ?? (chunk['object'] === 'error' ? chunk : null);
      if (error !== null) return { error: messageIn(error) };
      const reported = objectOf(chunk['usage']);
      if (reported !== null) {
        usage = {
          prompt: countIn(reported, 'prompt_tokens') ?? usage.prompt,
          completion: countIn(reported, 'completion_tokens') ?? usage.completion,
        };
      }
      let isMended = chunk['usage'] != null;
      if (isMended) delete chunk['usage'];
      if (!Array.isArray(chunk['choices'])) {
        if (reported === null) return nothing;
        chunk['choices'] = [];
      }
      for (const [index, one] of (chunk['choices'] as unknown[]).entries()) {
        const choice = objectOf(one);
        if (choice === null) return { error: 'a choice that is no object' };
        if (typeof choice['finish_reason'] === 'string') isFinished = true;
        isMended = mendChoice(choice, index, calls) || isMended;
      }
      return isMended ? mended : unaltered;
    },
    usage: () => usage,
    isFinished: () => isFinished,
    isOver: () => false,
  };
}

/** Whether anything was missing. */
function mendChoice(choice: Json, index: number, calls: CallIndexes): boolean {
  let isMended = false;
  if (typeof choice['index'] !== 'number') {
    choice['index'] = index;
    isMended = true;
  }
  const delta = objectOf(choice['delta']);
  if (delta === null) return isMended;
  if ('role' in delta && delta['role'] !== 'assistant') {
    delete delta['role'];
    isMended = true;
  }
  if (Array.isArray(delta['content'])) {
    delta['content'] = delta['content'].map(textIn).join('');
    isMended = true;
  }
  for (const one of Array.isArray(delta['tool_calls']) ? delta['tool_calls'] : []) {
    const call = objectOf(one);
    if (call !== null) isMended = mendCall(call, calls) || isMended;
  }
  return isMended;
}

/** Of a part of content that came in parts; empty for one that is no text. */
function textIn(part: unknown): string {
  const { type, text } = objectOf(part) ?? {};
  return type === 'text' && typeof text === 'string' ? text : '';
}

/** Some servers number no calls, some do not say that a call is one of a function. */
function mendCall(call: Json, calls: CallIndexes): boolean {
  let isMended = false;
  if (typeof call['index'] !== 'number') {
    call['index'] = calls.indexOf(call['id']);
    isMended = true;
  }
  if ('type' in call && call['type'] !== 'function') {
    call['type'] = 'function';
    isMended = true;
  }
  const made = objectOf(call['function']);
  // The first piece of a call has its name, and the SDK passes over one whose name is blank.
  if (made !== null && typeof call['id'] === 'string' && made['name'] === '') {
    made['name'] = '_';
    isMended = true;
  }
  if (made !== null && objectOf(made['arguments']) !== null) {
    made['arguments'] = JSON.stringify(made['arguments']);
    isMended = true;
  }
  return isMended;
}

interface CallIndexes {
  indexOf(id: unknown): number;
}

/** Numbers calls by their ids; a piece without one belongs to the call before it. */
function createCallIndexes(): CallIndexes {
  const indexes = new Map<unknown, number>();
  let last = 0;
  return {
    indexOf(id) {
      if (typeof id !== 'string' || id === '') return last;
      last = indexes.get(id) ?? indexes.size;
      indexes.set(id, last);
      return last;
    },
  };
}

/** Kinds that the SDK knows; the protocol asks clients to pass others by. */
const kinds = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
]);
const promptCounts = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
] as const;

/** The events of messages. */
function messagesHearing(): Hearing {
  const reported: Json = {};
  /** What `message_start` counts as output is a beginning, no count of the answer. */
  let completion: number | null = null;
  let isOver = false;

  return {
    hear(event) {
      const said = objectOf(event);
      if (said === null) return { error: 'an event that is no object' };
      if (said['type'] === 'error' || said['error'] != null) {
        return { error: messageIn(said['error']) };
      }
      if (!kinds.has(String(said['type']))) return nothing;
      if (said['type'] === 'message_stop') isOver = true;
      const bearer = said['type'] === 'message_start' ? objectOf(said['message']) : said;
      const usage = objectOf(bearer?.['usage']);
      for (const name of promptCounts) {
        const count = usage === null ? null : countIn(usage, name);
        if (count !== null) reported[name] = count;
      }
      if (said['type'] === 'message_delta' && usage !== null) {
        completion = countIn(usage, 'output_tokens') ?? completion;
      }
      return bearer !== null && mendEvent(said, bearer, usage) ? mended : unaltered;
    },
    usage: () => ({
      prompt:
        countIn(reported, 'input_tokens') === null
          ? null
          : promptCounts.reduce((sum, name) => sum + (countIn(reported, name) ?? 0), 0),
      completion,
    }),
    isFinished: () => isOver,
    isOver: () => isOver,
  };
}

const required: Readonly<Record<string, string>> = {
  message_start: 'input_tokens',
  message_delta: 'output_tokens',
};
const blockTexts: Readonly<Record<string, string>> = { text: 'text', thinking: 'thinking' };

/** Whether anything was missing; a count that the SDK insists on becomes 0, and is not read again. */
function mendEvent(said: Json, bearer: Json, usage: Json | null): boolean {
  const count = required[String(said['type'])];
  if (count !== undefined && (usage === null || countIn(usage, count) === null)) {
    bearer['usage'] = { [count]: 0 };
    return true;
  }
  const block = objectOf(said['content_block']);
  const text = block === null ? undefined : blockTexts[String(block['type'])];
  if (block === null || text === undefined || typeof block[text] === 'string') return false;
  block[text] = '';
  return true;
}

/** What an error says, in whichever of the usual forms it comes. */
export function messageIn(error: unknown): string {
  if (typeof error === 'string') return error;
  const body = objectOf(error);
  for (const name of ['message', 'error', 'detail', 'type']) {
    const value = body?.[name];
    if (typeof value === 'string' && value !== '') return value;
    if (objectOf(value) !== null) return messageIn(value);
  }
  return 'an error without a message';
}

/** A count above it is no count: sums of such would pass what numbers can hold. */
const countMax = 1_000_000_000;

function countIn(usage: Json, name: string): number | null {
  const value = usage[name];
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : null;
}
