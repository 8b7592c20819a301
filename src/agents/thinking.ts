/**
 * Thinking: answers a run's request to its agent's model. It determines the agent, the model and its
 * tools, the history of the conversation and the recorded part of the generation, then runs the loop. A
 * model gets only the tools that both the agent's patterns and the API key's scopes allow.
 */
import type { Conversations } from '../conversations/conversations.ts';
import { isUnavailable, notFound, PlatformError } from '../kernel/errors.ts';
import type { DialogueMessage, Models, Usage } from '../models/model.ts';
import type { Generated } from '../skills/definition.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { AgentRow } from './agents.store.ts';
import { asHistory, tokensOfText } from './dialogue.ts';
import { createEstimates } from './estimates.ts';
import {
  type GenerateOptions,
  type GenerateRequest,
  generationIdOf,
  readGenerateRequest,
} from './generate-request.ts';
import type { Journal } from './journal.ts';
import { LoopError, runLoop } from './loop.ts';
import { createModelCalls, type Generation, type ThinkingReport } from './model-calls.ts';
import type { CallCost, PlannedTool, RecordedGeneration } from './recorded-generation.ts';
import { callLimits, createRunBounds } from './run-bounds.ts';
import type { RunPart } from './run-part.ts';
import type { ThinkingJob } from './step-rows.ts';
import { ThinkingError } from './thinking-error.ts';
import { createToolRuns, type ToolSurroundings } from './tool-runs.ts';
import { toolBox } from './tools.ts';

/** Nesting of tools: deeper parts are offered no skills. */
const depthMax = 3;
/** The newest messages of earlier runs that are read; those that do not fit are left out later. */
const historyBounds = { limit: 400, bytesMax: 4 * 1024 * 1024 };

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
  /** Whether the run made any request. */
  readonly hasThought: boolean;
  /** The model's last answer in the conversation's dialogue, null without one. */
  readonly answer: string | null;
  /** The delay that a provider asks for before a retry, else null. */
  readonly retryAfterMs: number | null;
}

export type Thinking = (surroundings: RunSurroundings) => RunThinking;

