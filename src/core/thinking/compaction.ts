/**
 * Compaction: before a dialogue fills the model's window, the model summarizes the earlier part of it. The summary is a
 * message and a step on record, with its tokens, and is sent from then on in place of what it covers, also by a repeated
 * attempt and later runs of the conversation. Only an answer that the model ended itself is a summary. Where it fails,
 * messages are left out and cut instead (`dialogue.ts`), and the conversation is summarized again only after a pause.
 */

import {
  type DialogueMessage,
  type ModelAnswer,
  type ModelCall,
  ModelError,
  mayBeCharged,
} from '../../adapters/models/model.ts';
import type { ProviderSettings } from '../../adapters/models/providers.ts';
import { sizeOfText, sumOfSizes } from '../../adapters/models/text-size.ts';
import { cleanText } from '../../kernel/text.ts';
import { type ActiveGeneration, log, settingsFor } from './attempt.ts';
import { estimateOf, failedEnd, lengthOf } from './call-ends.ts';
import {
  type Covered,
  planCompaction,
  type Summary,
  sentOf,
  transcriptOf,
  turnsBefore,
} from './compaction-plan.ts';
import { askInOrder, unpriced } from './fallbacks.ts';
import type { BegunCall } from './generations.ts';
import { awaitMoment, bookedTokens, noted } from './pace/paced-calls.ts';
import { quoted, quotingRule } from './quoted.ts';
import { pricedCall } from './recorded-generation.ts';
import { requireKey } from './run-agent.ts';
import { promptFrom } from './sent-calls.ts';
import { stopped, ThinkingError } from './thinking-error.ts';
import { toolsIn } from './tool-search.ts';
import { roomFor } from './window.ts';

/** The approximate and the least tokens of a summary. A reasoning model may use as many again. */
const summaryMax = 2_048;
const summaryMin = 64;
/** The share of the window that a summary takes at most. */
const summaryShare = 0.15;
/** New messages in a dialogue after a failed or postponed summary before the next try. */
const againAfter = 10;

/** The summarized part of a dialogue, shared by all turns of a request. */
export interface Compaction {
  covered: number;
  summary: Pick<Summary, 'text'> | null;
  /** No summary is tried while the dialogue has fewer messages. */
  notBefore: number;
  /** Tools found in messages of earlier runs that are no longer sent. */
  readonly tools: readonly string[];
  /** The ids of messages of earlier jobs. */
  readonly ids: ReadonlyMap<DialogueMessage, string>;
}

/** The messages to send and the index of the task in them. Summarizes the dialogue first if it is too long. */
export async function compacted(
  active: ActiveGeneration,
  messages: readonly DialogueMessage[],
  ready: Promise<unknown>,
): Promise<{ readonly messages: readonly DialogueMessage[]; readonly task: number }> {
  const { compaction, generation, box } = active;
  const { covered, summary } = compaction;
  const dialogue: Covered = { messages, task: generation.task, covered, summary };
  const { window, output } = generation;
  const max = Math.min(output, summaryMax, Math.floor(window * summaryShare));
  if (max < summaryMin || messages.length < compaction.notBefore) return sentOf(dialogue);
  const room = roomFor(active, box.offersAfter(messages, compaction.tools));
  const point = planCompaction(dialogue, room, max);
  if (point === null) return sentOf(dialogue);
  if (!(await active.attempt.generations.maySummarize(generation.agentVersion))) {
    compaction.notBefore = messages.length + againAfter;
    log(active.attempt, 'The earlier messages are not summarized now, because a summary failed');
    return sentOf(dialogue);
  }
  // The summary is a call of a model, so the results of the last tools have to be on record before it.
  await ready;
  try {
    compaction.summary = await summarize(active, dialogue, point, max);
    compaction.covered = point;
    log(active.attempt, `${point - covered} earlier messages were summarized`);
  } catch (error) {
    if (generation.call.signal.aborted) throw stopped();
    if (!(error instanceof ThinkingError || error instanceof ModelError)) throw error;
    compaction.notBefore = messages.length + againAfter;
    log(active.attempt, `The earlier messages could not be summarized: ${error.message}`);
  }
  return sentOf({ ...dialogue, covered: compaction.covered, summary: compaction.summary });
}

/**
 * Asks the models of the turn in order for a summary of the messages before `point`, and records it.
 * Rejects when no model answers.
 */
function summarize(
  active: ActiveGeneration,
  dialogue: Covered,
  point: number,
  max: number,
): Promise<Pick<Summary, 'text'>> {
  return askInOrder(active, { turn: 0, passesLengthOn: true }, (model) =>
    summarizeWith(active, model, { dialogue, point, max }),
  );
}

