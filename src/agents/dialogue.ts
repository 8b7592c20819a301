/**
 * The dialogue with a model as data: how large it is, what is left out of it when it does not fit the
 * model's window, what of an earlier run can be shown again. Pure.
 *
 * The rule by which older messages are fitted: exchanges (a message of the user with all that follows
 * it) before the current one are left out whole, the oldest first. Where the current one alone is too
 * long, results of its earlier turns are cut, the oldest first, and then those of its last turn, which
 * share what is left equally. Its task and the model's own words are never cut.
 */
import type { AssistantMessage, DialogueMessage, ToolCall, ToolMessage } from '../models/model.ts';
import { endsInside } from './deltas.ts';

/**
 * Bytes of UTF-8 that a token stands for, at least: English text has four to five, code and other
 * languages three. What is estimated by it is rather too much than too little.
 */
const bytesPerToken = 3;
/** What providers add to each message and each tool. */
const tokensAround = 8;
/** A tool's result that was cut to fit keeps at least this many characters. */
const keptOfResult = 400;
/** Bytes that say how much of a result was left out. */
const noteBytes = 64;

/** An estimate, rather too high, of the tokens of a text. */
export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** The same for messages. */
export function tokensOfMessages(messages: readonly DialogueMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensOfMessage(message), 0);
}

function tokensOfMessage(message: DialogueMessage): number {
  const text = tokensOfText(message.text) + tokensAround;
  if (message.role !== 'assistant') return text;
  const opaque = message.opaque === undefined ? 0 : tokensOfText(JSON.stringify(message.opaque));
  const reasoning = tokensOfText(message.reasoning?.text ?? '');
  return message.toolCalls.reduce(
    (sum, { name, input }) => sum + tokensOfText(name) + tokensOfText(input) + tokensAround,
    text + opaque + reasoning,
  );
}

export interface Fitted {
  readonly messages: readonly DialogueMessage[];
  /** Messages that were left out. */
  readonly leftOut: number;
  /** Results of tools that were cut. */
  readonly cut: number;
  /** Whether it is within the tokens that it may have. */
  readonly fits: boolean;
}

/** At most `tokensMax` of a dialogue whose current exchange begins at `current`, by the rule above. */
export function fitDialogue(
  messages: readonly DialogueMessage[],
  current: number,
  tokensMax: number,
): Fitted {
  let tokens = tokensOfMessages(messages);
  if (tokens <= tokensMax) return { messages, leftOut: 0, cut: 0, fits: true };
  let first = 0;
  while (tokens > tokensMax && first < current) {
    const next = nextExchange(messages, first, current);
    tokens -= tokensOfMessages(messages.slice(first, next));
    first = next;
  }
  const kept = messages.slice(first);
  if (tokens <= tokensMax) return { messages: kept, leftOut: first, cut: 0, fits: true };
  const fitted = cutResults(kept, tokens, tokensMax);
  return {
    messages: fitted,
    leftOut: first,
    cut: fitted.filter((message, i) => message !== kept[i]).length,
    fits: tokensOfMessages(fitted) <= tokensMax,
  };
}

/** The messages, which have `tokens`, with the results of tools cut by the rule above. */
function cutResults(
  messages: readonly DialogueMessage[],
  tokens: number,
  tokensMax: number,
): DialogueMessage[] {
  const turn = messages.findLastIndex(({ role }) => role === 'assistant');
  let left = tokens;
  const earlier = messages.slice(0, turn + 1).map((message) => {
    if (left <= tokensMax || message.role !== 'tool') return message;
    const shorter = cutResult(message, keptOfResult);
    left += tokensOfMessage(shorter) - tokensOfMessage(message);
    return shorter;
  });
  const last = messages.slice(turn + 1);
  if (left <= tokensMax) return [...earlier, ...last];
  const sizes = last.map(({ role, text }) => (role === 'tool' ? tokensOfText(text) : 0));
  const room = tokensMax - left + sizes.reduce((sum, size) => sum + size, 0);
  const share = equalShare(sizes, room);
  const shared = last.map((message, i) => {
    if (message.role !== 'tool' || (sizes[i] ?? 0) <= share) return message;
    const bytes = Math.max(0, Math.floor(share) * bytesPerToken - noteBytes);
    return cutResult(message, Math.max(keptOfResult, lengthWithin(message.text, bytes)));
  });
  const result = [...earlier, ...shared];
  if (tokensOfMessages(result) <= tokensMax) return result;
  return [
    ...earlier,
    ...last.map((message) =>
      message.role === 'tool' ? cutResult(message, keptOfResult) : message,
    ),
  ];
}

