/**
 * Thinking: what a run gets when it asks its agent's model. Puts together who asks, with which model
 * and tools, what was said before, and what of it is on record already; then lets the loop run. It
 * grants nothing beyond the agent's tools and the caller's scopes, whatever a model says.
 */
import type { Conversations } from '../conversations/conversations.ts';
import { isUnavailable, notFound, PlatformError } from '../kernel/errors.ts';
import type { DialogueMessage, Models, Usage } from '../models/model.ts';
import type { Generated } from '../skills/definition.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { AgentRow } from './agents.store.ts';
import { createCalls, type Generation, type ThinkingReport } from './calls.ts';
import { asHistory, tokensOfText } from './dialogue.ts';
import { createEstimates } from './estimates.ts';
import { type Asked, generationOf, type ReadRequest, readAsked } from './generate-request.ts';
import type { Journal } from './journal.ts';
import { LoopError, runLoop } from './loop.ts';
import type { CallCost, PlannedTool, RecordedGeneration } from './recorded.ts';
import { callLimits, createRunBounds } from './run-bounds.ts';
import type { Scope } from './scope.ts';
import type { ThinkingJob } from './step-rows.ts';
import { ThinkingError } from './thinking-error.ts';
import { createToolRuns, type ToolSurroundings } from './tool-runs.ts';
import { toolBox } from './tools.ts';

/** Tools inside tools: parts deeper than this are offered no skills. */
const depthMax = 3;
/** Messages of earlier runs that are looked at, the newest; which of them fit is decided later. */
const historyBounds = { limit: 400, bytesMax: 4 * 1024 * 1024 };

/** The bounds of a generation; see the configuration. */
export interface ThinkingLimits {
  readonly turnsMax: number;
  /** Tokens of a whole attempt, reported or estimated, after which no model is asked any more. */
  readonly tokensMax: number;
  readonly outputTokens: number;
  readonly contextTokens: number;
}

/** What thinking needs of the run around it. */
export interface RunSurroundings extends Omit<ToolSurroundings, 'readFile'> {
  readonly job: ThinkingJob;
  /** Of the same claim, shared with all else that the run does. */
  readonly journal: Journal;
  say(report: ThinkingReport): void;
  /** Yields the run's slot to another while it waits for a model; the function takes it back. */
  yieldSlot(): () => void;
}

/** The thinking of one attempt. */
export interface RunThinking {
  /** Answers a question of the run, or of a tool in it. Rejects with a ThinkingError. */
  generate(payload: unknown, scope: Scope, signal: AbortSignal): Promise<Generated>;
  /** Resolves when nothing is under way any more; what is, ends with its signal. */
  ended(): Promise<void>;
  /** Whether any model was asked. */
  readonly hasThought: boolean;
  /** The model's last answer in the dialogue of the conversation, null when it gave none. */
  readonly answer: string | null;
  /** How long a provider wants to be left alone, null when none said so. */
  readonly retryAfterMs: number | null;
}

export type Thinking = (surroundings: RunSurroundings) => RunThinking;

