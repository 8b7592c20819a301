/**
 * An answer in one JSON document, as servers give it that do not stream: in the events that a stream
 * of it would have had. Pure.
 */
import { type Json, objectOf } from './json.ts';
import type { Protocol } from './providers.ts';

/** The events of an answer; what is no answer, an error for example, stays as it is. */
export function eventsOf(protocol: Protocol, document: Json): Json[] {
  return protocol === 'chat' ? [chunkOf(document)] : messageEventsOf(document);
}

/** A chat's answer is one chunk with all of it. */
function chunkOf(document: Json): Json {
  const { choices } = document;
  if (!Array.isArray(choices)) return document;
  return { ...document, choices: choices.map(choiceOf) };
}

function choiceOf(choice: unknown): unknown {
  const { message, ...rest } = objectOf(choice) ?? {};
  const delta = objectOf(message);
  if (delta === null) return choice;
  const { tool_calls: calls } = delta;
  const numbered = Array.isArray(calls) ? { tool_calls: calls.map(numberedCall) } : {};
  // Whether or not it says why it ended, a document that can be read is whole.
  const finish = finishReasonIn(rest) ?? unsaidFinish;
  return { ...rest, finish_reason: finish, delta: { ...delta, ...numbered } };
}

/** Of an answer that is whole and does not say why it ended. */
export const unsaidFinish = 'unknown';

/** Why a choice ended; null for one that goes on, which some servers say in words. */
export function finishReasonIn(choice: Json): string | null {
  const reason = choice['finish_reason'];
  const isSaid = typeof reason === 'string' && reason.trim() !== '' && reason !== 'null';
  return isSaid ? reason : null;
}

/** In a stream its number says to which call a piece belongs; here each call is one piece. */
function numberedCall(call: unknown, index: number): Json {
  return { ...objectOf(call), index };
}

function messageEventsOf(document: Json): Json[] {
  const { id, model, role, content, stop_reason, stop_sequence } = document;
  if (!Array.isArray(content)) return [document];
  const usage = objectOf(document['usage']);
  return [
    { type: 'message_start', message: { id, model, role, usage } },
    ...content.flatMap(blockEventsOf),
    {
      type: 'message_delta',
      delta: { stop_reason, stop_sequence },
      usage: { output_tokens: usage?.['output_tokens'] },
    },
    { type: 'message_stop' },
  ];
}

/** What a block has already when it begins is heard there. */
function blockEventsOf(content: unknown, index: number): Json[] {
  const block = objectOf(content);
  const stop = { type: 'content_block_stop', index };
  if (block?.['type'] !== 'tool_use') {
    return [{ type: 'content_block_start', index, content_block: content }, stop];
  }
  const { input } = block;
  const json = typeof input === 'string' ? input : JSON.stringify(input ?? {});
  return [
    { type: 'content_block_start', index, content_block: { ...block, input: {} } },
    { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: json } },
    stop,
  ];
}
