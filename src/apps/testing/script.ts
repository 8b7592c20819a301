/** The script of a test: what answers the requests of a run. Each answer is given once, in order. */
import { readDuration } from '../../core/executors/child/durations.ts';
import type { StepFailure } from '../../core/journal/journal-steps.ts';
import type { GenerateRequest, SkillDefinition } from '../../core/skills/definition.ts';
import { timestamp } from '../../kernel/clock.ts';
import { answerIssues, type Form } from '../../kernel/form.ts';
import { isObject, type Json } from '../../kernel/json.ts';
import { issuesText } from '../../kernel/json-schema.ts';
import {
  type AskedApproval,
  type RunSkillOptions,
  ScriptError,
  type ScriptedDecision,
  type ScriptedEvent,
  type ToolResult,
} from './types.ts';

const textCharsMax = 120;

/** How a wait is going to end. */
export interface WaitEnding {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly value: unknown;
}

/** The script of one test, and what its runs have taken of it. */
export class Script {
  readonly options: RunSkillOptions;
  /** When the run started, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** Aborts when the test has to end. */
  readonly signal: AbortSignal;
  readonly requests: GenerateRequest[] = [];
  readonly toolCalls: ToolResult[] = [];
  readonly taken = new Set<ScriptedEvent>();
  /** How often each approval was asked. */
  readonly asked = new Map<string, number>();
  /** Why there is no result: the first request without an answer, also if the skill has caught its error. */
  fault: Error | undefined;
  /** The loaded jobs of which everything waits. */
  readonly idle = new Set<string>();
  #changed = Promise.withResolvers<void>();

  constructor(options: RunSkillOptions, startedAt: number, signal: AbortSignal) {
    this.options = options;
    this.startedAt = startedAt;
    this.signal = signal;
    signal.addEventListener('abort', () => this.notify());
  }

  /** Answers a request by the script; notes where it has no answer. */
  answer<T>(find: () => T): T {
    try {
      return find();
    } catch (error) {
      if (error instanceof ScriptError) this.fault ??= error;
      this.notify();
      throw error;
    }
  }

  /** A run has ended, is idle, or has no answer. */
  notify(): void {
    this.#changed.resolve();
  }

  /** Resolves at the next notice, and for one since the last call. */
  async changed(): Promise<void> {
    await this.#changed.promise;
    this.#changed = Promise.withResolvers();
  }
}

/** How the wait for an event ends; undefined for its timeout. */
export function endingOfEvent(
  { options, startedAt, taken }: Script,
  name: string,
  wanted: { readonly event: string; readonly key: string | null },
  now: number,
): WaitEnding | undefined {
  const { event, key } = wanted;
  const found = (options.events ?? []).find(
    (one) => !taken.has(one) && one.event === event && keyOf(one) === key,
  );
  if (found === undefined) {
    const fields = `event: ${quoted(event)}${key === null ? '' : `, key: ${quoted(key)}`}`;
    throw new ScriptError(
      `ctx.waitForEvent(${quoted(name)}) waits for an event that the test does not report. Report it: { events: [{ ${fields}, data: { … } }] }, or { events: [{ ${fields}, never: true }] } for its timeout`,
    );
  }
  taken.add(found);
  const reportedAt = startedAt + readDuration(found.after ?? 0, `after of the event ${event}`);
  if (found.never === true) return undefined;
  const id = `event-${taken.size}`;
  const received_at = timestamp(reportedAt);
  const value = { id, event, key, data: carried(found.data), received_at };
  return { at: Math.max(now, reportedAt), value };
}

/** How the wait for a decision ends; undefined for its timeout. */
export function endingOfApproval(
  { options: { approvals }, asked }: Script,
  approval: AskedApproval,
  now: number,
): WaitEnding | undefined {
  const { name, title } = approval;
  const nth = (asked.get(name) ?? 0) + 1;
  asked.set(name, nth);
  const given = typeof approvals === 'function' ? approvals(approval) : approvals?.[name];
  const decision = isList(given) ? given[nth - 1] : given;
  if (decision === undefined) {
    throw new ScriptError(
      `ctx.approve(${quoted(name)}) asks ${quoted(title)} ${times(nth)}, and the test does not decide it. Decide it: { approvals: { ${quoted(name)}: { approved: true } } }, or 'expired' for its timeout`,
    );
  }
  if (decision === 'expired') return undefined;
  const fields = typeof decision === 'boolean' ? { approved: decision } : decision;
  const at = now + readDuration(fields.after ?? 0, `after of the approval ${name}`);
  const { approved, by = { kind: 'api_key', id: 'test' }, reason = null } = fields;
  const answer = approved ? answerIn(approval, fields.answer) : {};
  return { at, value: { approved, by, reason, ...answer } };
}

/** What is filled into the form of an approval. */
function answerIn({ name, fields }: AskedApproval, answer: Json = {}): { answer?: Json } {
  if (fields === undefined) return {};
  const issues = answerIssues(fields as unknown as Form, answer);
  if (issues === null) return { answer };
  throw new ScriptError(
    `the answer of the test to ctx.approve(${quoted(name)}) does not fit its fields: ${issuesText(issues)}`,
  );
}

function isList(
  given: ScriptedDecision | readonly ScriptedDecision[] | undefined,
): given is readonly ScriptedDecision[] {
  return Array.isArray(given);
}

/** What stands in for a skill that `verb` names. */
export function scriptedSkill(
  { options }: Script,
  verb: 'ctx.run' | 'ctx.callSkill' | 'a tool call',
  skill: string,
): unknown {
  const field = verb === 'ctx.run' ? 'children' : 'skills';
  const skills = options[field] ?? {};
  if (Object.hasOwn(skills, skill)) return skills[skill];
  throw new ScriptError(
    `${verb} names the skill ${skill}, and the test does not say what it does. Give its definition, or a function in its place: { ${field}: { '${skill}': (input) => ({ … }) } }`,
  );
}

export function isDefinition(value: unknown): value is SkillDefinition {
  return isObject(value) && typeof value['run'] === 'function' && isObject(value['parameters']);
}

/** The output of what stands in for a skill and is no definition; throws its error. */
export async function outputOf(scripted: unknown, input: unknown): Promise<unknown> {
  if (scripted instanceof Error) throw scripted;
  return typeof scripted === 'function' ? await scripted(input) : scripted;
}

/** A thrown value as a failed step records it. */
export function failureOf(thrown: unknown): StepFailure & { readonly retryable: boolean } {
  const { code, message, retryable } = (thrown ?? {}) as Partial<Record<string, unknown>>;
  return {
    code: typeof code === 'string' ? code : 'skill_execution_failed',
    message: typeof message === 'string' ? message : String(thrown),
    retryable: retryable === true,
  };
}

function keyOf({ key }: ScriptedEvent): string | null {
  return key === undefined || key === null ? null : `${key}`;
}

function carried(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

export function quoted(text: string): string {
  return JSON.stringify(text.length > textCharsMax ? `${text.slice(0, textCharsMax)}…` : text);
}

export function times(nth: number): string {
  return nth === 1
    ? 'once'
    : `for the ${nth}${['th', 'st', 'nd', 'rd'][nth % 100 > 10 && nth % 100 < 14 ? 0 : nth % 10] ?? 'th'} time`;
}
