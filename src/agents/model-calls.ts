/**
 * One turn of a model: tokens are reserved, the call is made, its answer and cost are recorded, also when
 * it fails. A call of an overloaded or failing provider is retried, after the delay that the provider
 * names. Each try is a step of its own, because each may cost tokens.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { delayAfter } from '../kernel/backoff.ts';
import { cleanText } from '../kernel/text.ts';
import {
  type AssistantMessage,
  type DialogueMessage,
  ModelError,
  type Models,
  mayBeCharged,
  nothingSpent,
  type ToolCall,
  type ToolOffer,
  type Usage,
} from '../models/model.ts';
import { cutText, fitDialogue, tokensOfMessages } from './dialogue.ts';
import type { Estimates } from './estimates.ts';
import type { BegunCall, CallEnd, Journal } from './journal.ts';
import type { CallCost, PlannedTool } from './recorded-generation.ts';
import type { CallNeed, RunBounds } from './run-bounds.ts';
import { createTextBatcher } from './text-batches.ts';
import { stopped, ThinkingError } from './thinking-error.ts';

/** Characters of an answer in its `message` event; the `token` events carry all of it. */
const messageShownMax = 60_000;
/** Tries of one turn in one attempt of the job; fewer where the provider may charge for them. */
const triesMax = { free: 3, charged: 2 };
/** Failed tries of one turn that may have been charged, over all attempts of the job. */
const unansweredMax = 3;
const backoff = { baseMs: 500, maxMs: 10_000 };
/** After a longer delay the whole job is retried instead. */
const waitMax = 20_000;
/** Delays while other calls hold the budget's tokens; each new try is a transaction. */
const budgetBackoff = { baseMs: 100, maxMs: 1_000 };
/** UTF-8 bytes of a call's arguments; longer ones are refused. */
const argumentsMax = 262_144;
/** Characters of refused arguments that are kept: in full they could fill the model's window. */
const argumentsKept = 1_000;

/** What a client that follows the job is told while a model works. */
export type ThinkingReport =
  | { readonly type: 'token'; readonly data: { step: number; text: string } }
  | {
      readonly type: 'tool_call';
      readonly data: { step: number; call_id: string; tool: string; input: unknown };
    }
  | {
      readonly type: 'tool_result';
      readonly data: { step: number; call_id: string; tool: string } & (
        | { output: unknown }
        | { error: { code: string; message: string } }
      );
    }
  | {
      readonly type: 'message';
      readonly data: { role: 'assistant'; content: string; step: number };
    }
  | { readonly type: 'log'; readonly data: { message: string } };

/** The settings that all turns of a generation share. */
export interface Generation {
  readonly id: string;
  /** The step of the part of the run that asks, null for the run itself. */
  readonly parent: number | null;
  readonly organizationId: string;
  readonly model: string;
  readonly system: string;
  readonly offers: readonly ToolOffer[];
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  readonly temperature: number | undefined;
  /** Most tokens of one answer. */
  readonly output: number;
  /** Tokens of a request beside its messages, estimated. */
  readonly overhead: number;
  /** The model's context window, in tokens. */
  readonly window: number;
  /** Index in the dialogue of the message to be answered; earlier ones may be left out. */
  readonly task: number;
  readonly isDialogue: boolean;
  readonly signal: AbortSignal;
  /** By turn: calls without an answer that the provider may have charged. */
  readonly unanswered: Map<number, number>;
  /** The name of a tool on record. */
  nameOf(call: ToolCall): string;
  /** Receives the cost of each call, also of one without an answer. */
  onCost(cost: CallCost): void;
}

/** A turn to be asked for, with the messages that the model is sent. */
interface AskedTurn {
  readonly generation: Generation;
  readonly turn: number;
  readonly messages: readonly DialogueMessage[];
  /** Of the whole request, in tokens as `tokensOfText` estimates them. */
  readonly size: number;
}

export interface Turn {
  readonly message: AssistantMessage;
  /** The tools that it called, by the call's id. */
  readonly tools: readonly PlannedTool[];
}

