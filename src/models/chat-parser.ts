/** Parses the chunks of chat completions. `[DONE]` is handled by the caller. */
import { countIn, largerOf } from './counts.ts';
import { finishReasonIn, unknownFinish } from './document.ts';
import { messageIn } from './error-body.ts';
import { type Json, objectOf } from './json.ts';
import { nothingReported, type Reasoning, reasoningFields } from './model.ts';
import type { ParsedEvent, StreamParser } from './stream-parser.ts';
import { createToolCallDeltas, type ToolCallDelta } from './tool-call-deltas.ts';

/** Characters of reasoning that are kept. Longer reasoning is cut, and the call goes on. */
const reasoningMax = 1024 * 1024;

export function createChatParser(): StreamParser {
  let usage = nothingReported;
  let reasoning: Omit<Reasoning, 'model'> | null = null;
  let isFinished = false;
  let isBegun = false;
  const toolCalls = createToolCallDeltas();

  function addUsage(reported: Json | null): void {
    if (reported === null) return;
    usage = {
      prompt: largerOf(usage.prompt, countIn(reported, 'prompt_tokens')),
      completion: largerOf(usage.completion, countIn(reported, 'completion_tokens')),
    };
  }

  /** Some servers send the same reasoning in two fields: the first field with text is used. */
  function addReasoning(delta: Json): void {
    const hasText = (name: string) => typeof delta[name] === 'string' && delta[name] !== '';
    const field = reasoning?.field ?? reasoningFields.find(hasText);
    if (field === undefined || !hasText(field)) return;
    const before = reasoning?.text ?? '';
    const text = (delta[field] as string).slice(0, reasoningMax - before.length);
    reasoning = { field, text: before + text };
  }

  function parseChoice(choice: Json, position: number): Json {
    const { index, usage: reported, delta } = choice;
    addUsage(objectOf(reported));
    const finish = finishReasonIn(choice);
    const { content, refusal, tool_calls } = objectOf(delta) ?? {};
    addReasoning(objectOf(delta) ?? {});
    const text = Array.isArray(content) ? content.map(textIn).join('') : content;
    const refused = typeof refusal === 'string' ? refusal : '';
    const deltas = Array.isArray(tool_calls) ? tool_calls : [];
    if (finish !== null) isFinished = true;
    if (text || refused || deltas.length > 0) isBegun = true;
    const calls = deltas.flatMap((call) => toolCalls.take(objectOf(call)));
    return choiceOf(typeof index === 'number' ? index : position, finish, {
      ...(text == null ? {} : { content: text }),
      ...(refused === '' ? {} : { refusal: refused }),
      ...callsOf(finish === null ? calls : [...calls, ...toolCalls.rest()]),
    });
  }

  return {
    parse(event): ParsedEvent {
      const chunk = objectOf(event);
      if (chunk === null) return { error: 'an event that is no object' };
      // Some servers send `error: null` in every chunk.
      const error = chunk['error'] || (chunk['object'] === 'error' ? chunk : null);
      if (error) return { error: messageIn(error) };
      addUsage(objectOf(chunk['usage']));
      addUsage(objectOf(objectOf(chunk['x_groq'])?.['usage']));
      const { choices } = chunk;
      if (!Array.isArray(choices)) return { events: [] };
      const objects = choices.map(objectOf);
      if (objects.includes(null)) return { error: 'a choice that is no object' };
      return { events: [{ choices: objects.map((choice, n) => parseChoice(choice as Json, n)) }] };
    },
    end() {
      const calls = toolCalls.rest();
      const finish = isBegun && !isFinished ? unknownFinish : null;
      if (isBegun) isFinished = true;
      if (calls.length === 0 && finish === null) return [];
      return [{ choices: [choiceOf(0, finish, callsOf(calls))] }];
    },
    usage: () => usage,
    reasoning: () => reasoning,
    isBegun: () => isBegun || reasoning !== null,
    isFinished: () => isFinished,
    isOver: () => false,
  };
}

function choiceOf(index: number, finish: string | null, delta: Json): Json {
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