/** The most that each of these sizes may have, so that all of them come to `room` at most. */
function equalShare(sizes: readonly number[], room: number): number {
  let left = Math.max(0, room);
  const sorted = sizes.toSorted((a, b) => a - b);
  for (const [i, size] of sorted.entries()) {
    const share = left / (sorted.length - i);
    if (size > share) return share;
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

/** How many characters of a text have at most so many bytes. */
function lengthWithin(text: string, bytes: number): number {
  return new TextEncoder().encodeInto(text, new Uint8Array(bytes)).read;
}

function nextExchange(messages: readonly DialogueMessage[], from: number, end: number): number {
  const next = messages.findIndex((message, i) => i > from && message.role === 'user');
  return next === -1 || next > end ? end : next;
}

function cutResult(message: ToolMessage, kept: number): ToolMessage {
  if (message.text.length <= Math.max(keptOfResult * 2, kept)) return message;
  return { ...message, text: cutText(message.text, kept) };
}

/** The first `max` characters of a text that is longer, and a word that there was more. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const kept = endsInside(text.slice(0, max)) ? max - 1 : max;
  const left = text.length - kept;
  return `${text.slice(0, kept).toWellFormed()}\n[${left} more characters were left out]`;
}

/**
 * What earlier runs said, fit to be shown to a model again: from the first message of the user on,
 * each turn's answers right after its calls, without calls that were never answered (the run ended
 * before), answers to nothing, and what was meant for its model only. An id that occurs in more than
 * one turn, as those of some models do, is made one of its own.
 */
export function asHistory(messages: readonly DialogueMessage[]): DialogueMessage[] {
  const answers = answersByCall(messages);
  const ids = new Set<string>();
  const history: DialogueMessage[] = [];
  for (const message of messages) {
    if (message.role === 'user') history.push(message);
    if (message.role !== 'assistant' || history.length === 0) continue;
    const { text, toolCalls } = message;
    const answered = toolCalls.flatMap((call) => {
      const answer = answers.get(call);
      if (answer === undefined) return [];
      const id = freshId(call.id, ids);
      return [{ call: { ...call, id }, answer: { ...answer, callId: id } }];
    });
    if (text === '' && answered.length === 0) continue;
    history.push({ role: 'assistant', text, toolCalls: answered.map(({ call }) => call) });
    history.push(...answered.map(({ answer }) => answer));
  }
  return history;
}

/** Of each call the answer: the first that came after it, while nobody else asked under its id. */
function answersByCall(messages: readonly DialogueMessage[]): ReadonlyMap<ToolCall, ToolMessage> {
  const waiting = new Map<string, ToolCall>();
  const answers = new Map<ToolCall, ToolMessage>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const call of message.toolCalls) waiting.set(call.id, call);
    } else if (message.role === 'tool') {
      const call = waiting.get(message.callId);
      if (call !== undefined) answers.set(call, message);
      waiting.delete(message.callId);
    }
  }
  return answers;
}

/** The id, or one like it that is not among `ids` yet; it is then. */
function freshId(id: string, ids: Set<string>): string {
  let fresh = id;
  for (let n = 2; ids.has(fresh); n++) fresh = `${id}_${n}`;
  ids.add(fresh);
  return fresh;
}

/** The calls of the dialogue's last assistant message that have no answer yet. */
export function openCalls(messages: readonly DialogueMessage[]): AssistantMessage['toolCalls'] {
  const at = messages.findLastIndex((message) => message.role === 'assistant');
  const last = messages[at];
  if (last?.role !== 'assistant') return [];
  const answered = new Set(
    messages.slice(at).flatMap((message) => (message.role === 'tool' ? [message.callId] : [])),
  );
  return last.toolCalls.filter(({ id }) => !answered.has(id));
}