export function createModelCalls(parts: {
  models: Models;
  journal: Journal;
  say(report: ThinkingReport): void;
  /** Receives the delay that a provider asks for, when there is no further try. */
  onRetryAfter(ms: number): void;
  /** Yields the run's slot to another while it waits for a model; the function takes it back. */
  yieldSlot(): () => void;
  /** Rejects with a ThinkingError when the run's API key is no longer valid; asked before each call. */
  requireKey(): Promise<void>;
  bounds: RunBounds;
  estimates: Estimates;
}) {
  const { models, journal, say, onRetryAfter, yieldSlot, requireKey, bounds, estimates } = parts;

  return {
    /**
     * Asks for one turn. Rejects with a ThinkingError when there is no answer, and with errors of the
     * journal. The call is made once `ready` has resolved, and is not made when `ready` rejects.
     */
    async ask(
      generation: Generation,
      messages: readonly DialogueMessage[],
      turn: number,
      ready: Promise<unknown>,
    ): Promise<Turn> {
      const asked = { generation, turn, ...fitted(generation, messages, say) };
      const resume = yieldSlot();
      try {
        return await askWithRetries(asked, ready);
      } finally {
        resume();
      }
    },
  };

  async function askWithRetries(asked: AskedTurn, ready: Promise<unknown>): Promise<Turn> {
    for (let tries = 1; ; tries++) {
      try {
        return await askOnce(asked, ready);
      } catch (error) {
        if (!(error instanceof ModelError)) throw error;
        if (isOutOfTries(asked, error)) {
          const message = `${error.message}; it is not asked again, because each of ${unansweredMax} calls may have been charged`;
          throw new ThinkingError('upstream_unavailable', message);
        }
        const delayMs = delayBefore(error, tries);
        if (delayMs === null) throw asThinkingError(error);
        say({ type: 'log', data: { message: `${error.message}; asking again` } });
        await wait(delayMs, asked.generation.signal);
      }
    }
  }

  /** One try, within the bounds of the attempt. */
  async function askOnce(asked: AskedTurn, ready: Promise<unknown>): Promise<Turn> {
    const { model, output, signal } = asked.generation;
    const prompt = estimates.tokens(model, asked.size);
    const permit = await bounds.admit({ prompt, output }, signal);
    try {
      await requireKey();
      const call = await begin(asked, { prompt, output: permit.output }, ready);
      return await callOnce(asked, call, permit.output);
    } finally {
      permit.release();
    }
  }

  /** Reserves the call's tokens; waits while other calls hold the tokens that it needs. */
  async function begin(
    { generation, turn }: AskedTurn,
    need: CallNeed,
    ready: Promise<unknown>,
  ): Promise<BegunCall> {
    const { id, parent, model, signal } = generation;
    const log = (message: string) => say({ type: 'log', data: { message } });
    for (let tries = 1; ; tries++) {
      if (signal.aborted) throw stopped();
      const beginning = journal.beginCall({ generation: id, parent, turn, model, ...need });
      const [isReady] = await Promise.allSettled([ready, beginning]);
      const begun = await beginning;
      if (isReady.status === 'rejected') {
        if (begun.kind === 'begun') {
          await journal.endCall(begun.call, { ...notMade, generation: id, turn });
        }
        throw isReady.reason;
      }
      if (begun.kind === 'begun') {
        if (tries > 1) log('The budget has tokens again: the call is made');
        return begun.call;
      }
      if (begun.kind === 'exceeded') throw new ThinkingError('budget_exceeded', begun.message);
      if (tries === 1) log(begun.message);
      await wait(delayAfter(budgetBackoff, tries), signal);
    }
  }

  /** `permitted`: the most tokens of the answer within the bound of the attempt. */
  async function callOnce(asked: AskedTurn, call: BegunCall, permitted: number): Promise<Turn> {
    const { generation, messages, turn, size } = asked;
    const { model, organizationId, system, offers: tools, schema, temperature } = generation;
    const batcher = createTextBatcher((text) =>
      say({ type: 'token', data: { step: call.n, text } }),
    );
    const place = { generation: generation.id, turn, isDialogue: generation.isDialogue };
    try {
      const answer = await models.call({
        model,
        organizationId,
        system,
        messages,
        tools,
        schema,
        temperature,
        maxOutputTokens: call.output,
        signal: generation.signal,
        onText: batcher.add,
      });
      batcher.end();
      const { usage, finish } = answer;
      if (usage.prompt !== null) estimates.learn(model, size, usage.prompt);
      const isCut = finish === 'length' || finish === 'too-long';
      const message = {
        ...normalized(answer.message, call.n, messages),
        ...(isCut ? { isCut } : {}),
      };
      if (finish === 'content-filter')
        throw new ModelError('refused', withheld, { text: message.text, usage });
      const estimated = estimateOf(usage, call, lengthOf(answer.message, call));
      spend(generation, { usage, estimated });
      const shortage =
        finish === 'length' ? shortageOf(message, call, permitted, generation.output) : null;
      const planned = await journal.endCall(call, {
        ...place,
        status: shortage === null ? 'completed' : 'failed',
        error: shortage === null ? null : { code: shortage.code, message: shortage.message },
        message,
        usage,
        estimated,
        tools:
          shortage === null
            ? message.toolCalls.map((one) => ({ call: one, name: generation.nameOf(one) }))
            : [],
      });
      if (message.text !== '') {
        const content = cutText(message.text, messageShownMax);
        say({ type: 'message', data: { role: 'assistant', content, step: call.n } });
      }
      if (shortage !== null) throw shortage;
      if (isCut) {
        const bound =
          finish === 'length' ? `${call.output} tokens` : 'what the output of a job may have';
        say({ type: 'log', data: { message: `The answer was cut at ${bound}` } });
      }
      return { message, tools: planned };
    } catch (error) {
      batcher.end();
      if (error instanceof ModelError) {
        const end = failedEnd(error, call);
        spend(generation, end);
        await journal.endCall(call, { ...place, ...end });
      }
      throw error;
    }
  }

  function spend({ onCost }: Generation, cost: CallCost): void {
    bounds.count(cost);
    onCost(cost);
  }

  /** Milliseconds until the next try, null when there is none. */
  function delayBefore(error: ModelError, tries: number): number | null {
    const most = mayBeCharged(error.usage) ? triesMax.charged : triesMax.free;
    // After a silence, which took long already, the job is retried instead.
    if (error.fault !== 'unavailable' || error.wasSilent || tries >= most) return null;
    const delayMs = error.retryAfterMs ?? delayAfter(backoff, tries);
    return delayMs <= waitMax ? delayMs : null;
  }

  function asThinkingError(error: ModelError): ThinkingError {
    switch (error.fault) {
      case 'credentials':
        return new ThinkingError('missing_credentials', error.message);
      case 'unavailable':
        if (error.retryAfterMs !== null) onRetryAfter(error.retryAfterMs);
        return new ThinkingError('upstream_unavailable', error.message, true);
      case 'refused':
        return new ThinkingError('skill_execution_failed', error.message);
      case 'aborted':
        return stopped();
    }
  }
}

