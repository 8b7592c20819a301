/** Messages: Anthropic's protocol, which gateways and some local servers speak, too. */
import { type Json, objectOf } from '../../../kernel/json.ts';
import { isPicture } from '../../../kernel/media-type.ts';
import type { AssistantMessage, DialogueMessage, FileContent, ModelCall } from '../model.ts';
import {
  acceptableId,
  acceptableInput,
  acceptableName,
  spokenPartsOf,
  spokenText,
  type Turn,
  turnsOf,
} from '../prompt.ts';
import type { Protocol } from '../protocol.ts';
import { MessagesReader } from './messages-reader.ts';
import { goesBack, outputSchema, thinkingFor } from './messages-settings.ts';

const version = '2023-06-01';
/** The highest temperature. */
const temperatureMax = 1;

export const messages: Protocol = {
  name: 'messages',
  pathFor: () => '/messages',
  headersOf: (apiKey) => ({
    'anthropic-version': version,
    ...(apiKey === null ? {} : { 'x-api-key': apiKey }),
  }),
  bodyOf,
  readerFor: (answer) => new MessagesReader(answer),
  eventsOf,
};

function bodyOf(call: ModelCall, name: string): Json {
  const { temperature, schema, maxOutputTokens } = call;
  const { thinking, effort } = thinkingFor(call);
  const format = schema && outputSchema(schema);
  const config = { effort, format: format && { type: 'json_schema', schema: format } };
  const tools = call.tools.map(toolOf);
  const turns = turnsOf(call.messages, (message) =>
    message.role === 'assistant' ? blocksOf(call.model, message) : inputBlocksOf(message),
  );
  markCachedParts(tools, turns);
  return {
    model: name,
    max_tokens: maxOutputTokens,
    temperature: temperature && Math.min(temperature, temperatureMax),
    thinking,
    output_config: effort === undefined && format === undefined ? undefined : config,
    system: call.system === '' ? undefined : [{ type: 'text', text: call.system, ...mark }],
    messages: turns,
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: tools.length > 0 && call.mustAnswer ? { type: 'none' } : undefined,
    stream: true,
  };
}

function toolOf({ name, description, parameters }: ModelCall['tools'][number]): Json {
  return { name, description, input_schema: parameters };
}

function inputBlocksOf(message: Exclude<DialogueMessage, AssistantMessage>): Json[] {
  if (message.role === 'user') {
    return [
      ...(message.contents ?? []).map(fileOf),
      { type: 'text', text: spokenText(message.text) },
    ];
  }
  return [
    {
      type: 'tool_result',
      tool_use_id: acceptableId(message.callId),
      content: message.text,
      is_error: message.isError || undefined,
    },
  ];
}

function fileOf(file: FileContent): Json {
  const source = { type: 'base64', media_type: file.mediaType, data: file.base64 };
  return isPicture(file.mediaType)
    ? { type: 'image', source }
    : { type: 'document', source, title: file.name };
}

function blocksOf(model: string, message: AssistantMessage): Json[] {
  const parts = spokenPartsOf(model, message).filter((part) => goesBack(model, part));
  return parts.map((part): Json => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    if (part.type === 'reasoning') {
      const { signature, redactedData } = part.signed['anthropic'] ?? {};
      return redactedData === undefined
        ? { type: 'thinking', thinking: part.text, signature }
        : { type: 'redacted_thinking', data: redactedData };
    }
    const { id, name, input } = part.call;
    return {
      type: 'tool_use',
      id: acceptableId(id),
      name: acceptableName(name),
      input: acceptableInput(input),
    };
  });
}

const mark = { cache_control: { type: 'ephemeral' } } as const;

/**
 * Marks the parts of a request that Anthropic caches: what is before a mark is read from the cache by a later request
 * that begins with the same bytes, for five minutes. OpenAI and most others cache by themselves what two requests begin
 * with.
 *
 * A request may have four marks: the tools, the system text, the end of this request, and the end of the former one. The
 * provider looks for an earlier entry only 20 blocks before a mark, which a turn with many tools exceeds, so the former
 * end is marked too. A request that no other will follow is not marked at its end, because writing costs a quarter more
 * than reading without the cache.
 */
function markCachedParts(tools: readonly Json[], turns: readonly Turn[]): void {
  const former = turns.findLastIndex(({ role }) => role === 'assistant') - 1;
  const goesOn = tools.length > 0 || former >= 0;
  const ends = goesOn ? [turns.at(-1), turns[former]] : [];
  for (const part of [tools.at(-1), ...ends.map((turn) => turn?.content.at(-1))]) {
    if (part !== undefined) Object.assign(part, mark);
  }
}

/** The content of a block comes with its start event, where the reader reads it. */
function eventsOf(document: Json): Json[] {
  const { content, stop_reason, usage } = document;
  if (!Array.isArray(content)) return [document];
  return [
    { type: 'message_start', message: { usage } },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason },
      usage: { output_tokens: objectOf(usage)?.['output_tokens'] },
    },
    { type: 'message_stop' },
  ];
}
