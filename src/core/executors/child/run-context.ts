/**
 * The `ctx` of a run, in the child: its identity, its signal, its requests to the platform and the skills that it calls.
 * Calls after the end of the run have no effect. The members can be destructured (`const { log } = ctx`).
 */

import { cutToUnits } from '../../../kernel/cut-text.ts';
import { digestOf } from '../../../kernel/digest.ts';
import { inputDigestOf, wholeDigest } from '../../../kernel/input-digest.ts';
import { isObject } from '../../../kernel/json.ts';
import { issuesText } from '../../../kernel/json-schema.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import type { Memory, SkillContext, SkillFiles, SkillMemory } from '../../skills/definition.ts';
import { callDepthMax, noteCharsMax } from '../limits.ts';
import { redacted, redactedValue } from '../redaction.ts';
import { ask } from './asks.ts';
import { createFiles } from './files.ts';
import { createGenerate } from './generate.ts';
import { readOutput } from './output.ts';
import { newPart, type Part, takeNumbers } from './part.ts';
import { recordedStep, type StepIdentity } from './recorded-steps.ts';
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
  let files: SkillFiles | undefined;
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
      return callSkill(part, `${skill}`, input);
    },
    get memory() {
      memory ??= createMemory(part);
      return memory;
    },
    get files() {
      files ??= createFiles(part);
      return files;
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
function createMemory(part: Part, byModel?: { readonly by_model: true }): SkillMemory {
  // What is no object is refused by the parent as it is.
  const asked = <T>(given: T) =>
    byModel !== undefined && isObject(given) ? { ...given, ...byModel } : given;
  return {
    remember: (memory) => ask(part, 'remember', asked(memory)) as Promise<Memory>,
    recall: (wanted = {}) => ask(part, 'recall', asked(wanted)) as Promise<Memory[]>,
    forget: (id) => ask(part, 'forget', byModel ? { id, ...byModel } : id) as Promise<boolean>,
    profile: () => ask(part, 'profile', null) as Promise<string>,
    updateProfile: async (content) =>
      void (await ask(part, 'update_profile', { content, ...byModel })),
    get asModel() {
      return createMemory(part, { by_model: true });
    },
  };
}

/**
 * Runs the skill inside the run of `caller`, and returns its output. A call is a step of the run: it is recorded before
 * it begins, and its output before the call resolves. A call that an earlier attempt finished is not made again.
 */
async function callSkill(caller: Part, name: string, input: unknown): Promise<unknown> {
  // A skill that no executor has loaded may be one of a service outside, which the platform calls.
  const skill = caller.platform.skills.get(name);
  const copy: unknown = JSON.parse(JSON.stringify(input) ?? 'null');
  const issues = skill?.validateInput(copy) ?? null;
  if (issues !== null) {
    throw permanentError(`the input of ${name} breaks its schema: ${issuesText(issues)}`);
  }
  // Without secrets, so that the call is the same once a secret was replaced.
  const fullDigest = inputDigestOf(redactedValue(caller.run, copy));
  const digest = wholeDigest(fullDigest);
  // Numbered among equal calls, so that calls with other inputs may come in any order.
  const nth = takeNumbers(counterOf(caller), `${name} ${digest}`);
  const wanted: StepIdentity = { kind: 'skill', name, digest: fullDigest, nth };
  return recordedStep(caller, wanted, {
    async execute(step, settings) {
      if (skill === undefined) {
        return JSON.stringify(await ask(caller, 'call-remote', { skill: name, input: copy }, step));
      }
      const path = `${caller.path}/${digestOf(JSON.stringify([name, digest, nth]))}`;
      const { run, platform, depth } = caller;
      const part = newPart({ run, platform, depth: depth + 1, step, path }, settings);
      const value = await skill.run(copy, createContext(part));
      const output = readOutput(value, skill.validateOutput);
      if ('failure' in output) throw permanentError(`${name} failed: ${output.failure.message}`);
      return output.json;
    },
    // The call's own error, with its class and its fields.
    failed: (thrown) => thrown,
  });
}
