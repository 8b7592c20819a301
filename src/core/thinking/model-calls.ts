/**
 * One turn of a model: tokens are reserved, the call is made, its answer and cost are recorded, also when
 * it fails. A call of an overloaded or failing provider is retried, after the delay that the provider
 * names. Each try is a step of its own, because each may cost tokens. It has more than 300 lines because a try, its
 * failure and the next one have to be read together.
 */
import {
  type AssistantMessage,
  type DialogueMessage,
  type ModelAnswer,
  ModelError,
  mayBeCharged,
  type ToolOffer,
  type Usage,
} from '../../adapters/models/model.ts';
import { partsOfModel } from '../../adapters/models/providers.ts';
import { sizeOfMessages, sumOfSizes, type TextSize } from '../../adapters/models/text-size.ts';
import { delayAfter } from '../../kernel/backoff.ts';
import { ProviderBusyError } from '../paces/busy-error.ts';
import {
  type ActiveGeneration,
  log,
  report,
  settingsFor,
  type ThinkingAttempt,
} from './attempt.ts';
import {
  BudgetCutError,
  codeOf,
  estimateOf,
  failedEnd,
  lengthOf,
  normalized,
  notMade,
  refusalOf,
  shortageOf,
} from './call-ends.ts';
import { delayBefore, isOutOfTries, triesKey, unansweredMax } from './call-retries.ts';
import { compacted } from './compaction.ts';
import { fitDialogue } from './dialogue.ts';
import { askInOrder, OutOfTriesError, unpriced } from './fallbacks.ts';
import { hasFiles, withFiles } from './files-of-calls.ts';
import type { Generation } from './generation.ts';
import type { BegunCall, CallRequest } from './generations.ts';
import { unanswered, withoutCalls } from './last-turn.ts';
import { reportMessage, withMadeFiles } from './made-files.ts';
import { filesIn } from './message-files.ts';
import { awaitMoment, bookedTokens, noted, usualOutput } from './pace/paced-calls.ts';
import { askPatiently } from './pace/patience.ts';
import { pause } from './pace/pause.ts';
import type { CallCost, PlannedTool } from './recorded-generation.ts';
import { pricedCall } from './recorded-generation.ts';
import { withMarks } from './result-marks.ts';
import { requireKey } from './run-agent.ts';
import type { CallNeed } from './run-bounds.ts';
import { callOfTurn, promptOfTurn, seesFiles, wayOf } from './sent-calls.ts';
import { isTooLong, promptsMax, shrinkWindow } from './shortening.ts';
import { TextBatches } from './text-batches.ts';
import { stopped, ThinkingError } from './thinking-error.ts';
import { roomFor } from './window.ts';

/** Delays while other calls hold the budget's tokens; each new try is a transaction. */
const budgetBackoff = { baseMs: 100, maxMs: 1_000 };

/** A turn to be asked for, with the messages that the model is sent. */
interface TurnRequest extends ActiveGeneration {
  readonly turn: number;
  /** Whether the model has to answer, because no turn may follow. */
  readonly isLast: boolean;
  /** The agent's own model or a fallback. */
  readonly model: string;
  /** All messages, also those that are not sent. */
  readonly dialogue: readonly DialogueMessage[];
  readonly messages: readonly DialogueMessage[];
  readonly tools: readonly ToolOffer[];
  /** Of the whole request. */
  readonly size: TextSize;
}

export interface ModelTurn {
  readonly message: AssistantMessage;
  /** The tools that it called. */
  readonly tools: readonly PlannedTool[];
  /** The step of the call. */
  readonly step: number;
}

/**
 * Asks a model for one turn. Rejects with a ThinkingError when there is no answer, and with errors of the
 * journal. The call is made once `ready` has resolved, and is not made when `ready` rejects.
 */
export async function askModel(
  active: ActiveGeneration,
  messages: readonly DialogueMessage[],
  asked: Pick<TurnRequest, 'turn' | 'isLast'>,
  ready: Promise<unknown>,
): Promise<ModelTurn> {
  try {
    return await askPatiently(active, asked.turn, ready, () =>
      askAll(active, messages, asked, ready),
    );
  } catch (error) {
    throw error instanceof ModelError ? asThinkingError(active.attempt, error) : error;
  }
}