export function createThinking(parts: {
  agents: { findSince(organizationId: string, id: string, at: number): Promise<AgentRow> };
  skills: Pick<SkillRegistry, 'list'>;
  conversations: Pick<Conversations, 'dialogue'>;
  models: Models;
  /**
   * The scopes of a key; undefined when it is revoked or has expired. Called before each call of a model
   * and each tool, so it should answer from memory.
   */
  scopesOf(apiKeyId: string): Promise<readonly string[] | undefined>;
  /** A file of a skill written as prose; undefined when there is no such skill. */
  readFile(
    skill: string,
    path: unknown,
    offset: unknown,
  ): Promise<{ text: string } | { error: string }>;
  /** The model of agents without one of their own; null when not configured. */
  defaultModel: string | null;
  limits: ThinkingLimits;
}): Thinking {
  const { agents, skills, conversations, models, scopesOf, readFile } = parts;
  const { defaultModel, limits } = parts;

  async function agentOf({ organization_id, agent_id, created_at }: ThinkingJob) {
    try {
      return await agents.findSince(organization_id, agent_id, created_at);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'not_found') throw error;
      throw new ThinkingError('skill_execution_failed', notFound(`Agent ${agent_id}`).message);
    }
  }

  /** The scopes of the key that a job runs for; refuses a key that was revoked or has expired. */
  async function requireScopes({ api_key_id }: ThinkingJob): Promise<readonly string[]> {
    const scopes = await scopesOf(api_key_id);
    if (scopes !== undefined) return scopes;
    throw new ThinkingError(
      'skill_execution_failed',
      'The API key that this job runs for is revoked or expired: it may ask no model and call no tool',
    );
  }

  /** The messages of the conversation before this job, oldest first. */
  async function historyOf(
    job: ThinkingJob,
    say: RunSurroundings['say'],
  ): Promise<DialogueMessage[]> {
    const { conversation_id, id } = job;
    const { messages, isCut } = await conversations.dialogue(conversation_id, id, historyBounds);
    if (isCut) {
      const message = `Earlier messages of the conversation were left out: only the newest ${messages.length} are looked at`;
      say({ type: 'log', data: { message } });
    }
    return asHistory(
      messages.map(({ content, data, task_field }) =>
        data === null
          ? { role: 'user' as const, text: taskOf(content, task_field) }
          : (JSON.parse(data) as DialogueMessage),
      ),
    );
  }

  const estimates = createEstimates();

  return (surroundings) => {
    const { job, journal, say } = surroundings;
    const underWay = new Set<Promise<unknown>>();
    const state = {
      hasThought: false,
      answer: null as string | null,
      retryAfterMs: null as number | null,
    };
    const bounds = createRunBounds({ tokensMax: limits.tokensMax, ...callLimits });
    const calls = createModelCalls({
      models,
      journal,
      say,
      yieldSlot: surroundings.yieldSlot,
      requireKey,
      bounds,
      estimates,
      onRetryAfter(ms) {
        state.retryAfterMs = ms;
      },
    });

    /** Rejects when the key is no longer valid. Passes when the database is unavailable. */
    async function requireKey(): Promise<void> {
      try {
        await requireScopes(job);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      }
    }

    async function think(
      asked: GenerateRequest,
      part: RunPart,
      signal: AbortSignal,
    ): Promise<Generated> {
      state.hasThought = true;
      const { request, corrections } = asked;
      const agent = await agentOf(job);
      const model = modelOf(agent, defaultModel);
      const scopes = await requireScopes(job);
      const wanted = {
        tools: part.depth < depthMax || request.tools === false ? request.tools : [],
        files: request.files !== undefined,
      };
      const patterns = JSON.parse(agent.skills) as string[];
      const box = toolBox(skills.list(), patterns, scopes, wanted);
      if (box.leftOut > 0) {
        const message = `${box.leftOut} skills are not offered as tools: there are too many`;
        say({ type: 'log', data: { message } });
      }
      const isDialogue = request.continues && part.depth === 0;
      const history = isDialogue ? withoutRepeat(await historyOf(job, say), request.prompt) : [];
      const id = generationIdOf(part.path, asked);
      const recorded = await journal.recorded(id, model);
      if (recorded.memory.length > 0 && corrections.length === 0) {
        await surroundings.memory().restore(recorded.memory);
        for (const change of recorded.memory) part.note(change);
      }
      const costs = [...recorded.costs];
      if (corrections.length === 0) recorded.costs.forEach(bounds.count);
      const system = systemOf(agent, request);
      const generation: Generation = {
        id,
        parent: part.step,
        organizationId: job.organization_id,
        model,
        system,
        offers: box.offers,
        schema: request.schema,
        temperature: request.temperature,
        output: Math.min(request.maxOutputTokens ?? limits.outputTokens, limits.outputTokens),
        window: limits.contextTokens,
        task: history.length,
        isDialogue,
        overhead: tokensOfText(system) + tokensOfText(JSON.stringify([box.offers, request.schema])),
        signal,
        unanswered: new Map(recorded.unanswered),
        nameOf: box.nameOf,
        onCost: (cost) => void costs.push(cost),
      };
      const tools = createToolRuns({
        journal,
        requireKey,
        surroundings: {
          ...surroundings,
          readFile: (path, offset) => readFile(request.files ?? '', path, offset),
        },
        box,
        part,
        generation: id,
        isDialogue,
        signal,
        say,
      });
      const planned = new Map<string, PlannedTool>();
      const result = await loop({ generation, history, recorded, planned, tools, asked });
      if (isDialogue) state.answer = result.text;
      return { ...result, usage: usageOf(costs) };
    }

    async function loop(of: {
      generation: Generation;
      history: readonly DialogueMessage[];
      recorded: RecordedGeneration;
      planned: Map<string, PlannedTool>;
      tools: ReturnType<typeof createToolRuns>;
      asked: GenerateRequest;
    }) {
      const { generation, history, recorded, planned, tools, asked } = of;
      const { request, corrections } = asked;
      const task: DialogueMessage = { role: 'user', text: request.prompt };
      /** Tool results that are being recorded. */
      const records: Promise<void>[] = [];

      /** Restarts a recorded tool that has not answered. */
      async function restartTool(callId: string): Promise<PlannedTool> {
        const tool = recorded.open.get(callId);
        if (tool === undefined) throw new Error(`no step for the tool call ${callId}`);
        await journal.restartTool(tool);
        return tool;
      }

      try {
        return await runLoop(
          {
            async ask(messages, turn) {
              await requireScopes(job);
              const ready = Promise.all(records.splice(0)).then(() => {});
              // A call that is refused before it begins does not await `ready`.
              ready.catch(() => {});
              records.push(ready);
              const answer = await calls.ask(generation, messages, turn, ready);
              for (const tool of answer.tools) planned.set(tool.call.id, tool);
              return answer;
            },
            async runTool(call) {
              const run = await tools.run(planned.get(call.id) ?? (await restartTool(call.id)));
              records.push(run.recorded);
              // The next call awaits it, and so does the end of the loop.
              run.recorded.catch(() => {});
              return run.message;
            },
          },
          {
            messages: [...history, task, ...recorded.messages],
            task: history.length,
            turns: recorded.turns,
            corrections,
          },
          Math.min(request.maxTurns ?? limits.turnsMax, limits.turnsMax),
        );
      } catch (error) {
        if (!(error instanceof LoopError)) throw error;
        throw new ThinkingError('skill_execution_failed', error.message);
      } finally {
        await Promise.allSettled(records);
      }
    }

    return {
      generate(payload, part, signal) {
        const result = Promise.resolve().then(() =>
          think(readGenerateRequest(payload), part, signal),
        );
        const done = result.catch(() => {}).then(() => void underWay.delete(done));
        underWay.add(done);
        return result;
      },

      async ended() {
        while (underWay.size > 0) await Promise.all(underWay);
      },

      get hasThought() {
        return state.hasThought;
      },
      get answer() {
        return state.answer;
      },
      get retryAfterMs() {
        return state.retryAfterMs;
      },
    };
  };
}

