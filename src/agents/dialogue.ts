/**
 * The dialogue with a model as data: how large it is, what is left out of it when it does not fit the
 * model's window, what of an earlier run can be shown again. Pure.
 *
 * The rule by which older messages are fitted: exchanges (a message of the user with all that follows
 * it) before the current one are left out whole, the oldest first. Where the current one alone is too
 * long, results of its tools are cut, the oldest first; its task and the model's own words never are.
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
/** A tool's result that was cut to fit keeps this many characters. */
const keptOfResult = 400;

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
  return message.toolCalls.reduce(
    (sum, { name, input }) => sum + tokensOfText(name) + tokensOfText(input) + tokensAround,
    text + opaque,
  );
}

export interface Fitted {
  readonly messages: readonly DialogueMessage[];
  /** Messages that were left out. */
  readonly leftOut: number;
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
  if (tokens <= tokensMax) return { messages, leftOut: 0, fits: true };
  let first = 0;
  while (tokens > tokensMax && first < current) {
    const next = nextExchange(messages, first, current);
    tokens -= tokensOfMessages(messages.slice(first, next));
    first = next;
  }
  const kept = messages.slice(first);
  if (tokens <= tokensMax) return { messages: kept, leftOut: first, fits: true };
  const cut = kept.map((message) => {
    if (tokens <= tokensMax || message.role !== 'tool') return message;
    const shorter = cutResult(message);
    tokens += tokensOfMessage(shorter) - tokensOfMessage(message);
    return shorter;
  });
  return { messages: cut, leftOut: first, fits: tokens <= tokensMax };
}

function nextExchange(messages: readonly DialogueMessage[], from: number, end: number): number {
  const next = messages.findIndex((message, i) => i > from && message.role === 'user');
  return next === -1 || next > end ? end : next;
}

function cutResult(message: ToolMessage): ToolMessage {
  if (message.text.length <= keptOfResult * 2) return message;
  return { ...message, text: cutText(message.text, keptOfResult) };
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