/** Asks the models of the turn in order, with a shorter prompt where one is too long. */
async function askAll(
  active: ActiveGeneration,
  messages: readonly DialogueMessage[],
  { turn, isLast }: Pick<TurnRequest, 'turn' | 'isLast'>,
  ready: Promise<unknown>,
): Promise<ModelTurn> {
  let prompt = await promptOf(active, messages, ready);
  if (prompt === null) throw tooLongFor(active.generation, messages);
  for (let prompts = 1; ; prompts++) {
    const sending = { turn, isLast, dialogue: messages, ...prompt };
    const passesLengthOn = prompts >= promptsMax;
    try {
      return await askInOrder(active, { turn, passesLengthOn }, (model, hasNext) =>
        askUncut({ ...active, ...sending, model }, ready, hasNext),
      );
    } catch (error) {
      if (passesLengthOn || !isTooLong(error)) throw error;
      const shorter = await shorterPrompt(active, messages, prompt, ready);
      if (shorter === null && active.generation.fallbacks.length === 0) throw error;
      const then = shorter === null ? 'another model is asked' : 'a shorter prompt is sent';
      log(active.attempt, `${error.message}; ${then}`);
      if (shorter === null) prompts = promptsMax - 1;
      else prompt = shorter;
    }
  }
}

type Prompt = Pick<TurnRequest, 'messages' | 'tools' | 'size'>;

/** What the model is sent of the dialogue, summarized first if it is too long; null if it cannot fit. */
async function promptOf(
  active: ActiveGeneration,
  messages: readonly DialogueMessage[],
  ready: Promise<unknown>,
): Promise<Prompt | null> {
  const sent = await compacted(active, messages, ready);
  const tools = active.box.offersAfter(messages, active.compaction.tools);
  const part = fitted(active, tools, sent);
  return part && { tools, ...part };
}

/** A shorter prompt than one that was refused for its length; null if there is none. */
async function shorterPrompt(
  active: ActiveGeneration,
  messages: readonly DialogueMessage[],
  { messages: refused, tools }: Prompt,
  ready: Promise<unknown>,
): Promise<Prompt | null> {
  const before = shrinkWindow(active, roomFor(active, tools), refused);
  const prompt = await promptOf(active, messages, ready);
  if (prompt === null) active.generation.window = before;
  return prompt;
}

function tooLongFor(
  { window, task }: Generation,
  messages: readonly DialogueMessage[],
): ThinkingError {
  const asked = messages[task];
  const texts = asked?.role === 'user' ? (asked.worded ?? []) : [];
  const names = [...texts, ...(asked === undefined ? [] : filesIn(asked))].map(({ name }) => name);
  const files = names.length === 0 ? '' : `, with the files ${JSON.stringify(names)}`;
  const message = `What the model has to read${files} is longer than its ${window} tokens (MODEL_CONTEXT_TOKENS, or context_tokens of the agent)`;
  return new ThinkingError('skill_execution_failed', message);
}

/** Asks again, for the whole answer, where a budget that is shared with other calls has cut it. */
async function askUncut(
  request: TurnRequest,
  ready: Promise<unknown>,
  hasNext: boolean,
): Promise<ModelTurn> {
  const { generation, turn, model, attempt } = request;
  try {
    return await askWithRetries(request, ready, hasNext);
  } catch (error) {
    if (!(error instanceof BudgetCutError && leavesRoom(request))) throw error;
    generation.cuts.set(triesKey(turn, model), error.output);
    log(attempt, `${error.message}; a longer one is asked for, if the budget has tokens for it`);
    return await askWithRetries(request, ready, hasNext);
  }
}

/**
 * Whether a call reserves less than its whole answer, to leave room for others. How long a model reasons may depend on
 * the answer's limit, so where it reasons it does not; nor does a call whose answer was cut for it.
 */
function leavesRoom({ attempt, generation, turn, model }: TurnRequest): boolean {
  const { known } = attempt.parts;
  const { effort } = known.takenBy(model, generation.call, false);
  return !known.reasonsWith(model, effort) && !generation.cuts.has(triesKey(turn, model));
}

