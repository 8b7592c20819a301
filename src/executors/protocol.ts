/**
 * The protocol between the pool and a child: lines of JSON on a socket. Each line is an array of
 * messages, and each message is an array that begins with its kind. Parent and child come from the same
 * installation, so the protocol has no version. `isChildMessage` checks the types of a child's message
 * and not its meaning: skill code can write to the socket too.
 */
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { OUTPUT_DEPTH_MAX } from './limits.ts';

/** Failures that a skill may name itself, by an error of its own or of the platform's, and the two that the child finds. */
export const failureCodes = [
  'skill_execution_failed',
  'output_invalid',
  'missing_credentials',
  'upstream_unavailable',
  'budget_exceeded',
] as const;
export type FailureCode = (typeof failureCodes)[number];

export const messageRoles = ['user', 'assistant', 'system', 'tool'] as const;
export type MessageRole = (typeof messageRoles)[number];

/** jobId, agentId, conversationId, organizationId, attempt. */
export type ContextTuple = readonly [string, string, string, string, number];

/** Why an answer could not be given; carried to the skill as an error with these fields. */
export interface Refusal {
  readonly message: string;
  readonly code?: string | undefined;
  readonly retryable?: boolean | undefined;
}

/** Parent to child. A line begins with its ping; `run` numbers are the child's own. */
export type ParentMessage =
  | ['ping', ping: number]
  | ['run', run: number, skill: string, context: ContextTuple, input: unknown]
  | ['abort', run: number, name: 'TimeoutError' | 'AbortError', reason: string]
  | ['answer', run: number, ask: number, value: unknown]
  | ['refuse', run: number, ask: number, refusal: Refusal];

/** Child to parent. */
export type ChildMessage =
  | ['loading', file: string]
  | ['skill', skill: LoadedSkill]
  | ['left-out', file: string, sentence: string]
  | ['ready']
  | ['refused', file: string, sentence: string]
  | ['unloaded', file: string, sentence: string]
  | ['pong', ping: number, rssBytes: number]
  | ['done', run: number, output: unknown]
  | [
      'fail',
      run: number,
      code: FailureCode,
      message: string,
      retryable: boolean,
      stack: string | null,
    ]
  | ['log', run: number, at: number, message: string, fieldsJson: string | null]
  | ['progress', run: number, fraction: number, note: string | null]
  /** `step` is the number of the step in which it was said or asked, null for the run itself. */
  | ['message', run: number, role: MessageRole, content: string, step: number | null]
  | ['ask', run: number, ask: number, kind: string, payload: unknown, step: number | null]
  /** What the code of a run printed. */
  | ['print', run: number, stream: 'stdout' | 'stderr', text: string]
  | ['stray', skill: string | null, text: string]
  | ['dropped', bytes: number];

type Shape = (message: readonly unknown[]) => boolean;

const shapes: ReadonlyMap<unknown, Shape> = new Map<ChildMessage[0], Shape>([
  ['loading', (m) => m.length === 2 && isString(m[1])],
  ['skill', (m) => m.length === 2 && isObject(m[1])],
  ['left-out', (m) => m.length === 3 && isString(m[1]) && isString(m[2])],
  ['ready', (m) => m.length === 1],
  ['refused', (m) => m.length === 3 && isString(m[1]) && isString(m[2])],
  ['unloaded', (m) => m.length === 3 && isString(m[1]) && isString(m[2])],
  ['pong', (m) => m.length === 3 && isCount(m[1]) && isCount(m[2])],
  ['done', (m) => m.length === 3 && isCount(m[1])],
  [
    'fail',
    (m) =>
      m.length === 6 &&
      isCount(m[1]) &&
      failureCodes.includes(m[2] as FailureCode) &&
      isString(m[3]) &&
      typeof m[4] === 'boolean' &&
      isStringOrNull(m[5]),
  ],
  [
    'log',
    (m) =>
      m.length === 5 && isCount(m[1]) && isCount(m[2]) && isString(m[3]) && isStringOrNull(m[4]),
  ],
  ['progress', (m) => m.length === 4 && isCount(m[1]) && isFraction(m[2]) && isStringOrNull(m[3])],
  [
    'message',
    (m) =>
      m.length === 5 &&
      isCount(m[1]) &&
      messageRoles.includes(m[2] as MessageRole) &&
      isString(m[3]) &&
      isCountOrNull(m[4]),
  ],
  [
    'ask',
    (m) =>
      m.length === 6 && isCount(m[1]) && isCount(m[2]) && isString(m[3]) && isCountOrNull(m[5]),
  ],
  [
    'print',
    (m) =>
      m.length === 4 && isCount(m[1]) && (m[2] === 'stdout' || m[2] === 'stderr') && isString(m[3]),
  ],
  ['stray', (m) => m.length === 3 && isStringOrNull(m[1]) && isString(m[2])],
  ['dropped', (m) => m.length === 2 && isCount(m[1])],
]);

/** The levels of a value, and those around it: the line, the message, the skill with examples. */
const NESTING_MAX = OUTPUT_DEPTH_MAX + 3;

/** The messages of a child's line; undefined when the line is invalid. */
export function readChildLine(line: string): ChildMessage[] | undefined {
  if (isDeeperThan(line, NESTING_MAX)) return undefined;
  try {
    const messages: unknown = JSON.parse(line);
    return Array.isArray(messages) && messages.every(isChildMessage) ? messages : undefined;
  } catch {
    return undefined;
  }
}

function isChildMessage(value: unknown): value is ChildMessage {
  return Array.isArray(value) && shapes.get(value[0])?.(value) === true;
}

/** A megabyte of `[` would take the parser fifty times its size, and the stack of what comes after. */
function isDeeperThan(json: string, max: number): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c === 0x22) inString = !inString;
    else if (inString && c === 0x5c) i++;
    else if (!inString && (c === 0x5b || c === 0x7b) && ++depth > max) return true;
    else if (!inString && (c === 0x5d || c === 0x7d)) depth--;
  }
  return false;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function isStringOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isCountOrNull(value: unknown): value is number | null {
  return value === null || isCount(value);
}

function isFraction(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
