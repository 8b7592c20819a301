/**
 * The dialogue with a model as data: its size, the messages that are left out when it exceeds the
 * model's window, and the messages of earlier runs that can be sent again. Pure.
 *
 * The rule for a dialogue that is too long: exchanges (a message of the user with all messages up to the
 * next one) before the current one are left out whole, the oldest first. If the current exchange alone
 * is too long, tool results of its earlier turns are cut, the oldest first. Then the results of its last
 * turn are cut, to equal shares of the room, and at last files are left out, the last ones first. The task and the
 * model's own text are never cut.
 */

import type {
  AssistantMessage,
  AttachedFile,
  DialogueMessage,
  ToolCall,
  ToolMessage,
} from '../../adapters/models/model.ts';
import { sizeOfMessages, sizeOfText } from '../../adapters/models/text-size.ts';
import { firstUnits } from '../../kernel/cut-text.ts';
import type { WindowMeasure } from './estimates.ts';
import { inWords, leftOutLater, noRoom } from './message-files.ts';

/** Characters that a cut result of a tool keeps at least. */
const keptOfResult = 400;
/** Tokens by which the note in a cut result may grow, because the numbers in it vary in length. */
const noteSlack = 16;

/** The tokens of messages. Sums whole numbers, so subtracting a part is exact. */
export function tokensOfMessages(
  messages: readonly DialogueMessage[],
  measure: WindowMeasure,
): number {
  return messages.reduce((sum, message) => sum + measure.tokensOf(sizeOfMessages([message])), 0);
}

export interface Fitted {
  readonly messages: readonly DialogueMessage[];
  /** Messages that were left out. */
  readonly leftOut: number;
  /** Results of tools that were cut. */
  readonly cut: number;
  /** Whether the result is within the maximum. */
  readonly fits: boolean;
}

/** At most `tokensMax` of a dialogue whose current exchange begins at `current`, by the rule above. */
export function fitDialogue(
  messages: readonly DialogueMessage[],
  current: number,
  tokensMax: number,
  measure: WindowMeasure,
): Fitted {
  let tokens = tokensOfMessages(messages, measure);
  if (tokens <= tokensMax) return { messages, leftOut: 0, cut: 0, fits: true };
  let first = 0;
  while (tokens > tokensMax && first < current) {
    const next = nextExchange(messages, first, current);
    tokens -= tokensOfMessages(messages.slice(first, next), measure);
    first = next;
  }
  const kept = messages.slice(first);
  if (tokens <= tokensMax) return { messages: kept, leftOut: first, cut: 0, fits: true };
  const fitted = cutResults(kept, tokens, tokensMax, measure);
  return {
    messages: fitted,
    leftOut: first,
    cut: fitted.filter((message, i) => message !== kept[i]).length,
    fits: tokensOfMessages(fitted, measure) <= tokensMax,
  };
}

/** The messages, which have `tokens`, with the results of tools cut by the rule above. */
function cutResults(
  messages: readonly DialogueMessage[],
  tokens: number,
  tokensMax: number,
  measure: WindowMeasure,
): DialogueMessage[] {
  const turn = messages.findLastIndex(({ role }) => role === 'assistant');
  let left = tokens;
  const earlier = messages.slice(0, turn + 1).map((message) => {
    if (left <= tokensMax || message.role !== 'tool') return message;
    const shorter = inWords(cutResult(message, keptOfResult), leftOutLater);
    left += tokensOfMessages([shorter], measure) - tokensOfMessages([message], measure);
    return shorter;
  });
  const last = messages.slice(turn + 1);
  if (left <= tokensMax) return [...earlier, ...last];
  const sizes = last.map(({ role, text }) =>
    role === 'tool' ? measure.tokensOf(sizeOfText(text)) : 0,
  );
  const room = tokensMax - left + sizes.reduce((sum, size) => sum + size, 0);
  const share = equalShare(sizes, room);
  const shared = last.map((message, i) => {
    if (message.role !== 'tool' || (sizes[i] ?? 0) <= share) return message;
    const note = measure.tokensOf(sizeOfText(noteOf(message, message.text.length)));
    const length = lengthWithin(message.text, share - note - noteSlack, measure);
    return cutResult(message, Math.max(keptOfResult, length));
  });
  const result = [...earlier, ...shared];
  if (tokensOfMessages(result, measure) <= tokensMax) return result;
  const shortest = last.map((message) =>
    message.role === 'tool' ? cutResult(message, keptOfResult) : message,
  );
  return withoutLastFiles([...earlier, ...shortest], tokensMax, measure);
}

