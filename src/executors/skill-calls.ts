/**
 * Skills that the code of a run calls. A call is a step of the run: it is recorded before it begins, and
 * its output is recorded before the call resolves. A call that an earlier attempt finished is not made
 * again.
 */
import { createHash } from 'node:crypto';
import { issuesText, type Validate } from '../kernel/json-schema.ts';
import { permanentError } from '../kernel/permanent-error.ts';
import { canonicalJson } from '../kernel/text.ts';
import type { SkillDefinition } from '../skills/definition.ts';
import { describeFailure } from './failure.ts';
import { readOutput } from './output.ts';
import { ask, askJson, createContext, type Part } from './run-context.ts';

/** A skill as the child runs it. */
export interface Runnable {
  readonly run: SkillDefinition['run'];
  readonly validateInput: Validate;
  readonly validateOutput: Validate;
}

export type Skills = ReadonlyMap<string, Runnable>;

/** Runs the skill inside the run of `caller`, and returns its output. */
export async function callSkill(
  skills: Skills,
  caller: Part,
  name: string,
  input: unknown,
): Promise<unknown> {
  const skill = skills.get(name);
  if (skill === undefined) throw permanentError(`there is no skill ${name}`);
  const copy: unknown = JSON.parse(JSON.stringify(input) ?? 'null');
  const issues = skill.validateInput(copy);
  if (issues !== null) {
    throw permanentError(`the input of ${name} breaks its schema: ${issuesText(issues)}`);
  }
  const digest = digestOf(copy);
  const nth = countCall(caller, `${name} ${digest}`);
  const answer = await ask(caller, 'begin-step', { kind: 'skill', name, digest, nth });
  const begun = answer as { step: number } | { output: unknown };
  if ('output' in begun) return begun.output;
  if (caller.run.isOver) throw new Error('this run has ended');
  const part = { ...caller, depth: caller.depth + 1, step: begun.step, calls: new Map() };
  try {
    const value = await skill.run(copy, createContext(part));
    const output = readOutput(value, skill.validateOutput);
    if ('failure' in output) throw permanentError(`${name} failed: ${output.failure.message}`);
    await endStep(part, `"output":${output.json}`);
    return JSON.parse(output.json);
  } catch (error) {
    const { code, message } = describeFailure(error);
    // The caller gets the call's own error, even when it can no longer be recorded.
    await endStep(part, `"error":${JSON.stringify({ code, message })}`).catch(() => {});
    throw error;
  }
}

function endStep(part: Part, outcome: string): Promise<unknown> {
  return askJson(part, 'end-step', `{"step":${part.step},${outcome}}`);
}

/** The ordinal of this call among the equal calls of its caller, from 1. */
function countCall({ calls }: Part, call: string): number {
  const nth = (calls.get(call) ?? 0) + 1;
  calls.set(call, nth);
  return nth;
}

/** Equal for equal inputs, whatever the order of their fields. */
function digestOf(input: unknown): string {
  return createHash('sha256').update(canonicalJson(input)).digest('base64url').slice(0, 22);
}
