/** The chunks of chat completions; `[DONE]` is not one of them. */
import { type CallPiece, createCallPieces } from './call-pieces.ts';
import { countIn, largerOf } from './counts.ts';
import { finishReasonIn, unsaidFinish } from './document.ts';
import { messageIn } from './error-body.ts';
import type { Heard, Hearing } from './hearing.ts';
import { type Json, objectOf } from './json.ts';
import { nothingReported, type Reasoning, reasoningFields } from './model.ts';

/** Characters of reasoning that are kept; what follows is left out, because the answer matters more. */
const reasoningMax = 1024 * 1024;

export function createChatHearing(): Hearing {
  let usage = nothingReported;
  let reasoning: Omit<Reasoning, 'model'> | null = null;
  let isFinished = false;
  /** Whether there was anything of an answer. */
  let isBegun = false;
  const pieces = createCallPieces();

  function note(reported: Json | null): void {
    if (reported === null) return;
    usage = {
      prompt: largerOf(usage.prompt, countIn(reported, 'prompt_tokens')),
      completion: largerOf(usage.completion, countIn(reported, 'completion_tokens')),
    };
  }

  /** Some servers say the same in two fields: the first one that has something counts. */
  function noteReasoning(delta: Json): void {
    const said = (name: string) => typeof delta[name] === 'string' && delta[name] !== '';
    const field = reasoning?.field ?? reasoningFields.find(said);
    if (field === undefined || !said(field)) return;
    const before = reasoning?.text ?? '';
    const text = (delta[field] as string).slice(0, reasoningMax - before.length);
    reasoning = { field, text: before + text };
  }

  function passedOf(choice: Json, position: number): Json {
    const { index, usage: reported, delta } = choice;
    note(objectOf(reported));
    const finish = finishReasonIn(choice);
    const { content, refusal, tool_calls } = objectOf(delta) ?? {};
    noteReasoning(objectOf(delta) ?? {});
    const text = Array.isArray(content) ? content.map(textIn).join('') : content;
    const said = typeof refusal === 'string' ? refusal : '';
    const made = Array.isArray(tool_calls) ? tool_calls : [];
    if (finish !== null) isFinished = true;
    if (text || said || made.length > 0) isBegun = true;
    const calls = made.flatMap((call) => pieces.take(objectOf(call)));
    return choiceOf(typeof index === 'number' ? index : position, finish, {
      ...(text == null ? {} : { content: text }),
      ...(said === '' ? {} : { refusal: said }),
      ...callsOf(finish === null ? calls : [...calls, ...pieces.rest()]),
    });
  }

  return {
    hear(event): Heard {
      const chunk = objectOf(event);
      if (chunk === null) return { error: 'an event that is no object' };
      // Some servers say in every chunk that there is no error.
      const error = chunk['error'] || (chunk['object'] === 'error' ? chunk : null);
      if (error) return { error: messageIn(error) };
      note(objectOf(chunk['usage']));
      note(objectOf(objectOf(chunk['x_groq'])?.['usage']));
      const { choices } = chunk;
      if (!Array.isArray(choices)) return { events: [] };
      const said = choices.map(objectOf);
      if (said.includes(null)) return { error: 'a choice that is no object' };
      return { events: [{ choices: said.map((choice, n) => passedOf(choice as Json, n)) }] };
    },
    done() {
      const calls = pieces.rest();
      const finish = isBegun && !isFinished ? unsaidFinish : null;
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

function callsOf(calls: readonly CallPiece[]): Json {
  return calls.length === 0 ? {} : { tool_calls: calls };
}

/** Of a part of content that came in parts; empty for one that is no text. */
function textIn(part: unknown): string {
  const { type, text } = objectOf(part) ?? {};
  return type === 'text' && typeof text === 'string' ? text : '';
}
