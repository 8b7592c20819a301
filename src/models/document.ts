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
  const finish = rest['finish_reason'] ?? 'unknown';
  return { ...rest, finish_reason: finish, delta: { ...delta, ...numbered } };
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

function blockEventsOf(content: unknown, index: number): Json[] {
  const { start, deltas } = partsOfBlock(objectOf(content) ?? {});
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** A block as it begins, and what is added to it. */
function partsOfBlock(block: Json): { start: Json; deltas: Json[] } {
  const { type, text, thinking, signature, input } = block;
  switch (type) {
    case 'text':
      return { start: { type, text: '' }, deltas: [{ type: 'text_delta', text }] };
    case 'thinking':
      return {
        start: { type, thinking: '' },
        deltas: [
          { type: 'thinking_delta', thinking },
          ...(signature === undefined ? [] : [{ type: 'signature_delta', signature }]),
        ],
      };
    case 'tool_use': {
      const json = typeof input === 'string' ? input : JSON.stringify(input ?? {});
      return {
        start: { ...block, input: {} },
        deltas: [{ type: 'input_json_delta', partial_json: json }],
      };
    }
    default:
      return { start: block, deltas: [] };
  }
}

/** What the providers' documentation has for the kinds of errors. */
const statusOfKind: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['insufficient_quota', 429],
]);

/** The HTTP status that an error says it has, or should have come with; null when it says none. */
export function statusIn(document: Json): number | null {
  const error = objectOf(document['error']) ?? document;
  for (const value of [error['status'], error['code'], error['type']]) {
    const status = statusOfKind.get(value) ?? Number(value);
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
  }
  return null;
}