/** The error of an answer that was cut below the tokens asked for, or that is empty; else null. */
function shortageOf(
  message: AssistantMessage,
  { output }: BegunCall,
  permitted: number,
  wanted: number,
): ThinkingError | null {
  const cut = `The answer was cut at ${output} tokens, which is what`;
  if (output < permitted) return new ThinkingError('budget_exceeded', `${cut} a budget had left`);
  if (permitted < wanted) {
    return new ThinkingError('skill_execution_failed', `${cut} the run had left of its tokens`);
  }
  if (message.text.trim() !== '' || message.toolCalls.length > 0) return null;
  return new ThinkingError(
    'skill_execution_failed',
    `The model used up all ${output} tokens of its answer without saying anything, by reasoning most likely: ask for more tokens or less reasoning`,
  );
}

/** Counts a call without an answer. Returns whether its turn has no tries left. */
function isOutOfTries({ generation, turn }: AskedTurn, { fault, usage }: ModelError): boolean {
  if (fault !== 'unavailable' || !mayBeCharged(usage)) return false;
  const calls = (generation.unanswered.get(turn) ?? 0) + 1;
  generation.unanswered.set(turn, calls);
  return calls >= unansweredMax;
}

/** The end of a call that was recorded as begun and never made. */
const notMade = {
  status: 'interrupted',
  error: { code: 'worker_lost', message: 'The call was not made' },
  message: null,
  isDialogue: false,
  usage: nothingSpent,
  estimated: 0,
  tools: [],
} as const;

