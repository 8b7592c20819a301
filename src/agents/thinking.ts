/**
 * Thinking: answers a run's request to its agent's model. It determines the agent, the model and its
 * tools, the history of the conversation and the recorded part of the generation, then runs the loop. A
 * model gets only the tools that both the agent's patterns and the API key's scopes allow.
 */

import type { RunPart } from '../journal/run-part.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import type { Generated } from '../skills/definition.ts';
import type { AgentRow } from './agents.store.ts';
import { answer } from './answering.ts';
import { log, type RunSurroundings, type ThinkingAttempt, type ThinkingDeps } from './attempt.ts';
import { tokensOfText } from './dialogue.ts';
import { createEstimates } from './estimates.ts';
import {
  type GenerateOptions,
  type GenerateRequest,
  generationIdOf,
  readGenerateRequest,
} from './generate-request.ts';
import type { Generation } from './generation.ts';
import { historyBefore } from './history.ts';
import type { CallCost } from './recorded-generation.ts';
import { agentOf, modelOf, requireScopes } from './run-agent.ts';
import { callLimits, createRunBounds } from './run-bounds.ts';
import { type ToolBox, toolBox } from './tools.ts';

/** Nesting of tools: deeper parts are offered no skills. */
const depthMax = 3;

/** The thinking of one attempt. */
export interface RunThinking {
  /** Answers a request of the run, or of a tool within it. Rejects with a ThinkingError. */
  generate(
    payload: unknown,
    part: RunPart,
    signal: AbortSignal,
    scope: WaitScope,
  ): Promise<Generated>;
  /** Resolves when no request is under way. Abort their signals to end them. */
  ended(): Promise<void>;
  /** The model's last answer in the conversation's dialogue, null without one. */
  readonly answer: string | null;
  /** The delay that a provider asks for before a retry, else null. */
  readonly retryAfterMs: number | null;
}

export type Thinking = ReturnType<typeof createThinking>;

export function createThinking(deps: ThinkingDeps) {
  // Shared by all attempts: the reports on one improve the estimates of the next.
  const estimates = createEstimates();
  return (run: RunSurroundings): RunThinking => {
    const attempt: ThinkingAttempt = {
      deps,
      run,
      bounds: createRunBounds({ tokensMax: deps.limits.tokensMax, ...callLimits }),
      estimates,
      underWay: new Set(),
      answer: null,
      retryAfterMs: null,
    };
    return {
      generate: (...asked) => generate(attempt, ...asked),
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
  };
}

function generate(
  attempt: ThinkingAttempt,
  payload: unknown,
  part: RunPart,
  signal: AbortSignal,
  scope: WaitScope,
): Promise<Generated> {
  const { underWay } = attempt;
  const result = Promise.resolve().then(() =>
    think(attempt, readGenerateRequest(payload), part, signal, scope),
  );
  const done = result.catch(() => {}).then(() => void underWay.delete(done));
  underWay.add(done);
  return result;
}

async function think(
  attempt: ThinkingAttempt,
  asked: GenerateRequest,
  part: RunPart,
  signal: AbortSignal,
  scope: WaitScope,
): Promise<Generated> {
  const { deps, run, bounds } = attempt;
  const { request, corrections } = asked;
  const agent = await agentOf(deps, run.job);
  const model = modelOf(deps, agent);
  const scopes = await requireScopes(deps, run.job);
  const box = toolsOf(attempt, agent, scopes, request, part);
  const isDialogue = request.continues && part.depth === 0;
  const history = isDialogue ? await historyBefore(attempt, request.prompt) : [];
  const id = generationIdOf(part.path, asked);
  const recorded = await run.journal.recorded(id, model);
  if (recorded.memory.length > 0 && corrections.length === 0) {
    await run.memory().restore(recorded.memory);
    recorded.memory.forEach(part.note);
  }
  const costs = [...recorded.costs];
  if (corrections.length === 0) recorded.costs.forEach(bounds.count);
  const system = systemOf(agent, request);
  const generation: Generation = {
    id,
    parent: part.step,
    call: {
      organizationId: run.job.organization_id,
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
    files: request.files ?? '',
    onCost: (cost) => void costs.push(cost),
  };
  const asking = { attempt, generation, part, box, scope };
  const result = await answer(asking, asked, history, recorded);
  if (isDialogue) attempt.answer = result.text;
  return { ...result, usage: usageOf(costs) };
}

/** The tools that a request is offered. */
function toolsOf(
  attempt: ThinkingAttempt,
  agent: AgentRow,
  scopes: readonly string[],
  request: GenerateOptions,
  part: RunPart,
): ToolBox {
  const wanted = {
    tools: part.depth < depthMax || request.tools === false ? request.tools : [],
    files: request.files !== undefined,
  };
  const patterns = {
    skills: JSON.parse(agent.skills) as string[],
    approvals: JSON.parse(agent.approvals) as string[],
  };
  const box = toolBox(attempt.deps.skills.list(), patterns, scopes, wanted);
  if (box.leftOut > 0) {
    log(attempt, `${box.leftOut} skills are not offered as tools: there are too many`);
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
