/** Chat completions: OpenAI's older protocol, which most other providers and local servers speak. */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';
import { countIn, largerOf, largestIn, withParts } from '../counts.ts';
import { messageIn } from '../error-body.ts';
import {
  type AssistantMessage,
  type ModelCall,
  reasoningFields,
  type Usage,
  type UserMessage,
} from '../model.ts';
import {
  acceptableInputText,
  acceptableName,
  boundedId,
  type CallPart,
  dataUrl,
  partsOfTurn,
} from '../prompt.ts';
import {
  type AnswerReader,
  type AnswerState,
  type Ending,
  nothingRead,
  type Protocol,
  ProtocolError,
  takeEnding,
  textIn,
} from '../protocol.ts';
import { ChatCalls } from './chat-calls.ts';
import { ReasoningDetails, reasoningMax, reasoningOfAnswers } from './chat-reasoning.ts';
import { bearerOf, outputFormat } from './open-ai.ts';
import { openAiSchema } from './sent-schemas.ts';

/** Characters of the id of a call, which another provider's model may exceed. */
const callIdMax = 40;

export const chat: Protocol = {
  name: 'chat',
  pathFor: () => '/chat/completions',
  headersOf: bearerOf,
  bodyOf,
  readerFor: (answer) => new ChatReader(answer),
  eventsOf: (document) => [chunkOf(document)],
};

function bodyOf(call: ModelCall, name: string): Json {
  const { temperature, effort, schema, tools } = call;
  const format = outputFormat(schema);
  const isNewer = call.model.startsWith('openai/') && isReasoningModel(name);
  // The names of deployments are the customer's own.
  const isAzure =
    call.model.startsWith('azure/') && (isReasoningModel(name) || effort !== undefined);
  return {
    model: name,
    [isNewer || isAzure ? 'max_completion_tokens' : 'max_tokens']: call.maxOutputTokens,
    temperature,
    reasoning_effort: effort,
    response_format: format && { type: 'json_schema', json_schema: format },
    messages: messagesOf(call, isNewer ? 'developer' : 'system'),
    tools: tools.length === 0 ? undefined : tools.map(toolOf),
    tool_choice: tools.length > 0 && call.mustAnswer ? 'none' : undefined,
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** OpenAI's models that reason refuse `max_tokens`. */
function isReasoningModel(name: string): boolean {
  return /^(o\d|gpt-([5-9]|\d\d))/.test(name) && !name.startsWith('gpt-5-chat');
}

function toolOf({ name, description, parameters }: ModelCall['tools'][number]): Json {
  return {
    type: 'function',
    function: { name, description, parameters: openAiSchema(parameters) },
  };
}

function messagesOf(call: ModelCall, systemRole: string): Json[] {
  const messages: Json[] = [];
  if (call.system !== '') messages.push({ role: systemRole, content: call.system });
  const reasonings = reasoningOfAnswers(call);
  for (const message of call.messages) {
    if (message.role === 'user') messages.push({ role: 'user', content: contentOf(message) });
    else if (message.role === 'tool') {
      // Whether it is an error is in the text.
      messages.push({
        role: 'tool',
        tool_call_id: callIdOf(message.callId),
        content: message.text,
      });
    } else {
      const sent = answerOf(call.model, message);
      const reasoning = reasonings.get(message);
      const hasDetails = sent?.['reasoning_details'] !== undefined;
      const isSaid = hasDetails && reasoning?.field === 'reasoning';
      if (sent !== null && reasoning && !isSaid) sent[reasoning.field] = reasoning.text;
      if (sent !== null) messages.push(sent);
    }
  }
  return messages;
}

/** Plain text where there is no picture: some servers take no list. */
function contentOf({ text, contents = [] }: UserMessage): string | Json[] {
  if (contents.length === 0) return text;
  const pictures = contents.map((file) => ({
    type: 'image_url',
    image_url: { url: dataUrl(file) },
  }));
  return [...pictures, { type: 'text', text }];
}

/** Null for an empty answer, which some providers reject. */
function answerOf(model: string, message: AssistantMessage): Json | null {
  if (message.text === '' && message.toolCalls.length === 0) return null;
  const parts = partsOfTurn(model, message);
  const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [callOf(part)] : []));
  const details = parts.flatMap(({ signed }) => signed?.['chat']?.['reasoning_details'] ?? []);
  return {
    role: 'assistant',
    content: message.text || null,
    tool_calls: calls.length === 0 ? undefined : calls,
    reasoning_details: details.length === 0 ? undefined : details,
  };
}

function callOf({ call: { id, name, input }, signed }: CallPart): Json {
  const signature = Object.values(signed ?? {}).find(({ thoughtSignature }) => thoughtSignature);
  return {
    id: callIdOf(id),
    type: 'function',
    function: { name: acceptableName(name), arguments: acceptableInputText(input) },
    extra_content: signature && { google: { thought_signature: signature['thoughtSignature'] } },
  };
}

const callIdOf = (id: string): string => boundedId(id, callIdMax);

/** A document as one chunk. One that can be parsed is complete, with or without a finish reason. */
function chunkOf(document: Json): Json {
  const { choices } = document;
  const choice = Array.isArray(choices) ? objectOf(choices[0]) : null;
  const message = objectOf(choice?.['message']);
  if (choice === null || message === null) return document;
  const { tool_calls: calls } = message;
  const delta = Array.isArray(calls)
    ? { ...message, tool_calls: calls.map((call, index) => ({ ...objectOf(call), index })) }
    : message;
  const finish_reason = finishIn(choice) ?? 'unknown';
  return { ...document, choices: [{ ...choice, delta, finish_reason }] };
}

