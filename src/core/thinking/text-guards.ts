/**
 * Runs the guards of an agent on the texts of a request to its model. Each guard is a step of the job, begun before its skill
 * runs and ended with its verdict, so that a repeated attempt takes the verdict from the record where the same guard would be
 * given the same text. What a guard's own calls of the model cost is charged as for a tool. A guard that fails ends the attempt, unless its agent lets texts pass then.
 */
import { digestOf } from '../../kernel/digest.ts';
import { isObject } from '../../kernel/json.ts';
import { cleanText } from '../../kernel/text.ts';
import {
  type Guard,
  type GuardAction,
  type GuardStage,
  type GuardVerdict,
  guardActions,
  guardInput,
  type TextToGuard,
} from '../agents/guards.ts';
import { runToolSkill } from '../jobs/runs/tool-run.ts';
import type { StepFailure } from '../journal/journal-steps.ts';
import { guardPart, type RunPart } from '../journal/run-part.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import { type Skill, skillKeyParts } from '../skills/registry.ts';
import { log, type ThinkingAttempt } from './attempt.ts';
import { beginGuard, endGuard, findReplacement } from './guard-records.ts';
import { stopped, ThinkingError, type ThinkingErrorCode } from './thinking-error.ts';

/** Characters of a text that guards are given. */
const textMax = 1_000_000;
const noVerdict = 'Its output is no verdict';
const tooLong = `A text for a guard may have ${textMax} characters`;
/** Bytes of JSON of a text that a guard gives: those of an answer, which the output of a job has to hold. */
const replacementBytesMax = 1_000_000;
const reasonMax = 300;

/** A text of a generation, for its guards. */
export interface GuardedText extends TextToGuard {
  /** Its place in the generation, the same in every attempt. */
  readonly key: string;
  /** The step in which it resulted. */
  readonly parent: number | null;
}

export type Judged =
  | { readonly kind: 'passed'; readonly text: string; readonly isReplaced: boolean }
  | { readonly kind: 'refused'; readonly reason: string };

/** A text that is left out, since a guard has failed; `isForNow` where it may not fail later. */
interface Unjudged {
  readonly kind: 'unjudged';
  readonly isForNow: boolean;
}

/** A guard on record. */
export interface GuardStep {
  readonly n: number;
  /** Its number, the key of its text, and a digest of what it was and of what it was given. */
  readonly call_id: string | null;
  readonly verdict: GuardVerdict | null;
}

/** What a guard has said about a text. */
interface Verdict {
  readonly action: GuardAction | null;
  readonly reason: string | null;
  /** In place of the one that it was given. */
  readonly text?: string;
}
type Outcome = Verdict | { readonly error: StepFailure };

/** The generation whose texts are guarded. */
interface GuardedGeneration {
  readonly attempt: ThinkingAttempt;
  readonly id: string;
  readonly part: RunPart;
  readonly signal: AbortSignal;
}

export class TextGuards {
  readonly #of: GuardedGeneration;
  readonly #guards: readonly Guard[];
  readonly #recorded: ReadonlyMap<string | null, GuardStep>;
  /** What has become of texts that may be left out, by key: a message that steers the run comes again until it is taken. */
  readonly #known = new Map<string, Judged | Unjudged>();
  /** The turn that guards are recorded with. */
  turn: number;

  constructor(
    of: GuardedGeneration,
    guards: readonly Guard[],
    { guards: recorded, turns }: { readonly guards: readonly GuardStep[]; readonly turns: number },
  ) {
    this.#of = of;
    this.#guards = of.part.isGuard ? [] : guards;
    this.#recorded = new Map(recorded.map((step) => [step.call_id, step]));
    this.turn = turns;
  }

  /** Whether a text of this kind has a guard. What a tool asks the model is no message of the user. */
  judges(on: GuardStage): boolean {
    if (on === 'message' && this.#of.part.depth > 0) return false;
    return this.#guards.some((guard) => guard.on.includes(on));
  }

  /** Has the guards judge a text, in their order. Rejects with a ThinkingError where one fails. */
  async judge(given: GuardedText, within: WaitScope): Promise<Judged> {
    if (!this.judges(given.on)) return { kind: 'passed', text: given.text, isReplaced: false };
    const scope = within.open();
    try {
      return await this.#judge(given, scope);
    } finally {
      scope.close();
    }
  }

  /**
   * As `judge`, for a text without which the run goes on: unjudged, and a line in its log, where no further attempt could
   * judge it, or none is to be spent on it.
   */
  async judgeIfPossible(given: GuardedText, within: WaitScope, what: string, mayRepeat = true) {
    const known = this.#known.get(given.key);
    if (known !== undefined) return known;
    const judged = await this.judge(given, within).catch((error: unknown): Unjudged => {
      const { attempt } = this.#of;
      const { job } = attempt.run;
      if (!(error instanceof ThinkingError) || error.code !== 'guard_failed') throw error;
      if (error.retryable && mayRepeat && job.attempt < job.max_attempts) throw error;
      log(attempt, `${what} was left out: ${error.message}`);
      return { kind: 'unjudged', isForNow: error.retryable };
    });
    this.#known.set(given.key, judged);
    return judged;
  }

  async #judge(given: GuardedText, scope: WaitScope): Promise<Judged> {
    let { text } = given;
    // The run goes on without it, as the model can ask for less.
    if (given.on === 'tool_result' && text.length > textMax)
      return { kind: 'refused', reason: tooLong };
    for (const [i, guard] of this.#guards.entries()) {
      if (!guard.on.includes(given.on)) continue;
      const key = `${i}/${given.key}/${digestOf(JSON.stringify([guard, text]))}`;
      const verdict = await this.#verdictOf(guard, { ...given, text }, { key, scope });
      if (verdict.action === 'refuse') {
        return { kind: 'refused', reason: verdict.reason ?? `${guard.skill} refuses it` };
      }
      text = verdict.text ?? text;
    }
    return { kind: 'passed', text, isReplaced: text !== given.text };
  }

