/**
 * Thinking: answers a run's request to its agent's model. It determines the agent, the model and its
 * tools, the history of the conversation and the recorded part of the generation, then runs the loop. A
 * model gets only the tools that both the agent's patterns and the API key's scopes allow.
 */
import type { Usage } from '../../adapters/models/model.ts';
import { sizeOfText, sumOfSizes } from '../../adapters/models/text-size.ts';
import { usdOf } from '../../kernel/money.ts';
import type { AgentRow } from '../agents/agent-rows.ts';
import { fallbacksOf, guardsOf, profileOf, rulesOf, settingsOf } from '../agents/agent-rows.ts';
import type { FilledInstructions } from '../agents/instruction-values.ts';
import { callSettings } from '../agents/model-settings.ts';
import { type Attempt, journalOf, memoryOf } from '../jobs/runs/attempt.ts';
import type { RunThinking, Thinking } from '../jobs/runs/thinking.ts';
import type { RunPart } from '../journal/run-part.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import { rightsOfModel } from '../memories/memory-verbs.ts';
import type { Generated } from '../skills/definition.ts';
import { answer } from './answering.ts';
import { attached } from './attachments.ts';
import type { ThinkingAttempt, ThinkingParts } from './attempt.ts';
import { Estimates } from './estimates.ts';
import {
  type GenerateOptions,
  type GenerateRequest,
  generationIdOf,
  readGenerateRequest,
} from './generate-request.ts';
import type { Generation } from './generation.ts';
import { Generations } from './generations.ts';
import { historyBefore, noHistory } from './history.ts';
import { instructionsOf } from './instructions.ts';
import { type LoopResult, recordedResult } from './loop.ts';
import { madeFile } from './made-files.ts';
import { Patience } from './pace/patience.ts';
import { profileBlock } from './profile-block.ts';
import { recalledFor } from './recalled.ts';
import type { PricedCall, RecordedGeneration } from './recorded-generation.ts';
import { passTask } from './released.ts';
import { resultsRule } from './result-marks.ts';
import { agentOf, modelOf, requireScopes } from './run-agent.ts';
import { callLimits, RunBounds } from './run-bounds.ts';
import { TextGuards } from './text-guards.ts';
import { ThinkingError, thinkingErrorOf } from './thinking-error.ts';
import { ToolMeaning } from './tool-meaning.ts';
import { ToolBox } from './tools.ts';
import { roomForFiles } from './window.ts';

/** Nesting of tools: deeper parts are offered no skills. */
const depthMax = 3;

/** Runs think with models. */
export class ModelThinking implements Thinking {
  readonly #parts: ThinkingParts;
  readonly #estimates = new Estimates();
  readonly #toolMeaning = new ToolMeaning();

  constructor(parts: ThinkingParts) {
    this.#parts = parts;
  }

  /** Begins the thinking of one attempt. */
  begin(run: Attempt): RunThinking {
    return new ModelRunThinking(this.#parts, run, this.#estimates, this.#toolMeaning);
  }
}

/** The thinking of one attempt. */
class ModelRunThinking implements RunThinking {
  readonly #attempt: ThinkingAttempt;

  constructor(parts: ThinkingParts, run: Attempt, estimates: Estimates, toolMeaning: ToolMeaning) {
    this.#attempt = {
      parts,
      run,
      generations: new Generations(parts, journalOf(run)),
      bounds: new RunBounds({ tokensMax: parts.context.config.agentTokensMax, ...callLimits }),
      estimates,
      toolMeaning,
      resting: new Map(),
      documents: new Map(),
      underWay: new Set(),
      values: null,
      answer: null,
      retryAfterMs: null,
    };
  }

  get answer(): string | null {
    return this.#attempt.answer;
  }

  get retryAfterMs(): number | null {
    return this.#attempt.retryAfterMs;
  }