/** Rejects with a ModelError when the model gives no answer and has no tries left in this attempt. */
async function askWithRetries(
  request: TurnRequest,
  ready: Promise<unknown>,
  hasNext: boolean,
): Promise<ModelTurn> {
  for (let tries = 1; ; tries++) {
    try {
      return await askOnce(request, ready, hasNext);
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      if (withholdsFiles(request, error, hasNext)) continue;
      noteRefusal(request, error);
      const key = triesKey(request.turn, request.model);
      if (isOutOfTries(request.generation.unanswered, key, error) && !hasNext) {
        const message = `${error.message}; it is not asked again, because each of ${unansweredMax} calls may have been charged`;
        throw new OutOfTriesError(message);
      }
      const hasWaited = request.generation.patience.rounds > 0;
      const delayMs = delayBefore(error, tries, { hasNext, hasWaited });
      if (delayMs === null) throw error;
      log(request.attempt, `${error.message}; asking again`);
      await pause(delayMs, request.generation.call.signal);
    }
  }
}

/**
 * Whether a refused request is made once more, with lines of text in place of its files: providers refuse broken and too large
 * ones, and each message of the conversation would be refused with them.
 */
function withholdsFiles(
  request: TurnRequest,
  { fault, refuses, isDeclined, message }: ModelError,
  hasNext: boolean,
): boolean {
  const mayBeOfFiles = refuses === 'model' ? !hasNext : refuses !== 'length';
  if (fault !== 'refused' || isDeclined || !mayBeOfFiles) return false;
  if (!seesFiles(request) || !request.messages.some(hasFiles)) return false;
  request.generation.withoutFiles.add(request.model);
  log(request.attempt, `${message}; it is asked again without the files`);
  return true;
}

/** Keeps what a provider said, for the error of a job that waits for it in vain. */
function noteRefusal({ generation, model }: TurnRequest, error: ModelError): void {
  if (error instanceof ProviderBusyError) return;
  const { provider } = partsOfModel(model);
  generation.patience.refusal = { provider, said: error.message };
}

/** One try, within the bounds of the attempt. */
async function askOnce(
  request: TurnRequest,
  ready: Promise<unknown>,
  hasNext: boolean,
): Promise<ModelTurn> {
  const { estimates, bounds, parts, run } = request.attempt;
  const { output, call: to } = request.generation;
  const prompt = estimates.bound(request.model, request.size);
  const expected = estimates.expected(request.model, request.size);
  const { messages, model } = request;
  const permit = await bounds.admit({ prompt, output }, to.signal);
  const files = { messages, model, takesFiles: seesFiles(request), signal: to.signal };
  try {
    // Before the moment, because to read files takes longer than a moment counts.
    return await withFiles(request.attempt, files, async (sent) => {
      const renewMoment = await awaitMoment(request, model, expected, hasNext).catch(
        bounds.uncounted,
      );
      await requireKey(parts, run.job);
      const need = { prompt, expected, output: permit.output, files: sent.files };
      const call = await begin(request, need, ready);
      return await callOnce(request, call, permit.output, sent.messages, renewMoment);
    });
  } finally {
    bounds.release(permit);
  }
}

