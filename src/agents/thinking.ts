/**
 * Thinking: answers a run's request to its agent's model. It determines the agent, the model and its
 * tools, the history of the conversation and the recorded part of the generation, then runs the loop. A
 * model gets only the tools that both the agent's patterns and the API key's scopes allow.
 */
import type { Conversations } from '../conversations/conversations.ts';
import type { Models } from '../models/model.ts';
import type { Generated } from '../skills/definition.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { AgentRow } from './agents.store.ts';
import { type AnsweringDeps, answer } from './answering.ts';
import { tokensOfText } from './dialogue.ts';
import { createEstimates, type Estimates } from './estimates.ts';
import {
  type GenerateOptions,
  type GenerateRequest,
  generationIdOf,
  readGenerateRequest,
} from './generate-request.ts';
import type { Generation, ThinkingReport } from './generation.ts';
import { historyBefore } from './history.ts';
import type { Journal } from './journal.ts';
import type { ModelCaller } from './model-calls.ts';
import type { CallCost } from './recorded-generation.ts';
import { agentOf, modelOf, type RunAgentDeps, requireKey, requireScopes } from './run-agent.ts';
import { callLimits, createRunBounds } from './run-bounds.ts';
import type { RunPart } from './run-part.ts';
import type { ThinkingJob } from './step-rows.ts';
import type { ToolSurroundings } from './tool-runs.ts';
import { type ToolBox, toolBox } from './tools.ts';

/** Nesting of tools: deeper parts are offered no skills. */
const depthMax = 3;

/** The bounds of a generation; see the configuration. */
export interface ThinkingLimits {
  readonly turnsMax: number;
  /** Tokens of a whole attempt, reported or estimated; no model is called beyond them. */
  readonly tokensMax: number;
  readonly outputTokens: number;
  readonly contextTokens: number;
}

/** What thinking needs from its run. */
export interface RunSurroundings extends Omit<ToolSurroundings, 'readFile'> {
  readonly job: ThinkingJob;
  /** The journal of the claim, shared with the run's other steps. */
  readonly journal: Journal;
  say(report: ThinkingReport): void;
  /** Yields the run's slot to another while it waits for a model; the function takes it back. */
  yieldSlot(): () => void;
}

/** The thinking of one attempt. */
export interface RunThinking {
  /** Answers a request of the run, or of a tool within it. Rejects with a ThinkingError. */
  generate(payload: unknown, part: RunPart, signal: AbortSignal): Promise<Generated>;
  /** Resolves when no request is under way. Abort their signals to end them. */
  ended(): Promise<void>;
  /** The model's last answer in the conversation's dialogue, null without one. */
  readonly answer: string | null;
  /** The delay that a provider asks for before a retry, else null. */
  readonly retryAfterMs: number | null;
}

export type Thinking = (surroundings: RunSurroundings) => RunThinking;

export interface ThinkingDeps extends RunAgentDeps {
  readonly skills: Pick<SkillRegistry, 'list'>;
  readonly conversations: Pick<Conversations, 'dialogue'>;
  readonly models: Models;
  readonly limits: ThinkingLimits;
  /** A file of a SKILL.md skill; undefined when there is no such skill. */
  readFile(
    skill: string,
    path: unknown,
    offset: unknown,
  ): Promise<{ text: string } | { error: string }>;
}

/** The thinking of one attempt: what its requests share. */
interface Attempt extends AnsweringDeps {
  readonly deps: ThinkingDeps;
  readonly underWay: Set<Promise<unknown>>;
  answer: string | null;
  retryAfterMs: number | null;
}

export function createThinking(deps: ThinkingDeps): Thinking {
  // Shared by all attempts: the reports on one improve the estimates of the next.
  const estimates = createEstimates();
  return (surroundings) => thinkingOf(deps, estimates, surroundings);
}

function thinkingOf(
  deps: ThinkingDeps,
  estimates: Estimates,
  surroundings: RunSurroundings,
): RunThinking {
  const { job, journal, say, yieldSlot } = surroundings;
  const caller: ModelCaller = {
    models: deps.models,
    journal,
    bounds: createRunBounds({ tokensMax: deps.limits.tokensMax, ...callLimits }),
    estimates,
    say,
    yieldSlot,
    requireKey: () => requireKey(deps, job),
    onRetryAfter(ms) {
      attempt.retryAfterMs = ms;
    },
  };
  const attempt: Attempt = {
    deps,
    surroundings,
    caller,
    underWay: new Set(),
    answer: null,
    retryAfterMs: null,
  };
  return {
    generate: (payload, part, signal) => generate(attempt, payload, part, signal),
    async ended() {
      while (attempt.underWay.size > 0) await Promise.all(attempt.underWay);
    },
    get answer() {
      return attempt.answer;
    },
    get retryAfterMs() {
      return attempt.retryAfterMs;
    },
  };
}