  /** Rejects with a ThinkingError. */
  generate(
    payload: unknown,
    part: RunPart,
    signal: AbortSignal,
    scope: WaitScope,
  ): Promise<Generated> {
    const { underWay } = this.#attempt;
    const result = Promise.resolve().then(() =>
      think(this.#attempt, readGenerateRequest(payload), part, signal, scope),
    );
    const done = result.catch(() => {}).then(() => void underWay.delete(done));
    underWay.add(done);
    return result;
  }

  async ended(): Promise<void> {
    const { underWay } = this.#attempt;
    while (underWay.size > 0) await Promise.all(underWay);
  }
}

/**
 * Answers from the journal, or asks the model. A failure is recorded before the run gets it, so that the attempt gets
 * the same failure again after a wait.
 */
async function think(
  attempt: ThinkingAttempt,
  given: GenerateRequest,
  part: RunPart,
  signal: AbortSignal,
  scope: WaitScope,
): Promise<Generated> {
  const { run, generations, bounds } = attempt;
  const { request, nth, corrections } = given;
  const place = { id: generationIdOf(part.path, given), parent: part.step, nth };
  const recorded = await generations.recorded(place);
  if (corrections.length === 0) {
    if (recorded.memory.length > 0) {
      await memoryOf(run).restore(recorded.memory);
      part.changes?.add(...recorded.memory);
    }
    for (const cost of recorded.costs) bounds.count(cost);
  }
  const costs = [...recorded.costs];
  const isDialogue = request.continues && part.depth === 0;
  const { messages, turns } = recorded;
  const isReleased = recorded.held.length === 0;
  let result = isReleased ? recordedResult(messages, { turns, corrections }) : undefined;
  if (result === undefined) {
    if (recorded.failure !== null) throw thinkingErrorOf(recorded.failure);
    try {
      const known = { id: place.id, isDialogue, signal, costs };
      result = await continueGeneration(attempt, given, part, scope, recorded, known);
    } catch (error) {
      if (error instanceof ThinkingError && !signal.aborted) {
        const { code, message, retryable } = error;
        await generations.failGeneration(place, { code, message, retryable });
      }
      throw error;
    }
  }
  if (isDialogue) attempt.answer = result.text;
  const { files, ...answered } = result;
  const usage = usageOf(costs);
  return files === undefined
    ? { ...answered, usage }
    : { ...answered, files: files.map(madeFile), usage };
}

/** Asks the model for the part that is not on record. Only here are the current rights of agent and key checked. */
async function continueGeneration(
  attempt: ThinkingAttempt,
  given: GenerateRequest,
  part: RunPart,
  scope: WaitScope,
  recorded: RecordedGeneration,
  { signal, ...known }: Pick<Generation, 'id' | 'isDialogue' | 'costs'> & { signal: AbortSignal },
): Promise<LoopResult> {
  const { parts, run } = attempt;
  const { request } = given;
  const { id, isDialogue } = known;
  const agent = await agentOf(parts, run.job);
  const model = modelOf(parts, agent);
  const scopes = await requireScopes(parts, run.job);
  const box = await toolsOf(attempt, agent, scopes, request, part);
  const instructions = part.isGuard ? noInstructions : instructionsOf(attempt, agent);
  const profile = part.isGuard ? '' : await profileBlock(attempt, agent, recorded.turns > 0);
  const system = systemOf(instructions, request, box, profile);
  const fallbacks = fallbacksOf(agent);
  const { modelContextTokens, modelOutputTokens } = parts.context.config;
  const { output, window, waitForProvider, ...called } = callSettings(request, settingsOf(agent), {
    window: parts.known.windowOf([model, ...fallbacks], modelContextTokens),
    output: modelOutputTokens,
  });
  const to = { models: [model, ...fallbacks], signal, room: window - output };
  const guards = new TextGuards({ attempt, id, part, signal }, guardsOf(agent), recorded);
  const asked = { prompt: request.prompt, isDialogue };
  const passed = await passTask(attempt, guards, asked, scope, part.step);
  const earlier = { prompt: request.prompt, task: passed, guards, scope, parent: part.step };
  const history = isDialogue ? await historyBefore(attempt, earlier, to) : noHistory;
  const generation: Generation = {
    ...known,
    parent: part.step,
    isOfGuard: part.isGuard,
    call: { ...called, model, system, schema: request.schema, signal },
    agentVersion: agent.version,
    mayDelegate: agent.agents !== '[]',
    fallbacks,
    // A guard's prompt has what it may refuse.
    keepsPrompts: !part.isGuard && parts.prompts.keeps(agent),
    patience: new Patience(waitForProvider),
    leftOut: new Set(),
    withoutFiles: new Set(),
    output,
    window,
    task: history.messages.length,
    overhead: sumOfSizes([sizeOfText(system), sizeOfText(JSON.stringify([request.schema]))]),
    unanswered: new Map(recorded.unanswered),
    cuts: new Map(recorded.cuts),
    files: request.files ?? '',
  };
  const recalling = { id, part, recorded, guards, scope };
  const recalled = await recalledFor(attempt, agent, { ...request, prompt: passed }, recalling);
  const prompt = `${passed}${recalled}`;
  const task = await attached(attempt, prompt, request.attachments ?? [], {
    ...to,
    room: roomForFiles({ attempt, generation }, box.offers, prompt),
    isAnswered: recorded.turns > 0,
  });
  return answer(
    { attempt, generation, part, box, scope, guards },
    given,
    { history, task },
    recorded,
  );
}

/** The tools that a request is offered. */
async function toolsOf(
  attempt: ThinkingAttempt,
  agent: AgentRow,
  scopes: readonly string[],
  request: GenerateOptions,
  part: RunPart,
): Promise<ToolBox> {
  const { parts, run } = attempt;
  const wanted = {
    tools: toolsWanted(part, request.tools),
    files: request.files !== undefined,
  };
  const rights = {
    agents: agent.agents === '[]' ? [] : await parts.agents.calledBy(agent),
    memory: rightsOfModel(agent.memory, run.job.for_user === 1),
    profileBytes: run.job.for_user === 1 ? (profileOf(agent)?.max_bytes ?? null) : null,
    skills: JSON.parse(agent.skills) as string[],
    approvals: JSON.parse(agent.approvals) as string[],
    rules: rulesOf(agent),
  };
  return new ToolBox(parts.skills.list(agent.organization_id), rights, scopes, wanted);
}

/** A guard's model may call nothing, because the text that it judges may be hostile. */
function toolsWanted({ depth, isGuard }: RunPart, tools: GenerateOptions['tools']) {
  if (isGuard || tools === false) return false;
  return depth < depthMax ? tools : [];
}

/** A guard judges by its own request alone. */
const noInstructions: FilledInstructions = { text: '', end: '' };

function systemOf(
  { text, end }: FilledInstructions,
  { system, schema }: GenerateOptions,
  { offers }: ToolBox,
  profile: string,
): string {
  const form =
    schema === undefined
      ? ''
      : `Answer with JSON that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
  const rule = offers.length === 0 ? '' : resultsRule;
  // What differs by user and by day comes last: a provider's cache of the text before it serves all users.
  return [text, system, rule, form, profile, end].filter((part) => part !== '').join('\n\n');
}

/** The usage that a skill sees. Unreported counts are null; so is a cost of which no part is known. */
function usageOf(costs: readonly PricedCall[]): Generated['usage'] {
  const sum = (counts: readonly (number | null)[]) =>
    counts.reduce((all, tokens) => (all === null || tokens === null ? null : all + tokens), 0);
  const prompt_tokens = sum(costs.map(({ usage }) => usage.prompt));
  const completion_tokens = sum(costs.map(({ usage }) => usage.completion));
  const total_tokens = sum([prompt_tokens, completion_tokens]);
  const isPartial = costs.some(({ usage, cost }) => cost === null || isUnreported(usage));
  const known = costs.reduce((all, { cost }) => all + (cost ?? 0), 0);
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens,
    cost_usd: known === 0 && isPartial ? null : usdOf(known),
    cost_is_partial: isPartial,
  };
}

const isUnreported = ({ prompt, completion }: Usage) => prompt === null || completion === null;
