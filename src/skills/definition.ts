/**
 * The types for authors of skills. A skill is a plain object with two schemas and a function, and is the
 * default export of its module. `defineSkill` only types it.
 */

/** A JSON Schema (draft 2020-12, or draft-07 when `$schema` says so). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Extra fields of a log line. Values that JSON cannot carry become text. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The context of a run: its identity and its requests to the platform. */
export interface SkillContext {
  readonly jobId: string;
  readonly agentId: string;
  readonly conversationId: string;
  readonly organizationId: string;
  /** Counts from 1. */
  readonly attempt: number;
  /** Aborts at the deadline, on cancellation and when the platform stops waiting for this run. */
  readonly signal: AbortSignal;
  /** Adds a line to the job's event stream. At most 1,000 lines of 8 KiB an attempt are kept. */
  log(message: string, fields?: LogFields): void;
  /** Reports how far the run is; `fraction` is clamped to 0..1. */
  progress(fraction: number, note?: string): void;
  /** Adds a message to the job's conversation; recorded together with the run's result. */
  message(role: 'user' | 'assistant' | 'system' | 'tool', content: string): void;
  /**
   * Runs another skill, named `category/version/name`, inside this run and returns its output.
   * The key that started the job needs that skill's scopes too.
   */
  callSkill(skill: string, input: unknown): Promise<unknown>;
  /** The long-term memory of the run's agent. */
  readonly memory: SkillMemory;
  /**
   * Asks the model of the run's agent, in the agent's name and at its cost. The model's messages and tool
   * calls become part of the job's conversation, and their tokens are counted there. Each finished turn
   * and tool call is recorded. When the run is repeated, an equal request gets the recorded answer at no
   * cost, so a request should depend on the skill's input alone. Rejects with an error whose `code` and
   * `retryable` decide how the job ends if the skill does not catch it.
   */
  generate(request: GenerateRequest): Promise<Generated>;
}

/** A request to the model of the run's agent. */
export interface GenerateRequest {
  /** The user message; up to 1,000,000 bytes. The whole request has at most 1 MiB as JSON. */
  readonly prompt: string;
  /** Follows the agent's own instructions; up to 256 KiB. */
  readonly system?: string | undefined;
  /** JSON Schema of the answer, which is then returned as `output`, parsed and valid. */
  readonly schema?: JsonSchema | undefined;
  /**
   * The tools of the model: all tools of the agent (`true`), those that match these patterns (`text/*`,
   * `text/v1.0/summarize`), or none (left out).
   */
  readonly tools?: boolean | readonly string[] | undefined;
  /** The SKILL.md skill whose files the model may read, as `category/version/name`. */
  readonly files?: string | undefined;
  /** Whether the request begins with the earlier messages of the run's conversation. */
  readonly continues?: boolean | undefined;
  /** Limit of tokens for one answer; the platform's setting is the upper bound. */
  readonly maxOutputTokens?: number | undefined;
  /** Limit of model calls; the platform's setting is the upper bound. */
  readonly maxTurns?: number | undefined;
  readonly temperature?: number | undefined;
}

/** The final answer of a model. */
export interface Generated {
  readonly text: string;
  /** The answer as a value that matches the schema; absent when the request has no schema. */
  readonly output?: unknown;
  /** Whether the text is cut, because the model reached its limit of tokens. */
  readonly isCut: boolean;
  /** Number of model calls. */
  readonly turns: number;
  /** Tokens of these calls; null where the provider did not report them. */
  readonly usage: {
    readonly prompt_tokens: number | null;
    readonly completion_tokens: number | null;
    readonly total_tokens: number | null;
  };
}

/** One entry in an agent's memory (specification: Memory). */
export interface Memory {
  readonly id: string;
  readonly content: string;
  readonly tag: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
}

/**
 * The long-term memory of an agent. A run sees its own changes at once. They are recorded when the run
 * completes, so a failed or repeated attempt leaves no changes behind. An attempt may make 1,000 changes
 * of 4 MiB in total. A call with an invalid argument rejects with an error that says what is wrong.
 */
export interface SkillMemory {
  /**
   * Adds a memory. `content` has 1 byte to 64 KiB, `tag` 1 to 200 characters (`fact` when left out),
   * `metadata` up to 64 KiB of JSON.
   */
  remember(memory: {
    readonly content: string;
    readonly tag?: string | undefined;
    readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  }): Promise<Memory>;
  /**
   * The newest memories, or those that contain all words of `query`, best match first; with `tag` only
   * those with this tag. `limit` is 1 to 200 (50 when left out). One call returns at most 1 MB.
   */
  recall(wanted?: {
    readonly query?: string | undefined;
    readonly tag?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<Memory[]>;
  /** Deletes a memory of the agent; false when there is none of this id. */
  forget(id: string): Promise<boolean>;
}

/** One executable example, shown in the documentation. The tests of the catalog run those of its skills. */
export interface SkillExample {
  readonly input: unknown;
  /** Left out where the output depends on the outside world. */
  readonly output?: unknown;
}

/** The fields of a type that hold a text; any name where the type is unknown. */
type TextField<T> = unknown extends T
  ? string
  : { [Name in keyof T]-?: T[Name] extends string ? Name : never }[keyof T] & string;

/** A versioned unit of work (specification: Skill). */
export interface SkillDefinition<Input = unknown, Output = unknown> {
  /** Slug of the category, for example `text`. */
  readonly category: string;
  /** Kebab-case. */
  readonly name: string;
  /** `v<major>.<minor>`. */
  readonly version: string;
  readonly displayName: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly output: JsonSchema;
  /** Scopes that a key needs to run it; the category when left out. */
  readonly requiredScopes?: readonly string[];
  /** Milliseconds that one attempt may take; 60,000 when left out. */
  readonly timeoutMs?: number;
  /** Attempts of a direct run; 3 when left out. */
  readonly maxAttempts?: number;
  /** Whether a request may continue an earlier conversation of the agent (`x-conversation-id`). */
  readonly continuesConversations?: boolean;
  /**
   * The field of the input that holds the task. Later runs of the conversation show it to the model as the
   * user's message; without it they show the whole input as JSON.
   */
  readonly taskField?: TextField<Input> | null;
  /**
   * The field of the output that holds the answer. An output whose answer is the model's last message in the
   * conversation is not added as another message; without it, any field may equal that message.
   */
  readonly answerField?: TextField<Output> | null;
  readonly examples?: readonly SkillExample[];
  run(input: Input, ctx: SkillContext): Output | Promise<Output>;
}

/** Types a skill and returns it as it is. */
export function defineSkill<Input, Output>(
  skill: SkillDefinition<Input, Output>,
): SkillDefinition<Input, Output> {
  return skill;
}

/**
 * An error that says how the platform treats it: `retryable: false` ends the job at once, and `code`
 * becomes the job's `error.code` if it is one of the codes below. Any error with these two fields is
 * treated alike; this class is a convenience.
 */
export class SkillError extends Error {
  readonly code: 'skill_execution_failed' | 'missing_credentials' | 'upstream_unavailable';
  readonly retryable: boolean;

  constructor(
    message: string,
    options: {
      code?: 'skill_execution_failed' | 'missing_credentials' | 'upstream_unavailable';
      retryable?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'SkillError';
    this.code = options.code ?? 'skill_execution_failed';
    this.retryable = options.retryable ?? true;
  }
}
