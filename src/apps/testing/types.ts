/** What tests of skills give to `runSkill`, and what they get. */
import type {
  Decision,
  Duration,
  GenerateRequest,
  LogFields,
  Memory,
  Recorded,
  SkillDefinition,
} from '../../core/skills/definition.ts';

/**
 * An answer of the model: its text, or a value that is written as JSON for a request with a `schema`. An `Error`
 * makes the request fail; its `code` and `retryable` reach the skill.
 */
export type ModelAnswer =
  | string
  | Error
  | {
      readonly text: string;
      readonly isCut?: boolean;
      readonly totalTokens?: number;
      readonly costUsd?: number;
    }
  | { readonly output: unknown; readonly totalTokens?: number; readonly costUsd?: number }
  /** The model calls skills as tools, and its next answer is one to their results. */
  | {
      readonly toolCalls: readonly ScriptedToolCall[];
      readonly totalTokens?: number;
      readonly costUsd?: number;
    };

/** A call of a skill, named `category/version/name`, by the model. The option `skills` says what the skill does. */
export interface ScriptedToolCall {
  readonly skill: string;
  /** `{}` when left out. */
  readonly input?: unknown;
}

/** A call of the model with what it got for it: an output or an error. */
export interface ToolResult {
  readonly skill: string;
  readonly input: unknown;
  readonly output?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
}

/** An event that is reported to the run. Each one ends one wait. */
export interface ScriptedEvent {
  readonly event: string;
  readonly key?: string | number | null;
  readonly data?: unknown;
  /** How long after the start of the run it is reported; at once when left out. */
  readonly after?: Duration;
  /** It is never reported: the wait ends at its timeout. */
  readonly never?: boolean;
}

/** What a person decides. `true` approves, `false` rejects, `'expired'` lets the timeout pass. */
export type ScriptedDecision =
  | boolean
  | 'expired'
  | {
      readonly approved: boolean;
      readonly reason?: string | null;
      readonly by?: Decision['by'];
      /** What is filled into the form, where `ctx.approve` asks with `fields`. */
      readonly answer?: Readonly<Record<string, unknown>>;
      /** How long after the question; at once when left out. */
      readonly after?: Duration;
    };

/** What a person is asked. */
export interface AskedApproval {
  /** The name of the wait. */
  readonly name: string;
  readonly title: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The form to fill in; absent without one. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/**
 * What stands in for another skill: its definition, which is executed; a function of the input, which may be
 * async and may throw; an output; or an `Error`, with which it fails.
 */
export type ScriptedSkill = SkillDefinition | ((input: unknown) => unknown) | Error | object | null;

export interface RunSkillOptions {
  /** When the run starts, by the clock of `ctx.now()`; 2026-01-01T00:00:00Z when left out. */
  readonly now?: Date | string | number;
  /** Ids of the run, where the skill reads them. */
  readonly jobId?: string;
  readonly agentId?: string;
  readonly conversationId?: string;
  readonly organizationId?: string;
  /** The user for whom it runs; none when left out. */
  readonly userId?: string;
  /** Values of the settings that the skill, or one that it calls, declares. */
  readonly config?: Readonly<Record<string, string>>;
  /** What the agent remembers when the run starts, the oldest first. */
  readonly memory?: readonly {
    readonly content: string;
    readonly tag?: string;
    readonly metadata?: Readonly<Record<string, unknown>>;
    /** Of `userId`, which is the default where that is given, or of the agent itself. */
    readonly whose?: 'user' | 'agent';
  }[];
  /** Files that the skill may read with `ctx.files.get`. Each id is a UUID. */
  readonly files?: readonly {
    readonly id: string;
    readonly name: string;
    readonly data: string | Uint8Array;
    /** The user whose file it is; the organization's own when left out. */
    readonly userId?: string;
  }[];
  /**
   * The answers of the model to `ctx.generate`, turn by turn; or a function that gives them. `results` are those of
   * the tools that the model has called in the turn before.
   */
  readonly models?:
    | readonly ModelAnswer[]
    | ((
        request: GenerateRequest,
        nth: number,
        results: readonly ToolResult[],
      ) => ModelAnswer | Promise<ModelAnswer>);
  /** The events that `ctx.waitForEvent` gets. */
  readonly events?: readonly ScriptedEvent[];
  /** Decisions on `ctx.approve`, by the name of the wait; several for a name that is asked several times. */
  readonly approvals?:
    | Readonly<Record<string, ScriptedDecision | readonly ScriptedDecision[]>>
    | ((asked: AskedApproval) => ScriptedDecision);
  /** The skills that `ctx.run` starts, by `category/version/name`. */
  readonly children?: Readonly<Record<string, ScriptedSkill>>;
  /** The skills that `ctx.callSkill` and the model call, by `category/version/name`. */
  readonly skills?: Readonly<Record<string, ScriptedSkill>>;
  /**
   * Whether the code is executed again from the recorded steps after each wait, as the platform does. This
   * finds code that does not take the same steps again. True when left out.
   */
  readonly replay?: boolean;
  /** Attempts after errors that are retryable, 1 when left out. Recorded steps are not executed again. */
  readonly attempts?: number;
  /** Milliseconds of real time for the whole test; those of the skill when left out, else 60,000. */
  readonly timeoutMs?: number;
  /** Cancels the run. */
  readonly signal?: AbortSignal;
}

/** Why a run has failed, as the job of the platform shows it. The stack is there, and is not enumerable. */
export interface RunError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
}

/** A step or wait of the run, in the order in which they began. */
export interface RunStep {
  readonly name: string;
  readonly kind: 'step' | 'skill' | 'generate' | 'sleep' | 'event' | 'approval' | 'run';
  readonly status: 'active' | 'waiting' | 'completed' | 'failed' | 'interrupted';
  /** What it gave; null while it has no result. */
  readonly output: unknown;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface SkillRun<Output = unknown> {
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** As JSON carries it; undefined unless the run completed. */
  readonly output: Recorded<Output> | undefined;
  readonly error: RunError | undefined;
  readonly logs: readonly {
    readonly message: string;
    readonly fields: LogFields | undefined;
  }[];
  readonly progress: readonly { readonly fraction: number; readonly note: string | undefined }[];
  /** The messages that the run adds to the conversation, without those of models. */
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly steps: readonly RunStep[];
  /** The requests to the model, one for each turn. */
  readonly requests: readonly GenerateRequest[];
  /** The calls of tools by the model, with their results, in the order of the turns. */
  readonly toolCalls: readonly ToolResult[];
  /** What the agent remembers afterwards, the newest first. A run that failed changes nothing. */
  readonly memory: readonly Memory[];
  /** The files that the runs have kept, the oldest first. */
  readonly files: readonly {
    readonly id: string;
    readonly name: string;
    readonly media_type: string;
    readonly data: Uint8Array;
  }[];
  /** The time of the scripted clock at the end. */
  readonly now: Date;
  /** Attempts that were made. */
  readonly attempts: number;
}

/**
 * The test is incomplete: the skill asked for an answer that its script does not have. `runSkill` rejects with
 * it, also if the skill catches errors. The message shows what to add.
 */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}