const withheld = "The provider's filter withheld the answer";

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await elapsed(ms, undefined, { signal });
  } catch {
    throw stopped();
  }
}

function fitted(
  generation: Generation,
  messages: readonly DialogueMessage[],
  say: (report: ThinkingReport) => void,
): Pick<AskedTurn, 'messages' | 'size'> {
  const room = generation.window - generation.output - generation.overhead;
  const result = fitDialogue(messages, generation.task, room);
  if (!result.fits) {
    throw new ThinkingError(
      'skill_execution_failed',
      `What the model has to read is longer than its ${generation.window} tokens`,
    );
  }
  if (result.leftOut > 0) {
    const message = `${result.leftOut} older messages were left out, to fit the model's window`;
    say({ type: 'log', data: { message } });
  }
  if (result.cut > 0) {
    const message = `${result.cut} results of tools were cut, to fit the model's window`;
    say({ type: 'log', data: { message } });
  }
  const size = generation.overhead + tokensOfMessages(result.messages);
  return { messages: result.messages, size };
}

/** The message in a form to store and send again: clean texts, bounded arguments, unique ids. */
function normalized(
  message: AssistantMessage,
  step: number,
  earlier: readonly DialogueMessage[],
): AssistantMessage {
  const ids = new Set(
    earlier.flatMap((one) => (one.role === 'assistant' ? one.toolCalls.map(({ id }) => id) : [])),
  );
  const toolCalls = message.toolCalls.map(({ id, name, input }, i) => {
    let own = cleanText(id.slice(0, 200));
    for (let tries = 0; own === '' || ids.has(own); tries++) own = `call_${step}_${i + tries}`;
    ids.add(own);
    const isLong = Buffer.byteLength(input) > argumentsMax;
    return {
      id: own,
      name: cleanText(name.slice(0, 200)),
      input: cleanText(isLong ? input.slice(0, argumentsKept) + tooLong : input),
    };
  });
  const { reasoning } = message;
  const thought =
    reasoning === undefined ? {} : { reasoning: { ...reasoning, text: cleanText(reasoning.text) } };
  return { ...message, text: cleanText(message.text), toolCalls, ...thought };
}

/** Ends cut arguments, and makes them invalid JSON in any case. */
const tooLong = '\n[too long]';

/** The error for the model when its arguments were cut; else null. */
export function excessOf({ input }: ToolCall): string | null {
  if (!input.endsWith(tooLong)) return null;
  return `The arguments are too long: at most ${argumentsMax / 1024} KiB`;
}

/** The tokens charged for counts that were not reported: for the prompt, its reservation. */
function estimateOf(usage: Usage, { reserved, output }: BegunCall, completion: number): number {
  return (
    (usage.prompt === null ? reserved - output : 0) + (usage.completion === null ? completion : 0)
  );
}

/** The estimated tokens of an answer, which are at most the tokens that it was allowed. */
function lengthOf(message: AssistantMessage, { output }: BegunCall): number {
  return Math.min(output, tokensOfMessages([message]));
}

/** The record of a call without an answer, with its partial text and its cost. */
function failedEnd(
  error: ModelError,
  call: BegunCall,
): Omit<CallEnd, 'generation' | 'turn' | 'isDialogue'> {
  const { fault, usage } = error;
  const message: AssistantMessage = {
    role: 'assistant',
    text: cleanText(error.text),
    toolCalls: [],
  };
  const costNothing = usage.prompt === 0 && usage.completion === 0;
  const wasStopped = fault === 'aborted';
  return {
    status: wasStopped ? 'interrupted' : 'failed',
    error: { code: wasStopped ? 'interrupted' : codes[fault], message: error.message },
    message: costNothing && message.text === '' ? null : message,
    usage,
    // The partial text says little about the cost: the model may have reasoned, or written on.
    estimated: estimateOf(usage, call, call.output),
    tools: [],
  };
}

const codes = {
  credentials: 'missing_credentials',
  unavailable: 'upstream_unavailable',
  refused: 'skill_execution_failed',
} as const;
