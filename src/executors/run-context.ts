/**
 * The `ctx` of a run, in the child: its identity, its signal and its requests to the platform. The limits
 * are applied here to give the skill clear errors, and again in the parent. Calls after the end of the
 * run have no effect. The members can be destructured (`const { log } = ctx`).
 */
import { refusal } from '../kernel/refusal.ts';
import { jsonTextFault } from '../kernel/text.ts';
import type { Memory, SkillContext, SkillMemory } from '../skills/definition.ts';
import { createGenerate } from './generate.ts';
import {
  ASK_BYTES_MAX,
  ASKS_MAX,
  CALL_DEPTH_MAX,
  LOG_CHARS_MAX,
  LOG_LINES_MAX,
  MESSAGE_BYTES_MAX,
  MESSAGES_MAX,
  NOTE_CHARS_MAX,
} from './limits.ts';
import { type ContextTuple, type MessageRole, messageRoles } from './protocol.ts';

/** A run as the child knows it. */
export interface Run {
  readonly id: number;
  readonly skill: string;
  readonly context: ContextTuple;
  isOver: boolean;
  controller: AbortController | undefined;
  /** Set once the parent has asked the run to stop. */
  abortedWith: Error | undefined;
  logLines: number;
  messages: number;
  asks: Map<number, PromiseWithResolvers<unknown>> | undefined;
}

/** A part of a run: the run itself, or a skill that it calls. */
export interface Part {
  /** 0 for the run itself; a called skill is one deeper than its caller. */
  readonly depth: number;
  /** The number of the step that the call is, null for the run itself. */
  readonly step: number | null;
  /** How often each call was made, by skill and input. */
  readonly calls: Map<string, number>;
}

/** What a context needs from the child. Every `say…` puts a message into the outbox. */
export interface Bridge {
  sayLog(run: Run, at: number, message: string, fieldsJson: string | null): void;
  sayProgress(run: Run, fraction: number, note: string | null): void;
  sayMessage(run: Run, role: MessageRole, content: string, step: number | null): void;
  sayAsk(run: Run, ask: number, kind: string, payloadJson: string, step: number | null): void;
  /** Runs a skill inside the run, called by `caller`. */
  call(run: Run, caller: Part, skill: string, input: unknown): Promise<unknown>;
}

/** The `ctx` of one part of a run. */
export function createContext(run: Run, bridge: Bridge, part: Part): SkillContext {
  const { depth, step } = part;
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
      addLog(run, bridge, message, fields);
    },
    progress(fraction, note) {
      // The progress of a part is not the progress of the whole.
      if (run.isOver || depth > 0) return;
      const clamped = Math.min(1, Math.max(0, Number(fraction) || 0));
      bridge.sayProgress(run, clamped, note === undefined ? null : cut(`${note}`, NOTE_CHARS_MAX));
    },
    message(role, content) {
      addMessage(run, bridge, role, content, step);
    },
    callSkill(skill, input) {
      if (depth >= CALL_DEPTH_MAX) {
        return Promise.reject(new Error(`skills may call skills ${CALL_DEPTH_MAX} levels deep`));
      }
      return bridge.call(run, part, `${skill}`, input);
    },
    get memory() {
      memory ??= createMemory(run, bridge, step);
      return memory;
    },
    async generate(request) {
      // One for each part, because it counts equal requests, and a replayed call makes none.
      generate ??= createGenerate((payload) => ask(run, bridge, 'generate', payload, step));
      return generate(request);
    },
  };
}

/** The agent's memory, which the parent keeps: one for the run and all that it calls. */
function createMemory(run: Run, bridge: Bridge, step: number | null): SkillMemory {
  return {
    remember: (memory) => ask(run, bridge, 'remember', memory, step) as Promise<Memory>,
    recall: (wanted = {}) => ask(run, bridge, 'recall', wanted, step) as Promise<Memory[]>,
    forget: (id) => ask(run, bridge, 'forget', id, step) as Promise<boolean>,
  };
}

/** Asks the parent; rejects with its refusal, never throws. No answer comes after the run's end. */
export async function ask(
  run: Run,
  bridge: Bridge,
  kind: string,
  payload: unknown,
  step: number | null,
): Promise<unknown> {
  const json = JSON.stringify(payload) ?? 'null';
  const fault = jsonTextFault(json);
  if (fault !== null) throw refusal(`a request ${fault}`);
  if (Buffer.byteLength(json) > ASK_BYTES_MAX) {
    throw refusal(`a request may have ${ASK_BYTES_MAX / 1024} KiB of JSON`);
  }
  return askJson(run, bridge, kind, json, step);
}

/** Like `ask`, for JSON text that is known to be within the limits. */
export async function askJson(
  run: Run,
  bridge: Bridge,
  kind: string,
  json: string,
  step: number | null,
): Promise<unknown> {
  if (run.isOver) throw new Error('this run has ended');
  run.asks ??= new Map();
  if (run.asks.size >= ASKS_MAX) throw new Error(`at most ${ASKS_MAX} requests may wait at once`);
  const id = nextAsk++;
  const answer = Promise.withResolvers<unknown>();
  run.asks.set(id, answer);
  bridge.sayAsk(run, id, kind, json, step);
  return answer.promise;
}

let nextAsk = 1;

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

function addLog(run: Run, bridge: Bridge, message: unknown, fields: unknown): void {
  if (run.isOver || run.logLines > LOG_LINES_MAX) return;
  run.logLines += 1;
  if (run.logLines > LOG_LINES_MAX) {
    bridge.sayLog(run, Date.now(), `more than ${LOG_LINES_MAX} lines; the rest is left out`, null);
    return;
  }
  const text = cut(typeof message === 'string' ? message : textOf(message), LOG_CHARS_MAX);
  bridge.sayLog(run, Date.now(), text, fields === undefined ? null : fieldsJson(fields));
}

function addMessage(
  run: Run,
  bridge: Bridge,
  role: unknown,
  content: unknown,
  step: number | null,
): void {
  if (run.isOver) return;
  if (!messageRoles.includes(role as MessageRole)) {
    throw new TypeError(`the role of a message is one of ${messageRoles.join(', ')}`);
  }
  if (typeof content !== 'string') throw new TypeError('the content of a message is a string');
  if (Buffer.byteLength(content) > MESSAGE_BYTES_MAX) {
    throw new RangeError(`a message may have ${MESSAGE_BYTES_MAX / 1024} KiB of content`);
  }
  if (run.messages >= MESSAGES_MAX) {
    throw new RangeError(`a run may add ${MESSAGES_MAX} messages`);
  }
  run.messages += 1;
  bridge.sayMessage(run, role as MessageRole, content, step);
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
    if (json.length <= LOG_CHARS_MAX && json.startsWith('{')) return json;
    return JSON.stringify({ fields: `${cut(json, LOG_CHARS_MAX / 4)}` });
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