/** Reserves the call's tokens; waits while other calls hold the tokens that it needs. */
async function begin(
  request: TurnRequest,
  need: CallNeed & Pick<CallRequest, 'expected' | 'files'>,
  ready: Promise<unknown>,
): Promise<BegunCall> {
  const { attempt, generation, turn, model } = request;
  const { generations } = attempt;
  const cut = generation.cuts.get(triesKey(turn, model));
  const { id, parent, agentVersion, mayDelegate } = generation;
  const { signal } = generation.call;
  const wanted = {
    generation: id,
    parent,
    turn,
    model,
    agentVersion,
    mayDelegate,
    values: attempt.values,
    ...need,
    ...(leavesRoom(request) && { enough: usualOutput }),
    // With little more than before, the answer would most likely be cut and charged again.
    ...(cut !== undefined && { least: 2 * cut }),
    sends: await promptOfTurn(request),
  };
  for (let tries = 1; ; tries++) {
    if (signal.aborted) throw stopped();
    const beginning = generations.beginCall(wanted);
    const [isReady] = await Promise.allSettled([ready, beginning]);
    const begun = await beginning;
    if (isReady.status === 'rejected') {
      if (begun.kind === 'begun') {
        await generations.endCall(begun.call, notMade);
      }
      throw isReady.reason;
    }
    if (begun.kind === 'begun') {
      if (tries > 1) log(attempt, 'The budget has tokens again: the call is made');
      return begun.call;
    }
    if (begun.kind === 'exceeded') {
      if (cut !== undefined) throw new BudgetCutError(cut);
      throw new ThinkingError('budget_exceeded', begun.message);
    }
    if (begun.kind === 'unpriced') throw unpriced(begun.message, model !== generation.call.model);
    if (tries === 1) log(attempt, begun.message);
    await pause(delayAfter(budgetBackoff, tries), signal);
  }
}

/**
 * Makes the call and records how it ended. `permitted`: its most tokens within the bound of the attempt; `sent`: the messages
 * with their files.
 */
async function callOnce(
  request: TurnRequest,
  call: BegunCall,
  permitted: number,
  sent: readonly DialogueMessage[],
  renewMoment: () => Promise<void>,
): Promise<ModelTurn> {
  const { attempt, generation } = request;
  const begun = { isAsked: false };
  try {
    const answer = await stream(request, call, begun, sent, renewMoment);
    return await recordAnswer(request, call, permitted, answer);
  } catch (error) {
    if (!(begun.isAsked || error instanceof ModelError)) {
      await attempt.generations.endCall(call, notMade);
    } else if (error instanceof ModelError) {
      const end = failedEnd(error, call);
      spend(request, call, end);
      // Such calls are bounded by the time for which a turn waits.
      if (!mayBeCharged(end.usage)) attempt.bounds.forgetCall();
      const { isDialogue, isOfGuard } = generation;
      const isHeld = holds(request);
      await attempt.generations.endCall(call, { isDialogue, isOfGuard, isHeld, ...end });
    }
    throw error;
  }
}

/** The answer of the model, whose text is passed on while it arrives. `begun` learns when the provider is asked. */
async function stream(
  request: TurnRequest,
  call: BegunCall,
  begun: { isAsked: boolean },
  sent: readonly DialogueMessage[],
  renewMoment: () => Promise<void>,
): Promise<ModelAnswer> {
  const { attempt, generation, model } = request;
  const settings = await settingsFor(attempt, model);
  const way = wayOf(request, settings);
  const batches = new TextBatches((text) => {
    if (isShown(request)) report(attempt, { type: 'token', data: { step: call.n, text } });
  });
  const onText = (text: string) => batches.add(text);
  try {
    // The budget may have held up the call since its moment.
    await renewMoment();
    begun.isAsked = true;
    const booked = bookedTokens(call.expected, generation.output);
    return await noted(attempt, model, settings, booked, () =>
      attempt.parts.models.call({ ...callOfTurn(request, way, sent, call.output), onText }),
    );
  } finally {
    batches.end();
  }
}

/** Whether guards have to see an answer first. */
function holds({ guards }: ActiveGeneration): boolean {
  return guards.judges('answer');
}

/** Whether clients are shown an answer as it arrives. */
function isShown(request: TurnRequest): boolean {
  return !request.generation.isOfGuard && !holds(request);
}

