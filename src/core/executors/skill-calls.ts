/**
 * Skills that the code of a run calls. A call is a step of the run: it is recorded before it begins, and
 * its output is recorded before the call resolves. A call that an earlier attempt finished is not made
 * again.
 */

import { digestOf } from '../../kernel/digest.ts';
import { inputDigestOf, wholeDigest } from '../../kernel/input-digest.ts';
import { issuesText, type Validate } from '../../kernel/json-schema.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import type { SkillDefinition } from '../skills/definition.ts';
import { ask } from './asks.ts';
import { readOutput } from './output.ts';
import { newPart, type Part, takeNumbers } from './part.ts';
import { recordedStep, type StepIdentity } from './recorded-steps.ts';
import { redactedValue } from './redaction.ts';
import { createContext } from './run-context.ts';
import { counterOf } from './step-scope.ts';

/** A skill as the child runs it. */
export interface Runnable {
  readonly run: SkillDefinition['run'];
  readonly validateInput: Validate;
  readonly validateOutput: Validate;
}

export type Skills = Pick<ReadonlyMap<string, Runnable>, 'get'>;

/** Runs the skill inside the run of `caller`, and returns its output. */
export async function callSkill(
  skills: Skills,
  caller: Part,
  name: string,
  input: unknown,
): Promise<unknown> {
  // A skill that no executor has loaded may be one of a service outside, which the platform calls.
  const skill = skills.get(name);
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