/** The messages with notes in place of as many files, the last ones, as there is no room for. */
function withoutLastFiles(
  messages: readonly DialogueMessage[],
  tokensMax: number,
  measure: WindowMeasure,
): DialogueMessage[] {
  let excess = tokensOfMessages(messages, measure) - tokensMax;
  const leaveOut = (file: AttachedFile) => {
    if (excess <= 0) return null;
    const note = noRoom(file);
    excess -= file.tokens - measure.tokensOf(sizeOfText(note)) - noteSlack;
    return note;
  };
  return messages
    .toReversed()
    .map((message) => inWords(message, leaveOut))
    .toReversed();
}

/** The share of each size, so that together they are at most `room`. */
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

/** The number of leading characters of a text that take so many tokens at most. */
export function lengthWithin(text: string, tokens: number, measure: WindowMeasure): number {
  let [fitting, tooLong] = [0, text.length + 1];
  while (tooLong - fitting > 1) {
    const length = Math.floor((fitting + tooLong) / 2);
    if (measure.tokensOf(sizeOfText(text.slice(0, length))) <= tokens) fitting = length;
    else tooLong = length;
  }
  return fitting;
}

function nextExchange(messages: readonly DialogueMessage[], from: number, end: number): number {
  const next = messages.findIndex((message, i) => i > from && message.role === 'user');
  return next === -1 || next > end ? end : next;
}

function cutResult(message: ToolMessage, kept: number): ToolMessage {
  if (message.text.length <= Math.max(keptOfResult * 2, kept)) return message;
  return { ...message, text: cutResultText(message, kept) };
}

/**
 * The beginning of a tool's result, with a note that tells the model how to read on. If the text already ends with
 * such a note, the new note replaces it.
 */
export function cutResultText(result: CutResult, max: number): string {
  const kept = firstUnits(result.text, max);
  return `${kept.toWellFormed()}\n${noteOf(result, kept.length)}`;
}

function noteOf({ text, callId, whole }: CutResult, kept: number): string {
  const left = (whole?.characters ?? text.length) - kept;
  const how = `read_result reads on: call_id ${JSON.stringify(callId)}, offset ${kept}`;
  return `[${left} more characters were left out; ${how}]`;
}

type CutResult = Pick<ToolMessage, 'text' | 'callId' | 'whole'>;

/** The first `max` characters of a longer text, with a note of how many were left out. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const kept = firstUnits(text, max);
  const left = text.length - kept.length;
  return `${kept.toWellFormed()}\n[${left} more characters were left out]`;
}

/**
 * The messages of earlier runs in a form that a model accepts: from the first message of the user on,
 * with each turn's results right after its calls. Left out are calls without a result (their run ended
 * before), results without a call, and data for one model only. An id that occurs in more than one turn,
 * as with some models, is replaced by a unique one.
 */
export function asHistory(
  messages: readonly DialogueMessage[],
  /** Called with each resulting message and its source. */
  onMade: (made: DialogueMessage, source: DialogueMessage) => void = () => {},
): DialogueMessage[] {
  const answers = answersByCall(messages);
  const ids = new Set<string>();
  const history: DialogueMessage[] = [];
  const add = (made: DialogueMessage, source: DialogueMessage) => {
    history.push(made);
    onMade(made, source);
  };
  for (const message of messages) {
    if (message.role === 'user') add(message, message);
    if (message.role !== 'assistant' || history.length === 0) continue;
    const { text, toolCalls, files } = message;
    const answered = toolCalls.flatMap((call) => {
      const answer = answers.get(call);
      if (answer === undefined) return [];
      const id = freshId(call.id, ids);
      return [{ call: { ...call, id }, answer, id }];
    });
    if (text === '' && answered.length === 0) continue;
    const made = { role: 'assistant', text, toolCalls: answered.map(({ call }) => call) } as const;
    add(files === undefined ? made : { ...made, files }, message);
    for (const { answer, id } of answered) add({ ...answer, callId: id }, answer);
  }
  return history;
}

/** The result of each call: the first one after it, before another call of the same id. */
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

/** The id, or a variant that is not in `ids`; adds it to `ids`. */
function freshId(id: string, ids: Set<string>): string {
  let fresh = id;
  for (let n = 2; ids.has(fresh); n++) fresh = `${id}_${n}`;
  ids.add(fresh);
  return fresh;
}

/** The calls of the last assistant message that have no result yet. */
export function openCalls(messages: readonly DialogueMessage[]): AssistantMessage['toolCalls'] {
  const at = messages.findLastIndex((message) => message.role === 'assistant');
  const last = messages[at];
  if (last?.role !== 'assistant') return [];
  const answered = new Set(
    messages.slice(at).flatMap((message) => (message.role === 'tool' ? [message.callId] : [])),
  );
  return last.toolCalls.filter(({ id }) => !answered.has(id));
}
