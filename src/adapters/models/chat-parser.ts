/** Parses the chunks of chat completions. `[DONE]` is handled by the caller. */

import { type Json, objectOf } from '../../kernel/json.ts';
import { countIn, largerOf, largestIn, withParts } from './counts.ts';
import { finishReasonIn, unknownFinish } from './document.ts';
import { messageIn } from './error-body.ts';
import { reasoningFields } from './model.ts';
import {
  nothingStreamed,
  type ParsedEvent,
  type StreamParser,
  type StreamState,
} from './stream-parser.ts';
import { type ToolCallDelta, ToolCallDeltas } from './tool-call-deltas.ts';

/** Characters of reasoning that are kept. Longer reasoning is cut, and the call goes on. */
const reasoningMax = 1024 * 1024;

interface ChatState extends StreamState {
  readonly toolCalls: ToolCallDeltas;
  /** Whether any part of the answer besides its reasoning has arrived. */
  isAnswered: boolean;
  /** Whether the SDK was given a part of the answer: then it gets all later parts too, which keeps their order. */
  isInSdk: boolean;
}

export class ChatParser implements StreamParser {
  readonly state: ChatState = {
    ...nothingStreamed,
    toolCalls: new ToolCallDeltas(),
    isAnswered: false,
    isInSdk: false,
  };

  parse(event: unknown): ParsedEvent {
    const { state } = this;
    const chunk = objectOf(event);
    if (chunk === null) return { error: 'an event that is no object' };
    // Some servers send `error: null` in every chunk.
    const error = chunk['error'] || (chunk['object'] === 'error' ? chunk : null);
    if (error) return { error: messageIn(error) };
    addUsage(state, chunk['usage']);
    addUsage(state, objectOf(chunk['x_groq'])?.['usage']);
    const { choices } = chunk;
    if (!Array.isArray(choices)) return { events: [] };
    const objects = choices.map(objectOf);
    if (objects.includes(null)) return { error: 'a choice that is no object' };
    const parsed = objects.map((choice, n) => parseChoice(state, choice as Json, n));
    const text = state.isInSdk ? '' : textOf(parsed);
    if (text !== '') return { text };
    state.isInSdk ||= parsed.some(hasPart);
    return { events: [{ choices: parsed }] };
  }

  end(): Json[] {
    const { state } = this;
    const calls = state.toolCalls.rest();
    const finish = state.isAnswered && !state.isFinished ? unknownFinish : null;
    if (state.isAnswered) state.isFinished = true;
    if (calls.length === 0 && finish === null) return [];
    return [{ choices: [choiceOf(0, finish, callsOf(calls))] }];
  }
}

function hasPart({ delta: { content, ...rest } }: Choice): boolean {
  return Boolean(content) || Object.keys(rest).length > 0;
}

/** The text of a chunk that has only text; empty for any other chunk. */
function textOf([choice, other]: readonly Choice[]): string {
  if (choice === undefined || other !== undefined || choice.finish_reason !== null) return '';
  const { content, ...rest } = choice.delta;
  return typeof content === 'string' && Object.keys(rest).length === 0 ? content : '';
}

/** A choice as the SDK accepts it. */
interface Choice {
  readonly index: number;
  readonly finish_reason: string | null;
  readonly delta: Json;
}

function parseChoice(state: ChatState, choice: Json, position: number): Choice {
  const { index, usage, delta } = choice;
  addUsage(state, usage);
  const finish = finishReasonIn(choice);
  const { content, refusal, tool_calls } = objectOf(delta) ?? {};
  addReasoning(state, objectOf(delta) ?? {});
  const text = Array.isArray(content) ? content.map(textIn).join('') : content;
  const refused = typeof refusal === 'string' ? refusal : '';
  const deltas = Array.isArray(tool_calls) ? tool_calls : [];
  if (finish !== null) state.isFinished = true;
  state.isRefusal ||= refused !== '';
  if (text || refused || deltas.length > 0) state.isAnswered = true;
  state.isBegun = state.isAnswered || state.reasoning !== null;
  const calls = deltas.flatMap((call) => state.toolCalls.take(objectOf(call)));
  return choiceOf(typeof index === 'number' ? index : position, finish, {
    ...(text == null ? {} : { content: text }),
    ...(refused === '' ? {} : { refusal: refused }),
    ...callsOf(finish === null ? calls : [...calls, ...state.toolCalls.rest()]),
  });
}

function addUsage(state: ChatState, usage: unknown): void {
  const reported = objectOf(usage);
  if (reported === null) return;
  const reasoning = reasoningIn(reported);
  const counts = {
    prompt: largerOf(state.usage.prompt, countIn(reported, 'prompt_tokens')),
    completion: largerOf(state.usage.completion, completionIn(reported, reasoning)),
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
  state.usage = withParts(counts, state.usage, { cacheRead, cacheWrite, reasoning });
}

function reasoningIn(reported: Json): number | null {
  return largestIn([
    [objectOf(reported['completion_tokens_details']), 'reasoning_tokens'],
    [reported, 'reasoning_tokens'],
  ]);
}

/** The tokens of the answer with its reasoning, which xAI counts beside them, and only its total has both. */
function completionIn(reported: Json, reasoning: number | null): number | null {
  const completion = countIn(reported, 'completion_tokens');
  const prompt = countIn(reported, 'prompt_tokens');
  if (completion === null || prompt === null || reasoning === null) return completion;
  const isBeside = countIn(reported, 'total_tokens') === prompt + completion + reasoning;
  return isBeside ? completion + reasoning : completion;
}

/** Some servers send the same reasoning in two fields: the first field with text is used. */
function addReasoning(state: ChatState, delta: Json): void {
  const hasText = (name: string) => typeof delta[name] === 'string' && delta[name] !== '';
  const field = state.reasoning?.field ?? reasoningFields.find(hasText);
  if (field === undefined || !hasText(field)) return;
  const before = state.reasoning?.text ?? '';
  const text = (delta[field] as string).slice(0, reasoningMax - before.length);
  state.reasoning = { field, text: before + text };
}

function choiceOf(index: number, finish: string | null, delta: Json): Choice {
  return { index, finish_reason: finish, delta };
}

function callsOf(calls: readonly ToolCallDelta[]): Json {
  return calls.length === 0 ? {} : { tool_calls: calls };
}

/** The text of one part of a content list; empty for a part of another kind. */
function textIn(part: unknown): string {
  const { type, text } = objectOf(part) ?? {};
  return type === 'text' && typeof text === 'string' ? text : '';
}
