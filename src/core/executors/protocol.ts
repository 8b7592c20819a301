/**
 * The protocol between the pool and a child: lines of JSON on a socket. Each line is an array of
 * messages, and each message is an array that begins with its kind. Parent and child come from the same
 * installation, so the protocol has no version. `isChildMessage` checks the types of a child's message
 * and not its meaning: skill code can write to the socket too.
 */
import { isObject } from '../../kernel/json.ts';
import { isDeeperThan } from '../../kernel/text.ts';
import type { RunSettings } from '../skills/settings.ts';
import type { LoadedFile, LoadPlan } from '../skills/sources/load-plan.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { outputDepthMax } from './limits.ts';

/** The codes of failed runs: two that the child finds, and those that an error may name. */
export const failureCodes = [
  'skill_execution_failed',
  'output_invalid',
  'missing_credentials',
  'upstream_unavailable',
  'budget_exceeded',
  'model_refused',
  'guard_refused',
  'guard_failed',
] as const;
export type FailureCode = (typeof failureCodes)[number];

export const messageRoles = ['user', 'assistant', 'system', 'tool'] as const;
export type MessageRole = (typeof messageRoles)[number];

/** jobId, agentId, conversationId, organizationId, attempt, now, path, and the job whose record it repeats if not its own. */
export type ContextTuple = readonly [
  ...(readonly [string, string, string, string, number, number, string]),
  recordOf?: string,
];

/** Why an answer could not be given; carried to the skill as an error with these fields. */
export interface Refusal {
  readonly message: string;
  readonly code?: string;
  readonly retryable?: boolean;
  /** When a recorded failure was recorded, in milliseconds. */
  readonly at?: number;
}

/** Parent to child; `run` numbers are the child's own. */
export type ParentMessage =
  | ['ping', ping: number]
  /** Lets a prepared child load the skills. */
  | ['load', plan: LoadPlan]
  | [
      'run',
      run: number,
      skill: string,
      context: ContextTuple,
      input: unknown,
      settings?: RunSettings,
    ]
  | ['abort', run: number, name: 'TimeoutError' | 'AbortError', reason: string]
  /** Asks a run whose only open questions are waits to end; `asks` is how many of its questions have arrived. */
  | ['suspend', run: number, asks: number]
  | ['answer', run: number, ask: number, value: unknown]
  | ['refuse', run: number, ask: number, refusal: Refusal];

/** Child to parent. */
export type ChildMessage =
  | ['loading', file: string]
  | ['skill', skill: LoadedSkill]
  /** What a file of skills has read while it was loaded by a plan, also if it failed. */
  | ['files', file: string, files: readonly LoadedFile[]]
  | ['left-out', file: string, sentence: string]
  /** The last version of a file that loaded no longer loads either. */
  | ['failing', file: string]
  | ['ready']
  | ['refused', file: string, sentence: string]
  | ['unloaded', file: string, sentence: string]
  | ['pong', ping: number, rssBytes: number]
  /** Sent between two messages of a line that takes long, because pings are read only after it. */
  | ['alive']
  | ['done', run: number, output: unknown]
  | [
      'fail',
      run: number,
      code: FailureCode,
      message: string,
      retryable: boolean,
      stack: string | null,
      retryAfterMs: number | null,
    ]
  /** The answer to `suspend`: the run has asked nothing more, and its code is dropped. */
  | ['waiting', run: number]
  | ['log', run: number, at: number, message: string, fieldsJson: string | null]
  | ['progress', run: number, fraction: number, note: string | null]
  /** `step` is the number of the step in which it was said or asked, null for the run itself. */
  | ['message', run: number, role: MessageRole, content: string, step: number | null]
  | ['ask', run: number, ask: number, kind: string, payload: unknown, step: number | null]
  /** What the code of a run printed. */
  | ['print', run: number, stream: 'stdout' | 'stderr', text: string]
  | ['stray', skill: string | null, text: string]
  | ['dropped', bytes: number];

type Check = (value: unknown) => boolean;

/** The checks of a message's members after its kind. */
const checks: ReadonlyMap<unknown, readonly Check[]> = new Map<ChildMessage[0], Check[]>([
  ['loading', [isString]],
  ['skill', [isObject]],
  ['files', [isString, isListOfFiles]],
  ['left-out', [isString, isString]],
  ['failing', [isString]],
  ['ready', []],
  ['refused', [isString, isString]],
  ['unloaded', [isString, isString]],
  ['pong', [isCount, isCount]],
  ['alive', []],
  ['done', [isCount, isAny]],
  [
    'fail',
    [isCount, isOneOf(failureCodes), isString, isBoolean, orNull(isString), orNull(isCount)],
  ],
  ['waiting', [isCount]],
  ['log', [isCount, isCount, isString, orNull(isString)]],
  ['progress', [isCount, isFraction, orNull(isString)]],
  ['message', [isCount, isOneOf(messageRoles), isString, orNull(isCount)]],
  ['ask', [isCount, isCount, isString, isAny, orNull(isCount)]],
  ['print', [isCount, isOneOf(['stdout', 'stderr']), isString]],
  ['stray', [orNull(isString), isString]],
  ['dropped', [isCount]],
]);

/** The levels of a value, and those around it: the line, the message, the skill with examples. */
const nestingMax = outputDepthMax + 3;

/** The messages of a child's line; undefined when the line is invalid. */
export function readChildLine(line: string): ChildMessage[] | undefined {
  if (isDeeperThan(line, nestingMax)) return undefined;
  try {
    const messages: unknown = JSON.parse(line);
    return Array.isArray(messages) && messages.every(isChildMessage) ? messages : undefined;
  } catch {
    return undefined;
  }
}

function isChildMessage(value: unknown): value is ChildMessage {
  if (!Array.isArray(value)) return false;
  const members = checks.get(value[0]);
  if (members === undefined || value.length !== members.length + 1) return false;
  return members.every((isValid, i) => isValid(value[i + 1]));
}

function isAny(): boolean {
  return true;
}

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isListOfFiles(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((file) => isObject(file) && isString(file['path']) && isString(file['stamp']))
  );
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isFraction(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

function isOneOf(words: readonly unknown[]): Check {
  return (value) => words.includes(value);
}

function orNull(check: Check): Check {
  return (value) => value === null || check(value);
}