function generate(
  attempt: Attempt,
  payload: unknown,
  part: RunPart,
  signal: AbortSignal,
): Promise<Generated> {
  const { underWay } = attempt;
  const result = Promise.resolve().then(() =>
    think(attempt, readGenerateRequest(payload), part, signal),
  );
  const done = result.catch(() => {}).then(() => void underWay.delete(done));
  underWay.add(done);
  return result;
}

async function think(
  attempt: Attempt,
  asked: GenerateRequest,
  part: RunPart,
  signal: AbortSignal,
): Promise<Generated> {
  const { deps, surroundings, caller } = attempt;
  const { job, journal, say } = surroundings;
  const { request, corrections } = asked;
  const agent = await agentOf(deps, job);
  const model = modelOf(deps, agent);
  const scopes = await requireScopes(deps, job);
  const box = toolsOf(attempt, agent, scopes, request, part);
  const isDialogue = request.continues && part.depth === 0;
  const history = isDialogue
    ? await historyBefore(deps.conversations, job, request.prompt, say)
    : [];
  const id = generationIdOf(part.path, asked);
  const recorded = await journal.recorded(id, model);
  if (recorded.memory.length > 0 && corrections.length === 0) {
    await surroundings.memory().restore(recorded.memory);
    for (const change of recorded.memory) part.note(change);
  }
  const costs = [...recorded.costs];
  if (corrections.length === 0) recorded.costs.forEach(caller.bounds.count);
  const system = systemOf(agent, request);
  const generation: Generation = {
    id,
    parent: part.step,
    call: {
      organizationId: job.organization_id,
      model,
      system,
      tools: box.offers,
      schema: request.schema,
      temperature: request.temperature,
      signal,
    },
    output: Math.min(request.maxOutputTokens ?? Infinity, deps.limits.outputTokens),
    window: deps.limits.contextTokens,
    task: history.length,
    isDialogue,
    overhead: tokensOfText(system) + tokensOfText(JSON.stringify([box.offers, request.schema])),
    unanswered: new Map(recorded.unanswered),
    nameOf: box.nameOf,
    onCost: (cost) => void costs.push(cost),
  };
  const result = await answer(attempt, { generation, history, recorded, asked, box, part });
  if (isDialogue) attempt.answer = result.text;
  return { ...result, usage: usageOf(costs) };
}

/** The tools that a request is offered. */
function toolsOf(
  { deps, surroundings }: Attempt,
  agent: AgentRow,
  scopes: readonly string[],
  request: GenerateOptions,
  part: RunPart,
): ToolBox {
  const wanted = {
    tools: part.depth < depthMax || request.tools === false ? request.tools : [],
    files: request.files !== undefined,
  };
  const patterns = JSON.parse(agent.skills) as string[];
  const box = toolBox(deps.skills.list(), patterns, scopes, wanted);
  if (box.leftOut > 0) {
    const message = `${box.leftOut} skills are not offered as tools: there are too many`;
    surroundings.say({ type: 'log', data: { message } });
  }
  return box;
}

function systemOf({ instructions }: AgentRow, { system, schema }: GenerateOptions): string {
  const form =
    schema === undefined
      ? ''
      : `Answer with JSON that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
  return [instructions, system, form].filter((part) => part !== '').join('\n\n');
}

/** The usage that a skill sees; null where a count was not reported. */
function usageOf(costs: readonly CallCost[]): Generated['usage'] {
  const sum = (counts: readonly (number | null)[]) =>
    counts.reduce((all, tokens) => (all === null || tokens === null ? null : all + tokens), 0);
  const prompt_tokens = sum(costs.map(({ usage }) => usage.prompt));
  const completion_tokens = sum(costs.map(({ usage }) => usage.completion));
  const total_tokens = sum([prompt_tokens, completion_tokens]);
  return { prompt_tokens, completion_tokens, total_tokens };
}