  /** The verdict on record, else that of the guard now. */
  async #verdictOf(
    guard: Guard,
    given: GuardedText,
    { key, scope }: { key: string; scope: WaitScope },
  ): Promise<Verdict> {
    const known = this.#recorded.get(key);
    if (known === undefined) return this.#run(guard, given, { key, left: null, scope });
    const recorded = await this.#recordedVerdict(known);
    return recorded ?? this.#run(guard, given, { key, left: known.n, scope });
  }

  /** The verdict of an earlier claim; null where it has none. */
  async #recordedVerdict({ n, verdict }: GuardStep): Promise<Verdict | null> {
    if (verdict === null || verdict.action === null) return null;
    if (verdict.action !== 'replace') return verdict;
    const text = await findReplacement(this.#of.attempt.generations, n);
    return text === null ? null : { ...verdict, text };
  }

  async #run(
    guard: Guard,
    given: GuardedText,
    { key, left, scope }: { key: string; left: number | null; scope: WaitScope },
  ): Promise<Verdict> {
    const { attempt, id: generation } = this.#of;
    const { generations } = attempt;
    const { on, parent, tool = null } = given;
    const { turn } = this;
    const place = { generation, turn, parent, name: guard.skill, key };
    const n = await beginGuard(generations, place, left);
    const part = guardPart(this.#of.part, n, `${generation}/guard/${key}`);
    const outcome = await this.#outcomeOf(guard, given, part, scope);
    const memory = part.changes.list;
    if (!('error' in outcome)) {
      const { text = null, action, reason } = outcome;
      await endGuard(generations, n, { verdict: { on, tool, action, reason }, text, memory });
      return outcome;
    }
    const { error } = outcome;
    const mayPass = error.code !== 'budget_exceeded' && given.text.length <= textMax;
    const passes = guard.on_failure === 'pass' && mayPass;
    const decided = { action: passes ? ('pass' as const) : null, reason: null };
    const verdict = { on, tool, ...decided };
    await endGuard(generations, n, { verdict, text: null, memory, error });
    if (!passes) throw failureOf(guard, error);
    log(attempt, `The guard ${guard.skill} failed, and the text passes: ${error.message}`);
    return decided;
  }

  async #outcomeOf(
    guard: Guard,
    given: GuardedText,
    part: RunPart,
    scope: WaitScope,
  ): Promise<Outcome> {
    const { attempt, signal } = this.#of;
    const { run, parts } = attempt;
    if (given.text.length > textMax) return failed(tooLong);
    const { organization_id } = run.job;
    const skill = parts.skills.findActive(organization_id, ...skillKeyParts(guard.skill));
    if (skill === undefined) return failed(`There is no active skill ${guard.skill}`);
    const input = guardInput(skill, guard, given);
    const fault = faultOf(skill, input);
    if (fault !== null) return failed(fault);
    const call = {
      skill: guard.skill,
      input: JSON.stringify(input),
      isOnce: false,
      wasInterrupted: false,
    };
    const result = await runToolSkill(run, call, part, signal, scope);
    if (result.kind === 'stopped') throw stopped();
    if (result.kind === 'failed') {
      const { code, message, retryable = true } = result;
      return { error: { code, message, retryable } };
    }
    return verdictIn(JSON.parse(result.output));
  }
}

function failed(message: string): { readonly error: StepFailure } {
  return { error: { code: 'output_invalid', message, retryable: false } };
}

/** What is wrong with the input of a skill that has changed since the agent was saved. */
function faultOf(skill: Skill, input: unknown): string | null {
  const [issue] = skill.input.issuesOf(input) ?? [];
  return issue === undefined ? null : `Its input breaks its schema: ${issue.field} ${issue.issue}`;
}

function failureOf({ skill }: Guard, { code, message, retryable }: StepFailure): ThinkingError {
  const named = `The guard ${skill} failed: ${message}`;
  const own: ThinkingErrorCode = code === 'budget_exceeded' ? code : 'guard_failed';
  return new ThinkingError(own, named, own === 'guard_failed' && retryable);
}

function verdictIn(output: unknown): Outcome {
  const { action, text, reason: given } = isObject(output) ? output : {};
  if (!(guardActions as readonly unknown[]).includes(action)) return failed(noVerdict);
  const reason = typeof given === 'string' ? cleanText(given.slice(0, reasonMax)) : null;
  const verdict = { action: action as GuardAction, reason };
  if (action !== 'replace') return verdict;
  if (typeof text !== 'string') return failed(noVerdict);
  const bytes = Buffer.byteLength(JSON.stringify(text));
  if (bytes > replacementBytesMax) {
    return failed(
      `A text that a guard gives may have ${replacementBytesMax} bytes of JSON, and this one has ${bytes}`,
    );
  }
  return { ...verdict, text: cleanText(text) };
}