export function createThinking(parts: {
  agents: { findSince(organizationId: string, id: string, at: number): Promise<AgentRow> };
  skills: Pick<SkillRegistry, 'list'>;
  conversations: Pick<Conversations, 'dialogue'>;
  models: Models;
  /**
   * What a key may use; undefined when it is revoked or has expired. Asked before each call of a model
   * and each tool, so it answers mostly from memory.
   */
  scopesOf(apiKeyId: string): Promise<readonly string[] | undefined>;
  /** A file of a skill written as prose; undefined when there is no such skill. */
  readFile(
    skill: string,
    path: unknown,
    offset: unknown,
  ): Promise<{ text: string } | { error: string }>;
  /** Of agents that name none; null when there is none. */
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

  /** What was said in the conversation before this job, oldest first. */
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
      messages.map(({ content, data }) =>
        data === null
          ? { role: 'user' as const, text: taskOf(content) }
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
    const calls = createCalls({
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

    /** A database that is away says nothing about the key: what is done next has to wait for it. */
    async function requireKey(): Promise<void> {
      try {
        await requireScopes(job);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      }
    }

    async function think(asked: Asked, scope: Scope, signal: AbortSignal): Promise<Generated> {
      state.hasThought = true;
      const { request, corrections } = asked;
      const agent = await agentOf(job);
      const model = modelOf(agent, defaultModel);
      const scopes = await requireScopes(job);
      const wishes = {
        tools: scope.depth < depthMax || request.tools === false ? request.tools : [],
        files: request.files !== undefined,
      };
      const patterns = JSON.parse(agent.skills) as string[];
      const box = toolBox(skills.list(), patterns, scopes, wishes);
      if (box.leftOut > 0) {
        const message = `${box.leftOut} skills are not offered as tools: there are too many`;
        say({ type: 'log', data: { message } });
      }
      const isDialogue = request.continues && scope.depth === 0;
      const history = isDialogue ? withoutRepeat(await historyOf(job, say), request.prompt) : [];
      const id = generationOf(scope.path, asked);
      const recorded = await journal.recorded(id, model);
      if (recorded.memory.length > 0 && corrections.length === 0) {
        await surroundings.memory().restore(recorded.memory);
        for (const change of recorded.memory) scope.note(change);
      }
      const costs = [...recorded.costs];
      if (corrections.length === 0) recorded.costs.forEach(bounds.count);
      const system = systemOf(agent, request);
      const generation: Generation = {
        id,
        parent: scope.step,
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
        around: tokensOfText(system) + tokensOfText(JSON.stringify([box.offers, request.schema])),
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
        scope,
        generation: id,
        isDialogue,
        signal,
        say,
      });
      const planned = new Map<string, PlannedTool>();
      const result = await loop({ generation, history, recorded, planned, tools, asked });
      if (isDialogue) state.answer = result.text;
      return { ...result, usage: shownUsage(costs) };
    }

    async function loop(of: {
      generation: Generation;
      history: readonly DialogueMessage[];
      recorded: RecordedGeneration;
      planned: Map<string, PlannedTool>;
      tools: ReturnType<typeof createToolRuns>;
      asked: Asked;
    }) {
      const { generation, history, recorded, planned, tools, asked } = of;
      const { request, corrections } = asked;
      const task: DialogueMessage = { role: 'user', text: request.prompt };
      /** What tools gave, being recorded. */
      const records: Promise<void>[] = [];

      /** A tool that was called before the run broke off, and has not answered. */
      async function again(callId: string): Promise<PlannedTool> {
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
              // A call that is refused before it begins does not wait for it; the end does.
              ready.catch(() => {});
              records.push(ready);
              const answer = await calls.ask(generation, messages, turn, ready);
              for (const tool of answer.tools) planned.set(tool.call.id, tool);
              return answer;
            },
            async runTool(call) {
              const run = await tools.run(planned.get(call.id) ?? (await again(call.id)));
              records.push(run.recorded);
              // Whoever goes on waits for it, and so does the end.
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
      generate(payload, scope, signal) {
        const result = Promise.resolve().then(() => think(readAsked(payload), scope, signal));
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

function systemOf({ instructions }: AgentRow, { system, schema }: ReadRequest): string {
  const form =
    schema === undefined
      ? ''
      : `Answer with JSON that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
  return [instructions, system, form].filter((part) => part !== '').join('\n\n');
}

/** A task that was asked before and never answered, as by the job that this one repeats, is asked once. */
function withoutRepeat(history: DialogueMessage[], task: string): DialogueMessage[] {
  const end = history.findLastIndex(({ role, text }) => role !== 'user' || text !== task);
  return history.slice(0, end + 1);
}

/** As a skill sees what its request cost; null where something was not reported. */
function shownUsage(costs: readonly CallCost[]): Generated['usage'] {
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

/** What the user of an earlier run said, from the input of its job. */
function taskOf(input: string): string {
  try {
    const { task } = JSON.parse(input) as { task?: unknown };
    return typeof task === 'string' ? task : input;
  } catch {
    return input;
  }
}