/** Rejects with a ModelError when this model gives no summary. */
async function summarizeWith(
  active: ActiveGeneration,
  model: string,
  { dialogue, point, max }: { dialogue: Covered; point: number; max: number },
): Promise<Pick<Summary, 'text'>> {
  const { attempt, generation } = active;
  const { estimates, bounds, parts, run, generations } = attempt;
  const { id, parent, agentVersion, mayDelegate, call: to } = generation;
  const output = Math.min(generation.output, 2 * max);
  const system = instructions(max);
  const measure = estimates.measure([model]);
  const room = generation.window - output - measure.hidden - measure.tokensOf(sizeOfText(system));
  const transcript = transcriptOf(dialogue, point, Math.floor(room * 0.9), measure);
  const prompt = `${quoted(transcript, 'conversation')}\n\n${task}`;
  const size = sumOfSizes([sizeOfText(system), sizeOfText(prompt)]);
  const need = { prompt: estimates.bound(model, size), output };
  const expected = estimates.expected(model, size);
  const permit = await bounds.admit(need, to.signal);
  try {
    await awaitMoment(active, model, expected, true).catch(bounds.uncounted);
    await requireKey(parts, run.job);
    const { values } = attempt;
    const by = { model, agentVersion, mayDelegate, values };
    const text = { system, prompt };
    const sends = generation.keepsPrompts
      ? await promptFrom(attempt, model, async (settings) => (tokens) => ({
          ...callOfSummary(active, model, settings, text),
          maxOutputTokens: tokens,
        }))
      : undefined;
    const place = { generation: id, parent, turn: 0, ...by, expected, sends };
    const begun = await generations.beginCall({ ...place, ...need, output: permit.output });
    if (begun.kind === 'unpriced') throw unpriced(begun.message, model !== to.model);
    if (begun.kind !== 'begun') throw new ThinkingError('budget_exceeded', begun.message);
    const answer = await call(active, begun.call, text);
    return await record(active, begun.call, answer, dialogue, point);
  } finally {
    bounds.release(permit);
  }
}

interface SummaryText {
  readonly system: string;
  readonly prompt: string;
}

function callOfSummary(
  { attempt, generation }: ActiveGeneration,
  model: string,
  settings: ProviderSettings | undefined,
  { system, prompt }: SummaryText,
): Omit<ModelCall, 'onText' | 'maxOutputTokens'> {
  return {
    ...generation.call,
    model,
    settings,
    system,
    schema: undefined,
    // The agent's settings are for its answers, and not every model accepts them.
    temperature: undefined,
    effort: undefined,
    mayReason: attempt.parts.known.takenBy(model, {}, false).mayReason,
    tools: [],
    messages: [{ role: 'user', text: prompt }],
  };
}

async function call(
  active: ActiveGeneration,
  begun: BegunCall,
  text: SummaryText,
): Promise<ModelAnswer> {
  const { attempt, generation } = active;
  try {
    const settings = await settingsFor(attempt, begun.model);
    const booked = bookedTokens(begun.expected, generation.output);
    return await noted(attempt, begun.model, settings, booked, () =>
      attempt.parts.models.call({
        ...callOfSummary(active, begun.model, settings, text),
        maxOutputTokens: begun.output,
        onText() {},
      }),
    );
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    const end = failedEnd(error, begun);
    attempt.bounds.count(end);
    generation.costs.push(pricedCall(end, begun));
    const { agentVersion } = generation;
    const isCharged = error.fault !== 'aborted' && mayBeCharged(error.usage);
    const failed = isCharged ? { failedSummary: { agentVersion } } : {};
    await attempt.generations.endCall(begun, { ...end, isDialogue: false, ...failed });
    throw error;
  }
}

async function record(
  { attempt, generation, compaction }: ActiveGeneration,
  begun: BegunCall,
  { message, usage, finish }: ModelAnswer,
  dialogue: Covered,
  point: number,
): Promise<Pick<Summary, 'text'>> {
  const { generations, bounds } = attempt;
  const text = cleanText(message.text.trim());
  const estimated = estimateOf(usage, begun, lengthOf(message, begun));
  bounds.count({ usage, estimated });
  generation.costs.push(pricedCall({ usage, estimated }, begun));
  const answer = { role: 'assistant', text, toolCalls: [] } as const;
  const ended = { usage, estimated, tools: [], message: answer };
  const fault = faultOf(finish, text, begun);
  if (fault !== null) {
    const code = 'skill_execution_failed';
    await generations.endCall(begun, {
      ...ended,
      status: 'failed',
      error: { code, message: fault },
      isDialogue: false,
      failedSummary: { agentVersion: generation.agentVersion },
    });
    throw new ThinkingError(code, fault);
  }
  const { messages, covered } = dialogue;
  const last = messages[point - 1];
  const summary = {
    text,
    turns: turnsBefore(dialogue, point),
    through: (last && compaction.ids.get(last)) ?? '',
    tools: [...new Set([...compaction.tools, ...toolsIn(messages.slice(covered, point))])],
  };
  await generations.endCall(begun, {
    ...ended,
    status: 'completed',
    error: null,
    // A trial changes nothing that other jobs are sent.
    isDialogue: generation.isDialogue && attempt.run.job.agent_overrides === null,
    summary,
  });
  return summary;
}

/** Why an answer is no summary; null for one that the model ended itself. */
function faultOf(
  finish: ModelAnswer['finish'],
  text: string,
  { output }: BegunCall,
): string | null {
  switch (finish) {
    case 'stop':
      return text === '' ? 'the summary is empty' : null;
    case 'length':
      return `the summary was cut at ${output} tokens`;
    case 'too-long':
      return 'the summary is longer than a message may be';
    case 'content-filter':
      return "the provider's filter withheld the summary";
    case 'refusal':
      return 'the model refused to write the summary';
    case 'tool-calls':
    case 'other':
      return 'the model did not finish the summary';
  }
}

const task = 'Summarize the conversation.';

function instructions(max: number): string {
  return [
    'You summarize the earlier part of a conversation between a user, an assistant and its tools, so that the assistant can go on without it.',
    quotingRule('The conversation', 'conversation'),
    'Keep what the user wants, in the words that matter; decisions, facts, names, numbers, addresses and ids; what was done and what came of it; what is open. Name the id of a call whose result may be needed again. Leave out politeness.',
    `Write in the language of the conversation, with ${Math.floor(max / 2)} words at most.`,
  ].join('\n');
}
