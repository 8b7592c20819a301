/**
 * The `ctx` of a run, in the child: its identity, its signal and its requests to the platform. The limits
 * are applied here to give the skill clear errors, and again in the parent. Calls after the end of the
 * run have no effect. The members can be destructured (`const { log } = ctx`).
 */
import { permanentError } from '../kernel/permanent-error.ts';
import { jsonTextFault } from '../kernel/text.ts';
import type { Memory, SkillContext, SkillMemory } from '../skills/definition.ts';
import { createGenerate } from './generate.ts';
import {
  askBytesMax,
  asksMax,
  callDepthMax,
  logCharsMax,
  logLinesMax,
  messageBytesMax,
  messagesMax,
  noteCharsMax,
} from './limits.ts';
import type { Outbox } from './lines.ts';
import type { Progress } from './progress.ts';
import { type ContextTuple, type MessageRole, messageRoles } from './protocol.ts';

/** A run as the child knows it. */
export interface Run {
  readonly id: number;
  readonly skill: string;
  readonly context: ContextTuple;
  isOver: boolean;
  /** Whether it is over because it waits: its code may not notice. */
  isSuspended: boolean;
  controller: AbortController | undefined;
  /** Set once the parent has asked the run to stop. */
  abortedWith: Error | undefined;
  logLines: number;
  messages: number;
  /** Questions to the parent, answered ones too. */
  asked: number;
  asks: Map<number, PromiseWithResolvers<unknown>> | undefined;
}

/** A part of a run: the run itself, or a skill that it calls. */
export interface Part {
  readonly run: Run;
  readonly platform: Platform;
  /** 0 for the run itself; a called skill is one deeper than its caller. */
  readonly depth: number;
  /** The number of the step that the call is, null for the run itself. */
  readonly step: number | null;
  /** How often each call was made, by skill and input. */
  readonly calls: Map<string, number>;
}

/** The way from a run to the platform. */
export interface Platform {
  readonly outbox: Outbox;
  readonly progress: Progress;
  /** Runs a skill inside the run, called by `caller`. */
  callSkill(caller: Part, skill: string, input: unknown): Promise<unknown>;
}

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
      const text = note === undefined ? null : cut(`${note}`, noteCharsMax);
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
      // One for each part, because it counts equal requests, and a replayed call makes none.
      generate ??= createGenerate((payload) => ask(part, 'generate', payload));
      return generate(request);
    },
  };
}

/** The agent's memory, which the parent keeps: one for the run and all that it calls. */
function createMemory(part: Part): SkillMemory {
  return {
    remember: (memory) => ask(part, 'remember', memory) as Promise<Memory>,
    recall: (wanted = {}) => ask(part, 'recall', wanted) as Promise<Memory[]>,
    forget: (id) => ask(part, 'forget', id) as Promise<boolean>,
  };
}

/** Asks the parent; rejects with its refusal, never throws. No answer comes after the run's end. */
export async function ask(part: Part, kind: string, payload: unknown): Promise<unknown> {
  const json = JSON.stringify(payload) ?? 'null';
  const fault = jsonTextFault(json);
  if (fault !== null) throw permanentError(`a request ${fault}`);
  if (Buffer.byteLength(json) > askBytesMax) {
    throw permanentError(`a request may have ${askBytesMax / 1024} KiB of JSON`);
  }
  return askJson(part, kind, json);
}

/** Like `ask`, for JSON text that is known to be within the limits. */
export async function askJson(part: Part, kind: string, json: string): Promise<unknown> {
  const { run, platform, step } = part;
  if (run.isSuspended) return neverSettled();
  if (run.isOver) throw new Error('this run has ended');
  run.asks ??= new Map();
  if (run.asks.size >= asksMax) throw new Error(`at most ${asksMax} requests may wait at once`);
  const id = nextAsk++;
  const answer = Promise.withResolvers<unknown>();
  run.asks.set(id, answer);
  run.asked += 1;
  platform.outbox.push(`["ask",${run.id},${id},${JSON.stringify(kind)},${json},${step}]`);
  return answer.promise;
}

let nextAsk = 1;

/** What a suspended run is answered, so that its code does not take the suspension for a failure. */
function neverSettled(): Promise<never> {
  return new Promise(() => {});
}

/** Made at its first use: most runs never read it. */
function signalOf(run: Run): AbortSignal {
  run.controller ??= new AbortController();
  if (run.abortedWith !== undefined) run.controller.abort(run.abortedWith);
  return run.controller.signal;
}

/** Tells the run to stop. */
export function abortRun(run: Run, name: string, reason: string): void {
  const error = new Error(reason);
  error.name = name;
  run.abortedWith = error;
  run.controller?.abort(error);
}

function addLog({ run, platform }: Part, message: unknown, fields: unknown): void {
  if (run.isOver || run.logLines > logLinesMax) return;
  run.logLines += 1;
  const isLast = run.logLines > logLinesMax;
  const text = isLast
    ? `more than ${logLinesMax} lines; the rest is left out`
    : cut(typeof message === 'string' ? message : textOf(message), logCharsMax);
  const json = isLast || fields === undefined ? null : fieldsJson(fields);
  platform.progress.flush(run);
  platform.outbox.push(JSON.stringify(['log', run.id, Date.now(), text, json]));
}

function addMessage({ run, platform, step }: Part, role: unknown, content: unknown): void {
  if (run.isOver) return;
  if (!messageRoles.includes(role as MessageRole)) {
    throw new TypeError(`the role of a message is one of ${messageRoles.join(', ')}`);
  }
  if (typeof content !== 'string') throw new TypeError('the content of a message is a string');
  if (Buffer.byteLength(content) > messageBytesMax) {
    throw new RangeError(`a message may have ${messageBytesMax / 1024} KiB of content`);
  }
  if (run.messages >= messagesMax) {
    throw new RangeError(`a run may add ${messagesMax} messages`);
  }
  run.messages += 1;
  platform.progress.flush(run);
  platform.outbox.push(JSON.stringify(['message', run.id, role, content, step]));
}

/** JSON text of the fields of a log line; values that JSON cannot carry become text. */
function fieldsJson(fields: unknown): string {
  const above: unknown[] = [];
  try {
    const json = JSON.stringify(fields, function (this: unknown, _key, value: unknown) {
      if (value === undefined || typeof value === 'function' || typeof value === 'symbol') {
        return textOf(value);
      }
      if (typeof value === 'bigint') return `${value}`;
      if (value === null || typeof value !== 'object') return value;
      while (above.length > 0 && above.at(-1) !== this) above.pop();
      if (above.includes(value)) return '[circular]';
      above.push(value);
      return value instanceof Error ? textOf(value) : value;
    });
    if (json.length <= logCharsMax && json.startsWith('{')) return json;
    return JSON.stringify({ fields: `${cut(json, logCharsMax / 4)}` });
  } catch (error) {
    return JSON.stringify({ fields: `cannot be shown: ${cut(textOf(error), 200)}` });
  }
}

function textOf(value: unknown): string {
  try {
    return typeof value === 'function' ? `[function ${value.name}]` : String(value);
  } catch {
    return '[cannot be shown]';
  }
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
