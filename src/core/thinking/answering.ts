/**
 * The loop of a generation, with its journal: a model's turns and its tools are recorded, and a repeated
 * attempt continues after what is on record.
 */
import type { DialogueMessage, ToolMessage, UserMessage } from '../../adapters/models/model.ts';
import type { ActiveGeneration, BegunGeneration } from './attempt.ts';
import type { Compaction } from './compaction.ts';
import { coveredBy } from './compaction-plan.ts';
import type { GenerateRequest } from './generate-request.ts';
import type { Generations } from './generations.ts';
import type { History } from './history.ts';
import { LoopError, type LoopResult, runLoop } from './loop.ts';
import { askModel } from './model-calls.ts';
import type { PlannedTool, RecordedGeneration } from './recorded-generation.ts';
import { releaseAnswer, releaseHeld } from './released.ts';
import { requireScopes } from './run-agent.ts';
import { takeSteering } from './steering.ts';
import { ThinkingError } from './thinking-error.ts';
import { runTool } from './tool-runs.ts';

/** Runs the loop to its answer. Each turn begins in the commit that records the tools before it. */
export async function answer(
  begun: BegunGeneration,
  { request, corrections }: GenerateRequest,
  { history, task }: { readonly history: History; readonly task: UserMessage },
  recorded: RecordedGeneration,
): Promise<LoopResult> {
  const { parts, run, generations } = begun.attempt;
  const { guards } = begun;
  const released = await releaseHeld(begun, recorded);
  const messages: readonly DialogueMessage[] = [...history.messages, task, ...released];
  const active: ActiveGeneration = {
    ...begun,
    results: resultsIn(messages),
    compaction: compactionOf(messages, history, recorded),
  };
  const planned = new Map<string, PlannedTool>();
  /** Tool results that are being recorded. */
  const records: Promise<void>[] = [];
  const turnsMax = Math.min(request.maxTurns ?? Infinity, parts.context.config.agentTurnsMax);
  try {
    return await runLoop(
      { messages, task: history.messages.length, turns: recorded.turns, corrections },
      turnsMax,
      async (dialogue, turn) => {
        await requireScopes(parts, run.job);
        const ready = Promise.all(records.splice(0)).then(() => {});
        // A call that is refused before it begins does not await `ready`.
        ready.catch(() => {});
        records.push(ready);
        const asked = { turn, isLast: turn >= turnsMax };
        guards.turn = turn;
        const { message, tools, step } = await askModel(active, dialogue, asked, ready);
        for (const tool of tools) planned.set(tool.call.id, tool);
        if (message.text === '' || !guards.judges('answer')) return { message };
        return { message: await releaseAnswer(active, step, message) };
      },
      async ({ id }) => {
        // Open the scope before the first await: otherwise the run could be suspended while other tools wait.
        const scope = active.scope.open();
        try {
          const tool = planned.get(id) ?? (await restartTool(generations, recorded, id));
          const { message, isRecorded } = await runTool({ ...active, scope }, tool);
          records.push(isRecorded);
          // The next model call and the end of the loop await the promise and see the rejection.
          isRecorded.catch(() => {});
          return message;
        } finally {
          scope.close();
        }
      },
      (turn) => takeSteering(active, turn, () => Promise.all(records)),
    );
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    throw new ThinkingError('skill_execution_failed', error.message);
  } finally {
    await Promise.allSettled(records);
  }
}

/** The part of the dialogue that is summarized so far. */
function compactionOf(
  messages: readonly DialogueMessage[],
  { messages: earlier, ids, tools }: History,
  { summary }: RecordedGeneration,
): Compaction {
  const covered = summary === null ? 0 : coveredBy(summary, messages, earlier.length, ids);
  return { covered, summary, notBefore: 0, tools: summary?.tools ?? tools, ids };
}

function resultsIn(messages: readonly DialogueMessage[]): Map<string, ToolMessage> {
  const results = messages.filter((message) => message.role === 'tool');
  return new Map(results.map((message) => [message.callId, message]));
}

/** Restarts a recorded tool that has no result. */
async function restartTool(
  generations: Generations,
  { open }: RecordedGeneration,
  callId: string,
): Promise<PlannedTool> {
  const tool = open.get(callId);
  if (tool === undefined) throw new Error(`no step for the tool call ${callId}`);
  await generations.restartTool(tool);
  return tool;
}
