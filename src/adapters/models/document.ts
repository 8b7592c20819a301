/** Converts an answer in one JSON document, from a server that does not stream, into events. Pure. */
import { type Json, objectOf } from '../../kernel/json.ts';
import type { Protocol } from './providers.ts';

/** The events of an answer. A document that is not an answer, such as an error, is returned as it is. */
export function eventsOf(protocol: Protocol, document: Json): Json[] {
  return protocol === 'chat' ? [chunkOf(document)] : messageEventsOf(document);
}

/** The answer of a chat becomes one chunk. */
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
  // A document that can be parsed is complete, with or without a finish reason.
  const finish = finishReasonIn(rest) ?? unknownFinish;
  return { ...rest, finish_reason: finish, delta: { ...delta, ...numbered } };
}

/** The finish reason of a complete answer that has none. */
export const unknownFinish = 'unknown';

/** Why a choice ended; null for one that goes on, which some servers write as `'null'` or a blank. */
export function finishReasonIn(choice: Json): string | null {
  const reason = choice['finish_reason'];
  const isPresent = typeof reason === 'string' && reason.trim() !== '' && reason !== 'null';
  return isPresent ? reason : null;
}

/** The index tells the deltas of a stream apart; here each call is one delta. */
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

/** The content of a block comes with its start event, where the parser reads it. */
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
