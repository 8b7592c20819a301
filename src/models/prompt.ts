/**
 * A dialogue in the words of the AI SDK, and the way back for what a provider wants to see again.
 * Pure. What a model wrote is shown to it again only in a form that providers accept: a call's name,
 * id and arguments are whatever the model made up, and one that is refused would end the dialogue.
 */

import type { LanguageModel } from 'ai';
import { jsonTextFault } from '../kernel/text.ts';
import type { DialogueMessage, ModelCall, ToolCall } from './model.ts';
import type { Protocol } from './providers.ts';

/** A model of the SDK. */
export type SdkModel = Extract<LanguageModel, { readonly specificationVersion: 'v4' }>;
export type SdkOptions = Parameters<SdkModel['doStream']>[0];
type SdkMessage = SdkOptions['prompt'][number];
type AssistantPart = Extract<SdkMessage, { role: 'assistant' }>['content'][number];
type ToolPart = Extract<SdkMessage, { role: 'tool' }>['content'][number];
/** What the SDK has a provider say about a part, to be given back with it. */
export type ProviderOptions = NonNullable<AssistantPart['providerOptions']>;

type Assistant = Extract<DialogueMessage, { role: 'assistant' }>;
type Tool = Extract<DialogueMessage, { role: 'tool' }>;

/** The order of a turn that has signed parts, as the assistant's message keeps it. */
export interface Opaque {
  /** Nobody else can read it. */
  readonly model: string;
  readonly parts: readonly OpaquePart[];
}
export type OpaquePart =
  /** So many characters of the message's text. */
  | { readonly type: 'text'; readonly length: number }
  | { readonly type: 'reasoning'; readonly text: string; readonly signed: ProviderOptions }
  | { readonly type: 'tool-call'; readonly id: string; readonly signed?: ProviderOptions };

/** Of arguments that are not JSON, as the model sees them again. */
const invalidShownMax = 1_000;

/** What the SDK's model is asked, but for what is said of the connection. */
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
        // An answer without anything in it is refused by some.
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

/** The order that the message keeps; null when it is another model's, or of another text. */
function orderOf(model: string, { opaque, text, toolCalls }: Assistant): OpaquePart[] | null {
  const { model: its, parts } = (opaque ?? {}) as Partial<Opaque>;
  if (its !== model || !Array.isArray(parts)) return null;
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
  // Only messages can say that a result is an error; in a chat the text does.
  const isError = message.isError && protocol === 'messages';
  return {
    type: 'tool-result',
    toolCallId: acceptableId(protocol, message.callId),
    toolName: acceptableName(message.name),
    output: { type: isError ? 'error-text' : 'text', value: message.text },
  };
}

/** Messages take an object; a chat takes text, which stays as the model wrote it. */
function acceptableInput(protocol: Protocol, input: string): unknown {
  // A tool without parameters is often called with nothing.
  const json = input.trim() === '' ? '{}' : input;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    value = null;
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  // What is nested without end cannot be written again by everybody.
  if (!isObject || jsonTextFault(json) !== null) {
    return { invalid_json: input.slice(0, invalidShownMax) };
  }
  return protocol === 'chat' ? json : value;
}

/** Of a call that some other provider's model may have made. */
function acceptableId(protocol: Protocol, id: string): string {
  return protocol === 'chat' ? id : id.replaceAll(/[^a-zA-Z0-9_-]/g, '_') || '_';
}

function acceptableName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || '_';
}
