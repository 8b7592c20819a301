/**
 * What a skill is to the person who writes one: a plain object with two schemas and a function.
 * `defineSkill` only types it; a module's default export is the skill.
 */

/** A JSON Schema (draft 2020-12, or draft-07 when `$schema` says so). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Extra fields of a log line. Values that JSON cannot carry are shown as text. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What a run knows of its surroundings and may ask of the platform. */
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
   * Asks the model of the run's agent, in its name and at its cost. Whatever it says and does is part
   * of the job's conversation, and its tokens are counted there. Each finished turn and tool call is
   * recorded: when the run is repeated, the same request gets what it got before and costs nothing
   * again, so a request should depend on the skill's input alone. Rejects with an error that says, by
   * `code` and `retryable`, how the job ends if the skill does not catch it.
   */
  generate(request: GenerateRequest): Promise<Generated>;
}

/** What a model is asked in the name of the run's agent. */
export interface GenerateRequest {
  /** What the user says; up to 1,000,000 bytes. The whole request has at most 1 MiB as JSON. */
  readonly prompt: string;
  /** Follows the agent's own instructions; up to 256 KiB. */
  readonly system?: string | undefined;
  /** JSON Schema of the answer, which then comes as `output`, parsed and valid. */
  readonly schema?: JsonSchema | undefined;
  /**
   * What the model may call: everything that its agent may (`true`), those of it that match these
   * patterns (`text/*`, `text/v1.0/summarize`), or nothing (left out).
   */
  readonly tools?: boolean | readonly string[] | undefined;
  /** The skill written as prose whose files the model may read, as `category/version/name`. */
  readonly files?: string | undefined;
  /** Whether what was said before in the run's conversation comes first. */
  readonly continues?: boolean | undefined;
  /** Most tokens of one answer of the model, at most the platform's setting. */
  readonly maxOutputTokens?: number | undefined;
  /** Most calls of the model, at most the platform's setting. */
  readonly maxTurns?: number | undefined;
  readonly temperature?: number | undefined;
}

/** What a model gave in the end. */
export interface Generated {
  readonly text: string;
  /** The answer as the schema wants it; absent when none was given. */
  readonly output?: unknown;
  /** Whether the text ends early, because the model had reached its most tokens. */
  readonly isCut: boolean;
  /** Calls of the model that it took. */
  readonly turns: number;
  /** Tokens of these calls; null where the provider did not report them. */
  readonly usage: {
    readonly prompt_tokens: number | null;
    readonly completion_tokens: number | null;
    readonly total_tokens: number | null;
  };
}

/** Something that an agent knows (specification: Memory). */
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
 * What a run remembers and forgets is seen by itself at once, and recorded when it completes: an
 * attempt that fails, or is run again, leaves nothing behind. At most 1,000 changes and 4 MiB an
 * attempt. Each call rejects with a sentence when what it is given breaks a rule.
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
   * The newest memories, or those that have all words of `query`, best first; with `tag` only those
   * of this tag. `limit` is 1 to 200 (50 when left out); of long memories come as many as 1 MB holds.
   */
  recall(wanted?: {
    readonly query?: string | undefined;
    readonly tag?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<Memory[]>;
  /** Deletes a memory of the agent; false when there is none of this id. */
  forget(id: string): Promise<boolean>;
}

/** One executable example, shown in the documentation and run as a test. */
export interface SkillExample {
  readonly input: unknown;
  /** Left out where the output depends on the outside world. */
  readonly output?: unknown;
}

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
  /** Whether a request may go on with an earlier conversation of the agent (`x-conversation-id`). */
  readonly continuesConversations?: boolean;
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
 * An error that says how it is to be treated: `retryable: false` ends the job at once, and `code`
 * becomes the job's `error.code` where it is one of the platform's (specification: section 6 of the
 * decisions). Any error with these two fields is treated alike; this class is a convenience.
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
