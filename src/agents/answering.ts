/**
 * The loop of a generation, with its journal: a model's turns and its tools are recorded, and a repeated
 * attempt continues after what is on record.
 */
import type { DialogueMessage } from '../models/model.ts';
import type { GenerateRequest } from './generate-request.ts';
import type { Generation } from './generation.ts';
import type { Journal } from './journal.ts';
import { LoopError, type LoopResult, runLoop } from './loop.ts';
import { askModel, type ModelCaller } from './model-calls.ts';
import type { PlannedTool, RecordedGeneration } from './recorded-generation.ts';
import { type RunAgentDeps, requireScopes } from './run-agent.ts';
import type { RunPart } from './run-part.ts';
import type { RunSurroundings, ThinkingDeps } from './thinking.ts';
import { ThinkingError } from './thinking-error.ts';
import { runTool, type ToolRunDeps } from './tool-runs.ts';
import type { ToolBox } from './tools.ts';

/** What the loops of an attempt need. */
export interface AnsweringDeps {
  readonly deps: RunAgentDeps & Pick<ThinkingDeps, 'readFile' | 'limits'>;
  readonly surroundings: RunSurroundings;
  readonly caller: ModelCaller;
}

/** What one generation's loop begins with. */
interface LoopStart {
  readonly generation: Generation;
  readonly history: readonly DialogueMessage[];
  readonly recorded: RecordedGeneration;
  readonly asked: GenerateRequest;
  readonly box: ToolBox;
  readonly part: RunPart;
}

/** Runs the loop to its answer. Each turn begins in the commit that records the tools before it. */
export async function answer(
  { deps, surroundings, caller }: AnsweringDeps,
  start: LoopStart,
): Promise<LoopResult> {
  const { generation, history, recorded, asked, box, part } = start;
  const { request, corrections } = asked;
  const { job, journal, say } = surroundings;
  const tools: ToolRunDeps = {
    journal,
    requireKey: caller.requireKey,
    surroundings: {
      ...surroundings,
      readFile: (path, offset) => deps.readFile(request.files ?? '', path, offset),
    },
    box,
    part,
    generation: generation.id,
    isDialogue: generation.isDialogue,
    signal: generation.call.signal,
    say,
  };
  const planned = new Map<string, PlannedTool>();
  /** Tool results that are being recorded. */
  const records: Promise<void>[] = [];
  try {
    return await runLoop(
      {
        async ask(messages, turn) {
          await requireScopes(deps, job);
          const ready = Promise.all(records.splice(0)).then(() => {});
          // A call that is refused before it begins does not await `ready`.
          ready.catch(() => {});
          records.push(ready);
          const reply = await askModel(caller, generation, messages, turn, ready);
          for (const tool of reply.tools) planned.set(tool.call.id, tool);
          return reply;
        },
        async runTool({ id }) {
          const tool = planned.get(id) ?? (await restartTool(journal, recorded, id));
          const run = await runTool(tools, tool);
          records.push(run.recorded);
          // The next call awaits it, and so does the end of the loop.
          run.recorded.catch(() => {});
          return run.message;
        },
      },
      {
        messages: [...history, { role: 'user', text: request.prompt }, ...recorded.messages],
        task: history.length,
        turns: recorded.turns,
        corrections,
      },
      Math.min(request.maxTurns ?? Infinity, deps.limits.turnsMax),
    );
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    throw new ThinkingError('skill_execution_failed', error.message);
  } finally {
    await Promise.allSettled(records);
  }
}

/** Restarts a recorded tool that has not answered. */
async function restartTool(
  journal: Journal,
  { open }: RecordedGeneration,
  callId: string,
): Promise<PlannedTool> {
  const tool = open.get(callId);
  if (tool === undefined) throw new Error(`no step for the tool call ${callId}`);
  await journal.restartTool(tool);
  return tool;
}
