/**
 * Converts a dialogue into a prompt of the AI SDK. Pure. A model may invent names, ids and arguments of
 * tool calls that providers reject in a later request, which would end the dialogue. So they are
 * converted into a form that providers accept.
 */

import type { AnthropicProvider } from '@ai-sdk/anthropic';
import { jsonTextFault } from '../../kernel/text.ts';
import type { DialogueMessage, ModelCall, ToolCall } from './model.ts';
import type { Protocol } from './providers.ts';

/** A model of the SDK. */
export type SdkModel = ReturnType<AnthropicProvider['languageModel']>;
export type SdkOptions = Parameters<SdkModel['doStream']>[0];
type SdkMessage = SdkOptions['prompt'][number];
type AssistantPart = Extract<SdkMessage, { role: 'assistant' }>['content'][number];
type ToolPart = Extract<SdkMessage, { role: 'tool' }>['content'][number];
/** The SDK's provider metadata of a part, which is returned with the part in later requests. */
export type ProviderOptions = NonNullable<AssistantPart['providerOptions']>;

type Assistant = Extract<DialogueMessage, { role: 'assistant' }>;
type Tool = Extract<DialogueMessage, { role: 'tool' }>;

/** The order of the parts of a turn with signed parts; stored in the assistant's message. */
export interface Opaque {
  /** No other model can read it. */
  readonly model: string;
  readonly parts: readonly OpaquePart[];
}
export type OpaquePart =
  /** `length` characters of the message's text. */
  | { readonly type: 'text'; readonly length: number }
  | { readonly type: 'reasoning'; readonly text: string; readonly signed: ProviderOptions }
  | { readonly type: 'tool-call'; readonly id: string; readonly signed?: ProviderOptions };

/** Characters of invalid arguments that a later request repeats. */
const invalidInputMax = 1_000;

/** The messages of a call, in the SDK's form. */
export function promptOf(
  protocol: Protocol,
  call: Pick<ModelCall, 'model' | 'system' | 'messages'>,
): SdkMessage[] {
  const prompt: SdkMessage[] = [];
  if (call.system !== '') prompt.push({ role: 'system', content: call.system });
  for (const message of call.messages) {
    const last = prompt.at(-1);
    switch (message.role) {
      case 'user':
        prompt.push({ role: 'user', content: [{ type: 'text', text: message.text }] });
        break;
      case 'assistant': {
        const content = contentOf(protocol, call.model, message);
        // Some providers reject an empty answer.
        if (content.length > 0) prompt.push({ role: 'assistant', content });
        break;
      }
      case 'tool': {
        const result = resultOf(protocol, message);
        // The results of one turn are one message.
        if (last?.role === 'tool') last.content.push(result);
        else prompt.push({ role: 'tool', content: [result] });
        break;
      }
    }
  }
  return prompt;
}

function contentOf(protocol: Protocol, model: string, message: Assistant): AssistantPart[] {
  const order = orderOf(model, message) ?? plainOrderOf(message);
  const calls = new Map(message.toolCalls.map((call) => [call.id, call]));
  let from = 0;
  return order.flatMap((part): AssistantPart[] => {
    switch (part.type) {
      case 'text': {
        const text = message.text.slice(from, from + part.length);
        from += part.length;
        return text === '' ? [] : [{ type: 'text', text }];
      }
      case 'reasoning':
        return [{ type: 'reasoning', text: part.text, providerOptions: part.signed }];
      case 'tool-call': {
        const call = calls.get(part.id);
        if (call === undefined) return [];
        const signed = part.signed === undefined ? {} : { providerOptions: part.signed };
        return [{ ...callOf(protocol, call), ...signed }];
      }
      default:
        return [];
    }
  });
}

function plainOrderOf({ text, toolCalls }: Assistant): OpaquePart[] {
  return [
    { type: 'text', length: text.length },
    ...toolCalls.map(({ id }) => ({ type: 'tool-call' as const, id })),
  ];
}

/** The stored order; null when it belongs to another model or does not match the message. */
function orderOf(model: string, { opaque, text, toolCalls }: Assistant): OpaquePart[] | null {
  const { model: ownModel, parts } = (opaque ?? {}) as Partial<Opaque>;
  if (ownModel !== model || !Array.isArray(parts)) return null;
  const order: OpaquePart[] = parts;
  const length = order.reduce((sum, part) => sum + (part.type === 'text' ? part.length : 0), 0);
  const ids = new Set(order.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])));
  return length === text.length && toolCalls.every(({ id }) => ids.has(id)) ? order : null;
}

function callOf(protocol: Protocol, call: ToolCall): Extract<AssistantPart, { type: 'tool-call' }> {
  return {
    type: 'tool-call',
    toolCallId: acceptableId(protocol, call.id),
    toolName: acceptableName(call.name),
    input: acceptableInput(protocol, call.input),
  };
}

function resultOf(protocol: Protocol, message: Tool): ToolPart {
  // Only the messages protocol can mark a result as an error; in a chat the text says so.
  const isError = message.isError && protocol === 'messages';
  return {
    type: 'tool-result',
    toolCallId: acceptableId(protocol, message.callId),
    toolName: acceptableName(message.name),
    output: { type: isError ? 'error-text' : 'text', value: message.text },
  };
}

/** The messages protocol takes an object. A chat takes text, which stays as the model wrote it. */
function acceptableInput(protocol: Protocol, input: string): unknown {
  // Models often call a tool without parameters with an empty text.
  const json = input.trim() === '' ? '{}' : input;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    value = null;
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  // Not every client can serialize JSON of extreme depth.
  if (!isObject || jsonTextFault(json) !== null) {
    return { invalid_json: input.slice(0, invalidInputMax) };
  }
  return protocol === 'chat' ? json : value;
}

/** The call may be of another provider's model, with another form of ids. */
function acceptableId(protocol: Protocol, id: string): string {
  return protocol === 'chat' ? id : id.replaceAll(/[^a-zA-Z0-9_-]/g, '_') || '_';
}

function acceptableName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || '_';
}
