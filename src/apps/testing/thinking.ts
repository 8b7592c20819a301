/**
 * The thinking of a test: a model's answers come from its script. Each request is a step in the journal of its job, and
 * the skills that a model calls run as they do on a platform.
 */
import {
  type Attempt,
  journalOf,
  memoryOf,
  recordingOf,
  remember,
} from '../../core/jobs/runs/attempt.ts';
import { refusalOf } from '../../core/jobs/runs/called-skills.ts';
import type { RunThinking, Thinking } from '../../core/jobs/runs/thinking.ts';
import { runToolSkill } from '../../core/jobs/runs/tool-run.ts';
import { innerPart, type RunPart } from '../../core/journal/run-part.ts';
import type { WaitScope } from '../../core/journal/wait-scope.ts';
import type { Generated } from '../../core/skills/definition.ts';
import { generationIdOf, readGenerateRequest } from '../../core/thinking/generate-request.ts';
import { inputDigestOf } from '../../kernel/input-digest.ts';
import { issuesText } from '../../kernel/json-schema.ts';
import { answerModel, type CallTool, type Dialogue, StoppedError } from './models.ts';
import { failureOf, type Script } from './script.ts';
import type { StandIns } from './stand-ins.ts';
import { ScriptError } from './types.ts';

/** The name of the steps in which models are asked. */
export const generateStep = 'generate';

export class ScriptedThinking implements Thinking {
  readonly script: Script;
  readonly standIns: StandIns;
  /** Requests that have begun, by their key: a run that goes on after a wait of a tool does not ask again. */
  readonly dialogues = new Map<string, Dialogue>();

  constructor(script: Script, standIns: StandIns) {
    this.script = script;
    this.standIns = standIns;
  }

  begin(run: Attempt): RunThinking {
    return new ScriptedRunThinking(this, run);
  }
}

class ScriptedRunThinking implements RunThinking {
  readonly answer = null;
  readonly retryAfterMs = null;
  readonly #thinking: ScriptedThinking;
  readonly #run: Attempt;

  constructor(thinking: ScriptedThinking, run: Attempt) {
    this.#thinking = thinking;
    this.#run = run;
  }

  /** What a request records is among the run's recordings. */
  async ended(): Promise<void> {}

  async generate(
    payload: unknown,
    part: RunPart,
    signal: AbortSignal,
    scope: WaitScope,
  ): Promise<Generated> {
    const { job } = this.#run;
    const journal = journalOf(this.#run);
    const { script, dialogues } = this.#thinking;
    const asked = readGenerateRequest(payload);
    const { request, corrections } = asked;
    // Each correction is a request of its own.
    const key = `${generationIdOf(part.path, asked)}:${corrections.length}`;
    const nth = asked.nth + corrections.length;
    const place = {
      key,
      name: generateStep,
      parent: part.step,
      digest: inputDigestOf(request),
      nth,
    };
    const recording = recordingOf(this.#run);
    const { n, recorded } = await remember(
      recording,
      journal.beginStep({ ...place, kind: 'skill' }, async () => {}),
    );
    if (recorded !== undefined) {
      if ('error' in recorded) throw Object.assign(new Error(), recorded.error);
      if (recorded.memory.length > 0) await memoryOf(this.#run).restore(recorded.memory);
      part.changes?.add(...recorded.memory);
      return (JSON.parse(recorded.result) as { output: Generated }).output;
    }
    const inner = innerPart(part, n, key, part.depth);
    const known = `${job.id}/${key}`;
    const dialogue = dialogues.get(known) ?? { turns: [] };
    dialogues.set(known, dialogue);
    const end = async (result: Parameters<typeof journal.endStep>[1]) => {
      // The database may be closed once the run has ended.
      if (signal.aborted) throw new StoppedError();
      dialogues.delete(known);
      const records = await journal.records();
      const ended = { key, kind: 'skill', n, place: records.nextEnd++ } as const;
      await remember(recording, journal.endStep(ended, result));
    };
    try {
      const prompt = corrections.at(-1) ?? request.prompt;
      const tool: CallTool = (skill, input, path) =>
        this.#callTool({ skill, input, part: innerPart(inner, n, path), signal, scope });
      const output = await answerModel({ script, tool }, { ...request, prompt }, dialogue);
      await end({ result: JSON.stringify({ output }), memory: inner.changes.list });
      return output;
    } catch (error) {
      if (!(error instanceof ScriptError) && !(error instanceof StoppedError)) {
        await end({ error: failureOf(error) });
      }
      throw error;
    }
  }

  async #callTool({ skill, input, part, signal, scope: outer }: ToolCall): Promise<unknown> {
    // Opened before the first await: otherwise the run could be unloaded while other tools wait.
    const scope = outer.open();
    try {
      const issues = this.#thinking.standIns.find('a tool call', skill).validateInput(input);
      if (issues !== null) {
        const message = `the input breaks the skill's schema: ${issuesText(issues)}`;
        throw Object.assign(new Error(message), { code: 'validation_error' });
      }
      const refusal = await refusalOf(this.#run, skill);
      if (refusal !== null) throw Object.assign(new Error(), refusal);
      const call = { skill, input: JSON.stringify(input), isOnce: false, wasInterrupted: false };
      const result = await runToolSkill(this.#run, call, part, signal, scope);
      if (result.kind === 'stopped') throw new StoppedError();
      if (result.kind === 'failed') throw Object.assign(new Error(), result);
      return JSON.parse(result.output);
    } finally {
      scope.close();
    }
  }
}

interface ToolCall {
  readonly skill: string;
  readonly input: unknown;
  readonly part: RunPart;
  readonly signal: AbortSignal;
  readonly scope: WaitScope;
}