function modelOf({ id, model }: AgentRow, defaultModel: string | null): string {
  const name = model ?? defaultModel;
  if (name !== null) return name;
  throw new ThinkingError(
    'missing_credentials',
    `The agent ${id} has no model: set its model to provider/model, or DEFAULT_MODEL for all agents`,
  );
}

function systemOf({ instructions }: AgentRow, { system, schema }: GenerateOptions): string {
  const form =
    schema === undefined
      ? ''
      : `Answer with JSON that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
  return [instructions, system, form].filter((part) => part !== '').join('\n\n');
}

/** The history without unanswered messages at its end that equal the task, as of a repeated job. */
function withoutRepeat(history: DialogueMessage[], task: string): DialogueMessage[] {
  const end = history.findLastIndex(({ role, text }) => role !== 'user' || text !== task);
  return history.slice(0, end + 1);
}

/** The usage that a skill sees; null where a count was not reported. */
function usageOf(costs: readonly CallCost[]): Generated['usage'] {
  const sum = (part: keyof Usage) =>
    costs.reduce<number | null>((all, { usage }) => {
      const tokens = usage[part];
      return all === null || tokens === null ? null : all + tokens;
    }, 0);
  const prompt = sum('prompt');
  const completion = sum('completion');
  const total = prompt === null || completion === null ? null : prompt + completion;
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total };
}

/** The task of an earlier run: the field of its input that its skill names, else the whole input. */
function taskOf(input: string, field: string | null): string {
  if (field === null) return input;
  try {
    const task = (JSON.parse(input) as Record<string, unknown>)[field];
    return typeof task === 'string' ? task : input;
  } catch {
    return input;
  }
}