/** Why a choice ended; null for one that goes on, which some servers write as `'null'` or a blank. */
function finishIn({ finish_reason: reason }: Json): string | null {
  const isPresent = typeof reason === 'string' && reason.trim() !== '' && reason !== 'null';
  return isPresent ? reason : null;
}

const endings: ReadonlyMap<string, Ending> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['model_length', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content-filter'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
]);

class ChatReader implements AnswerReader {
  readonly state: AnswerState = nothingRead();
  readonly #answer: AnswerSoFar;
  readonly #calls: ChatCalls;
  readonly #details = new ReasoningDetails();
  /** Whether any part of the answer besides its reasoning has arrived. */
  #isAnswered = false;
  #isRefusal = false;

  constructor(answer: AnswerSoFar) {
    this.#answer = answer;
    this.#calls = new ChatCalls(answer);
    answer.hideThinkTags();
  }

  take(chunk: Json): string | null {
    const { choices, usage, x_groq } = chunk;
    if (usage) this.#addUsage(usage);
    if (x_groq) this.#addUsage(objectOf(x_groq)?.['usage']);
    // Some servers send `error: null` in every chunk.
    const error = chunk['error'] || (chunk['object'] === 'error' ? chunk : null);
    if (error) return messageIn(error);
    if (!Array.isArray(choices) || choices.length === 0) return null;
    const choice = objectOf(choices[0]);
    if (choice === null) throw new ProtocolError();
    if (choice['usage']) this.#addUsage(choice['usage']);
    this.#takeDelta(objectOf(choice['delta']) ?? {});
    const finish = finishIn(choice);
    if (finish !== null) this.#finish(finish);
    return null;
  }

  /** An answer that ends in order is complete, with or without a finish reason. */
  end(): void {
    this.#calls.end();
    this.#details.end(this.#answer);
    if (this.#isAnswered && this.state.ending === null) this.#finish('unknown');
  }

  #finish(reason: string): void {
    const { state } = this;
    takeEnding(state, reason, endings.get(reason.toLowerCase()));
    const isEnded = state.ending === 'stop' || state.ending === 'other';
    if (isEnded && this.#isRefusal) state.ending = 'refusal';
  }

  #takeDelta(delta: Json): void {
    const { content, refusal, tool_calls: calls, images } = delta;
    this.#addReasoning(delta);
    this.#details.take(delta['reasoning_details']);
    const text = Array.isArray(content) ? content.map(textOfPart).join('') : textIn(content);
    if (text !== '') this.#answer.takeText(text);
    const refused = typeof refusal === 'string' ? refusal : '';
    if (refused !== '') {
      this.#isRefusal = true;
      this.#answer.takeText(refused);
    }
    const deltas = Array.isArray(calls) ? calls.map(objectOf) : [];
    for (const call of deltas) if (call !== null) this.#calls.take(call);
    const pictures = Array.isArray(images) ? images.map(pictureIn) : [];
    for (const picture of pictures) this.#answer.takePicture(picture);
    if (text || refused || deltas.length > 0 || pictures.length > 0) this.#isAnswered = true;
    this.state.isBegun = this.#isAnswered || this.state.reasoning !== null;
  }

  /** Some servers send the same reasoning in two fields: the first field with text is used. */
  #addReasoning(delta: Json): void {
    const { reasoning } = this.state;
    const hasText = (name: string) => typeof delta[name] === 'string' && delta[name] !== '';
    const field = reasoning?.field ?? reasoningFields.find(hasText);
    if (field === undefined || !hasText(field)) return;
    const before = reasoning?.text ?? '';
    const text = (delta[field] as string).slice(0, reasoningMax - before.length);
    this.state.reasoning = { field, text: before + text };
  }

  #addUsage(usage: unknown): void {
    const reported = objectOf(usage);
    if (reported !== null) this.state.usage = usageWith(this.state.usage, reported);
  }
}

/** The picture of a gateway's field `images`, as base64; empty for one that is elsewhere. */
function pictureIn(image: unknown): string {
  const url = textIn(objectOf(objectOf(image)?.['image_url'])?.['url']);
  return url.startsWith('data:') ? url.slice(url.indexOf(',') + 1) : '';
}

/** The text of one part of a content list; empty for a part of another kind. */
function textOfPart(part: unknown): string {
  const { type, text } = objectOf(part) ?? {};
  return type === 'text' && typeof text === 'string' ? text : '';
}

function usageWith(before: Usage, reported: Json): Usage {
  const reasoning = largestIn([
    [objectOf(reported['completion_tokens_details']), 'reasoning_tokens'],
    [reported, 'reasoning_tokens'],
  ]);
  const counts = {
    prompt: largerOf(before.prompt, countIn(reported, 'prompt_tokens')),
    completion: largerOf(before.completion, completionIn(reported, reasoning)),
  };
  const cacheRead = largestIn([
    [objectOf(reported['prompt_tokens_details']), 'cached_tokens'],
    // DeepSeek, Moonshot, and gateways to Anthropic.
    [reported, 'prompt_cache_hit_tokens'],
    [reported, 'cached_tokens'],
    [reported, 'cache_read_input_tokens'],
  ]);
  const cacheWrite = largestIn([
    [objectOf(reported['prompt_tokens_details']), 'cache_write_tokens'],
    [reported, 'cache_creation_input_tokens'],
  ]);
  return withParts(counts, before, { cacheRead, cacheWrite, reasoning });
}

/** The tokens of the answer with its reasoning, which xAI counts beside them, and only its total has both. */
function completionIn(reported: Json, reasoning: number | null): number | null {
  const completion = countIn(reported, 'completion_tokens');
  const prompt = countIn(reported, 'prompt_tokens');
  if (completion === null || prompt === null || reasoning === null) return completion;
  const isBeside = countIn(reported, 'total_tokens') === prompt + completion + reasoning;
  return isBeside ? completion + reasoning : completion;
}
