/**
 * Converse: the protocol of Amazon Bedrock, the same for all of its models. How a model is told its effort is its maker's own.
 */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AssistantMessage, DialogueMessage, ModelCall } from '../model.ts';
import {
  acceptableId,
  acceptableInput,
  acceptableInputText,
  acceptableName,
  boundedId,
  spokenPartsOf,
  spokenText,
  type Turn,
  type TurnPart,
  turnsOf,
} from '../prompt.ts';
import type { Protocol } from '../protocol.ts';
import { ConverseReader } from './converse-reader.ts';
import { thinkingFor, threeLevels } from './messages-settings.ts';
import { nineCharactersOf } from './mistral.ts';
import { bearerOf } from './open-ai.ts';

/** The highest temperature. */
const temperatureMax = 1;
/** Characters of the id of a call. */
const callIdMax = 64;
const cachePoint: Json = { cachePoint: { type: 'default' } };

export const converse: Protocol = {
  name: 'converse',
  pathFor: (name) => `/model/${encodeURIComponent(name)}/converse-stream`,
  headersOf: bearerOf,
  bodyOf,
  readerFor: (answer) => new ConverseReader(answer),
  eventsOf,
};

function bodyOf(given: ModelCall, name: string): Json {
  // It has no way to forbid tools that are offered.
  const call = given.mustAnswer ? { ...given, tools: [] } : given;
  const { temperature, tools } = call;
  const caches = /anthropic\.claude-/.test(name);
  const turns = turnsOf(call.messages, (message) => blocksOf(call, name, message));
  if (caches && (tools.length > 0 || turns.length > 1)) markCachedTurns(turns);
  const system = call.system === '' ? [] : [{ text: call.system }, ...(caches ? [cachePoint] : [])];
  return {
    system: system.length === 0 ? undefined : system,
    messages: turns,
    inferenceConfig: {
      maxTokens: call.maxOutputTokens,
      temperature: temperature && Math.min(temperature, temperatureMax),
    },
    toolConfig: tools.length === 0 ? undefined : { tools: tools.map(toolOf) },
    additionalModelRequestFields: effortOf(call, name),
  };
}

function toolOf({ name, description, parameters }: ModelCall['tools'][number]): Json {
  // It refuses an empty description.
  return {
    toolSpec: { name, description: description || name, inputSchema: { json: parameters } },
  };
}

/** Undefined where nothing is asked for, or the model is not known to take an effort. */
function effortOf(call: ModelCall, name: string): Json | undefined {
  const { effort } = call;
  if (effort === undefined) return undefined;
  if (name.includes('anthropic.')) {
    const { thinking, effort: ownEffort } = thinkingFor(call);
    return { thinking, output_config: ownEffort && { effort: ownEffort } };
  }
  if (effort === 'none') return undefined;
  const level = threeLevels[effort];
  if (name.includes('openai.gpt-oss')) return { reasoning_effort: level };
  if (!/amazon\.nova-2/.test(name)) return undefined;
  return { reasoningConfig: { type: 'enabled', maxReasoningEffort: level } };
}

function blocksOf(call: ModelCall, name: string, message: DialogueMessage): Json[] {
  if (message.role === 'user') {
    // PDF goes to it as text.
    const pictures = (message.contents ?? []).map(({ mediaType, base64 }) => ({
      image: { format: mediaType.slice('image/'.length), source: { bytes: base64 } },
    }));
    return [...pictures, { text: spokenText(message.text) }];
  }
  // Calls and results are refused in a request without tools: they are told as text.
  const hasTools = call.tools.length > 0;
  if (message.role === 'assistant') return answerBlocksOf(call.model, name, message, hasTools);
  const content = [{ text: spokenText(message.text) }];
  if (!hasTools) return content;
  return [{ toolResult: { toolUseId: callIdOf(message.callId, name), content } }];
}

function answerBlocksOf(
  model: string,
  name: string,
  message: AssistantMessage,
  hasTools: boolean,
): Json[] {
  return spokenPartsOf(model, message).flatMap((part) => {
    if (part.type !== 'tool-call' || hasTools) return [blockOf(part, name)];
    const { call } = part;
    return [{ text: `(${acceptableName(call.name)} ${acceptableInputText(call.input)})` }];
  });
}

function blockOf(part: TurnPart, name: string): Json {
  if (part.type === 'text') return { text: part.text };
  if (part.type === 'reasoning') {
    const { signature, redactedContent } = part.signed['bedrock'] ?? {};
    return redactedContent === undefined
      ? { reasoningContent: { reasoningText: { text: part.text, signature } } }
      : { reasoningContent: { redactedContent } };
  }
  const { id, name: called, input } = part.call;
  return {
    toolUse: {
      toolUseId: callIdOf(id, name),
      name: acceptableName(called),
      input: acceptableInput(input),
    },
  };
}

function callIdOf(id: string, name: string): string {
  return name.includes('mistral.') ? nineCharactersOf(id) : boundedId(acceptableId(id), callIdMax);
}

/** As in messages: the end of this request, and that of the former one. */
function markCachedTurns(turns: readonly Turn[]): void {
  const former = turns.findLastIndex(({ role }) => role === 'assistant') - 1;
  for (const turn of new Set([turns.at(-1), turns[former]])) turn?.content.push(cachePoint);
}

/** A whole answer, of a gateway that does not stream, as the events of a stream. */
function eventsOf(document: Json): Json[] {
  const { output, stopReason, usage } = document;
  const content = objectOf(objectOf(output)?.['message'])?.['content'];
  if (!Array.isArray(content)) return [document];
  return [
    ...content.flatMap((block, contentBlockIndex) => {
      const { text, toolUse, reasoningContent } = objectOf(block) ?? {};
      const use = objectOf(toolUse);
      const thought = objectOf(reasoningContent);
      return [
        {
          type: 'contentBlockStart',
          contentBlockIndex,
          start: use === null ? {} : { toolUse: use },
        },
        {
          type: 'contentBlockDelta',
          contentBlockIndex,
          delta: {
            text,
            toolUse: use === null ? undefined : { input: JSON.stringify(use['input'] ?? {}) },
            reasoningContent: thought?.['reasoningText'] ?? thought ?? undefined,
          },
        },
        { type: 'contentBlockStop', contentBlockIndex },
      ];
    }),
    { type: 'messageStop', stopReason: stopReason ?? 'unknown' },
    { type: 'metadata', usage },
  ];
}
