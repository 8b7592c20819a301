/**
 * The `ctx` of a run, in the child: its identity, its signal and its requests to the platform. Calls after
 * the end of the run have no effect. The members can be destructured (`const { log } = ctx`).
 */
import { cutToUnits } from '../../kernel/cut-text.ts';
import type { Memory, SkillContext, SkillMemory } from '../skills/definition.ts';
import { ask } from './asks.ts';
import { createGenerate } from './generate.ts';
import { callDepthMax, noteCharsMax } from './limits.ts';
import type { Part } from './part.ts';
import { redacted } from './redaction.ts';
import { addLog, addMessage } from './run-reports.ts';
import { signalOf } from './run-signal.ts';
import { makeUuid } from './step-keys.ts';
import { takeSteps } from './step-lists.ts';
import { counterOf } from './step-scope.ts';
import { takeStep } from './steps.ts';
import { approve, runJob, sleep, sleepUntil, waitForEvent } from './waits.ts';

/** The `ctx` of one part of a run. */
export function createContext(part: Part): SkillContext {
  const { run, platform, depth } = part;
  // Made at their first use.
  let memory: SkillMemory | undefined;
  let generate: SkillContext['generate'] | undefined;
  const [jobId, agentId, conversationId, organizationId, attempt] = run.context;
  return {
    jobId,
    agentId,
    conversationId,
    organizationId,
    attempt,
    config: part.config,
    get signal() {
      return signalOf(run);
    },
    log(message, fields) {
      addLog(part, message, fields);
    },
    progress(fraction, note) {
      // The progress of a part is not the progress of the whole.
      if (run.isOver || depth > 0) return;
      const clamped = Math.min(1, Math.max(0, Number(fraction) || 0));
      const text = note === undefined ? null : cutToUnits(redacted(run, `${note}`), noteCharsMax);
      platform.progress.report(run, clamped, text);
    },
    message(role, content) {
      addMessage(part, role, content);
    },
    callSkill(skill, input) {
      if (depth >= callDepthMax) {
        return Promise.reject(new Error(`skills may call skills ${callDepthMax} levels deep`));
      }
      return platform.callSkill(part, `${skill}`, input);
    },
    get memory() {
      memory ??= createMemory(part);
      return memory;
    },
    async generate(request) {
      generate ??= createGenerate(
        (payload) => ask(part, 'generate', payload),
        () => counterOf(part),
      );
      return generate(request);
    },
    step: (name, run, options) => handled(takeStep(part, name, run, options)),
    map: (name, items, run, options) => handled(takeSteps(part, name, items, run, options)),
    sleep: (name, duration) => handled(sleep(part, name, duration)),
    sleepUntil: (name, moment) => handled(sleepUntil(part, name, moment)),
    waitForEvent: (name, wanted) => handled(waitForEvent(part, name, wanted)),
    approve: (name, request) => handled(approve(part, name, request)),
    run: (name, skill, input) => handled(runJob(part, name, skill, input)),
    now: () => new Date(run.now),
    uuid: () => makeUuid(part),
  };
}

/**
 * A step or wait that fails while no code awaits it does not end the run: its failure is on record, and
 * the code that awaits it later gets it.
 */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** The agent's memory, which the parent keeps: one for the run and all that it calls. */
function createMemory(part: Part): SkillMemory {
  return {
    remember: (memory) => ask(part, 'remember', memory) as Promise<Memory>,
    recall: (wanted = {}) => ask(part, 'recall', wanted) as Promise<Memory[]>,
    forget: (id) => ask(part, 'forget', id) as Promise<boolean>,
  };
}
