/**
 * The turns of a dialogue in the order of their parts, in a form that providers accept. Pure. A model may invent names,
 * ids and arguments of tool calls that providers reject in a later request, which would end the dialogue.
 */
import { createHash } from 'node:crypto';
import { isObject, type Json } from '../../kernel/json.ts';
import { jsonTextFault } from '../../kernel/text.ts';
import type { AssistantMessage, DialogueMessage, FileContent, ToolCall } from './model.ts';

/** What a provider requires back with a part, by the name of who made it: `{anthropic: {signature: …}}`. */
export type Signed = Readonly<Record<string, Json>>;

/** The order of the parts of a turn with signed parts; stored in the assistant's message. */
export interface Opaque {
  /** No other model can read it. */
  readonly model: string;
  readonly parts: readonly OpaquePart[];
}
export type OpaquePart =
  /** `length` characters of the message's text. */
  | { readonly type: 'text'; readonly length: number; readonly signed?: Signed }
  | { readonly type: 'reasoning'; readonly text: string; readonly signed: Signed }
  | { readonly type: 'tool-call'; readonly id: string; readonly signed?: Signed };

/** A part of a turn as it is sent. */
export type TurnPart =
  | { readonly type: 'text'; readonly text: string; readonly signed: Signed | undefined }
  | { readonly type: 'reasoning'; readonly text: string; readonly signed: Signed }
  | CallPart;
export interface CallPart {
  readonly type: 'tool-call';
  readonly call: ToolCall;
  readonly signed: Signed | undefined;
}

/** Characters of invalid arguments that a later request repeats. */
const invalidInputMax = 1_000;

/** What one side of a dialogue says at a time. */
export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: Json[];
}

/** Turns of the user and of the model take turns: results of tools are the user's. A message without content is left out. */
export function turnsOf(
  messages: readonly DialogueMessage[],
  contentOf: (message: DialogueMessage) => readonly Json[],
): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = contentOf(message);
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) turns.push({ role, content: [...content] });
  }
  return turns;
}

/** The parts of a turn for a model; empty for an answer of nothing, which some providers reject. */
export function partsOfTurn(model: string, message: AssistantMessage): TurnPart[] {
  const order = orderOf(model, message);
  if (order === null) return plainPartsOf(message);
  const calls = new Map(message.toolCalls.map((call) => [call.id, call]));
  const parts: TurnPart[] = [];
  let from = 0;
  for (const part of order) {
    if (part.type === 'reasoning') parts.push(part);
    else if (part.type === 'text') {
      const text = message.text.slice(from, from + part.length);
      from += part.length;
      if (text !== '') parts.push({ type: 'text', text, signed: part.signed });
    } else if (part.type === 'tool-call') {
      const call = calls.get(part.id);
      if (call !== undefined) parts.push({ type: 'tool-call', call, signed: part.signed });
    }
  }
  return parts;
}

/** The parts of a turn for a provider that refuses texts of white space, and reasoning that nothing follows. */
export function spokenPartsOf(model: string, message: AssistantMessage): TurnPart[] {
  const parts = partsOfTurn(model, message).filter(
    (part) => part.type !== 'text' || part.text.trim() !== '',
  );
  return parts.slice(0, 1 + parts.findLastIndex(({ type }) => type !== 'reasoning'));
}

/** A text of the user or of a tool for such a provider. */
export const spokenText = (text: string): string => (text.trim() === '' ? '(empty)' : text);

function plainPartsOf({ text, toolCalls }: AssistantMessage): TurnPart[] {
  const calls = toolCalls.map((call): TurnPart => ({ type: 'tool-call', call, signed: undefined }));
  return text === '' ? calls : [{ type: 'text', text, signed: undefined }, ...calls];
}

/** The stored order; null when it belongs to another model or does not match the message. */
function orderOf(
  model: string,
  { opaque, text, toolCalls }: AssistantMessage,
): OpaquePart[] | null {
  const { model: ownModel, parts } = (opaque ?? {}) as Partial<Opaque>;
  if (ownModel !== model || !Array.isArray(parts)) return null;
  const order: OpaquePart[] = parts;
  const length = order.reduce((sum, part) => sum + (part.type === 'text' ? part.length : 0), 0);
  const ids = new Set(order.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])));
  return length === text.length && toolCalls.every(({ id }) => ids.has(id)) ? order : null;
}

/** The arguments of a call as an object. */
export function acceptableInput(input: string): Json {
  return objectIn(input) ?? { invalid_json: input.slice(0, invalidInputMax) };
}

/** The arguments of a call as JSON, as the model wrote it where it is an object. */
export function acceptableInputText(input: string): string {
  if (input.trim() === '') return '{}';
  return objectIn(input) === null ? JSON.stringify(acceptableInput(input)) : input;
}

function objectIn(input: string): Json | null {
  // Models often call a tool without parameters with an empty text.
  if (input.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(input);
  } catch {
    return null;
  }
  // Not every client can serialize JSON of extreme depth.
  return isObject(value) && jsonTextFault(input) === null ? value : null;
}

export const dataUrl = ({ mediaType, base64 }: FileContent) => `data:${mediaType};base64,${base64}`;

export function acceptableName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || '_';
}

/** An id of so many characters at most: itself, or one that is as unique. */
export function boundedId(id: string, max: number): string {
  if (id.length <= max) return id;
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`;
}

/** The call may be of another provider's model, with another form of ids. */
export function acceptableId(id: string): string {
  return id.replaceAll(/[^a-zA-Z0-9_-]/g, '_') || '_';
}