async function recordAnswer(
  request: TurnRequest,
  call: BegunCall,
  permitted: number,
  answer: ModelAnswer,
): Promise<ModelTurn> {
  const { attempt, generation, box, size } = request;
  const { usage, finish } = answer;
  // What files take is not known well enough to learn of it what text takes.
  if (usage.prompt !== null && !request.messages.some(hasFiles)) {
    attempt.estimates.learn(request.model, size, usage.prompt);
  }
  const isCut = finish === 'length' || finish === 'too-long';
  const cutAt = finish === 'length' ? call.output : null;
  const whole = normalized(answer.message, { n: call.n, cutAt }, request.dialogue);
  const clean = request.isLast ? withoutCalls(whole) : whole;
  const said = isCut ? { ...clean, isCut } : clean;
  const message = await withMadeFiles(attempt, { ...answer, message: said }, call.n);
  if (finish === 'content-filter' || finish === 'refusal') {
    const { text } = message;
    const seenBytes = Buffer.byteLength(text);
    const refusal = refusalOf(request.model, finish, holds(request) ? '' : text);
    throw new ModelError('refused', refusal, { isDeclined: true, text, usage, seenBytes });
  }
  if (!isCut && message.text.trim() === '' && whole.toolCalls.length === 0) {
    const seenBytes = Buffer.byteLength(message.reasoning?.text ?? '');
    throw new ModelError('unavailable', emptyAnswer(request.model), { usage, seenBytes });
  }
  logExcess(attempt, usage, call);
  const estimated = estimateOf(usage, call, lengthOf(answer.message, call));
  spend(request, call, { usage, estimated });
  const { isDialogue, isOfGuard, output } = generation;
  const isHeld = holds(request) && message.text !== '';
  const shortage =
    (finish === 'length' ? shortageOf(whole, call, permitted, output) : null) ??
    (message.text.trim() === '' && clean !== whole ? unanswered(request.turn) : null);
  const calls = shortage === null ? message.toolCalls : [];
  const tools = await attempt.generations.endCall(call, {
    isDialogue,
    isOfGuard,
    isHeld,
    status: shortage === null ? 'completed' : 'failed',
    error: shortage && { code: shortage.code, message: shortage.message },
    message,
    usage,
    estimated,
    tools: calls.map((one) => ({ call: one, name: box.nameOf(one) })),
  });
  if (shortage !== null) throw shortage;
  if (message.text !== '' && isShown(request)) reportMessage(attempt, call.n, message);
  if (isCut) {
    const bound =
      finish === 'length' ? `${call.output} tokens` : 'what the output of a job may have';
    log(attempt, `The answer was cut at ${bound}`);
  }
  return { message, tools, step: call.n };
}

/** Logs when a provider reports more tokens than were reserved: budgets may be exceeded by the difference. */
function logExcess(attempt: ThinkingAttempt, { prompt, completion }: Usage, call: BegunCall): void {
  const counted = (prompt ?? 0) + (completion ?? 0);
  if (counted <= call.reserved) return;
  log(
    attempt,
    `${call.model} counted ${counted} tokens, and ${call.reserved} were reserved: budgets may be exceeded by the difference`,
  );
}

function spend({ attempt, generation }: TurnRequest, call: BegunCall, cost: CallCost): void {
  attempt.bounds.count(cost);
  generation.costs.push(pricedCall(cost, call));
}

function asThinkingError(attempt: ThinkingAttempt, error: ModelError): ThinkingError {
  const { fault, message, retryAfterMs } = error;
  const code = codeOf(error);
  if (code === 'interrupted') return stopped();
  if (fault !== 'unavailable') return new ThinkingError(code, message);
  if (retryAfterMs !== null) attempt.retryAfterMs = retryAfterMs;
  return new ThinkingError(code, message, true);
}

const emptyAnswer = (model: string) =>
  `The answer of ${model} is empty: it has neither a text nor a call of a tool`;

/** The part of the dialogue that fits into the model's window, null if none does; logs what was left out. */
function fitted(
  { attempt, generation }: ActiveGeneration,
  tools: readonly ToolOffer[],
  { messages, task }: Awaited<ReturnType<typeof compacted>>,
) {
  const { room, measure, offers } = roomFor({ attempt, generation }, tools);
  const result = fitDialogue(messages, task, room, measure);
  if (!result.fits) return null;
  const { leftOut, cut } = result;
  if (leftOut > 0) {
    log(attempt, `${leftOut} older messages were left out, to fit the model's window`);
  }
  if (cut > 0) log(attempt, `${cut} results of tools were cut, to fit the model's window`);
  const size = sumOfSizes([generation.overhead, offers, sizeOfMessages(result.messages)]);
  return { messages: withMarks(result.messages), size };
}
