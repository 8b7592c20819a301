/**
 * The types for authors of skills. A skill is a plain object with two schemas and a function, and is the
 * default export of its module. `defineSkill` only types it. It has more than 300 lines because all that an author
 * imports is read here, with what it promises.
 */

import type { JsonSchema, SkillInput, SkillOutput } from './schema-types.ts';

export type { JsonSchema, SkillInput, SkillOutput } from './schema-types.ts';

/** Extra fields of a log line. Values that JSON cannot carry become text. */
export type LogFields = Readonly<Record<string, unknown>>;

/** One setting that a skill declares. Without a default it has to have a value, unless `required` is false. */
export interface SkillSetting {
  /** For the person who sets it: what it is, and where to get it. 1 to 500 characters. */
  readonly description: string;
  /** Never shown, and replaced by `***` in what a run says and returns. It cannot have a default. */
  readonly secret?: boolean;
  /** False for a setting that the skill can do without; true when left out. */
  readonly required?: boolean;
  /** The value where none is set. 1 to 8,192 bytes. */
  readonly default?: string;
}

/** The settings that a skill declares, at most 50, by name: `[A-Z][A-Z0-9_]*` of up to 64 characters. */
export type SkillConfig = Readonly<Record<string, SkillSetting>>;

/** What `ctx.config` holds: a text for each setting, undefined for one that is not required and not set. */
export type SkillConfigValues<Config extends SkillConfig> = string extends keyof Config
  ? Readonly<Record<string, string | undefined>>
  : { readonly [Name in keyof Config]: SettingValue<Config[Name]> };

type SettingValue<Setting> = Setting extends { readonly default: string }
  ? string
  : Setting extends { readonly required: false }
    ? string | undefined
    : string;

/** The context of a run: its identity and its requests to the platform. */
export interface SkillContext<Config extends SkillConfig = SkillConfig> {
  readonly jobId: string;
  readonly agentId: string;
  readonly conversationId: string;
  readonly organizationId: string;
  /** Counts from 1. */
  readonly attempt: number;
  /** Aborts at the deadline, on cancellation and when the platform stops waiting for this run. */
  readonly signal: AbortSignal;
  /**
   * The values of the settings that the skill declares, frozen: the organization's, else the environment's, else
   * the default. A run starts only if all that are required have one. Empty for a skill that declares none.
   */
  readonly config: SkillConfigValues<Config>;
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
  /** The files of the organization. */
  readonly files: SkillFiles;
  /**
   * Asks the model of the run's agent, in the agent's name and at its cost. The model's messages and tool
   * calls become part of the job's conversation, and their tokens are counted there. Each finished turn
   * and tool call is recorded. When the run is repeated, an equal request gets the recorded answer at no
   * cost, so a request should depend on the skill's input alone. Rejects with an error whose `code` and
   * `retryable` decide how the job ends if the skill does not catch it.
   */
  generate(request: GenerateRequest): Promise<Generated>;
  /**
   * Executes `run` and records what it returns, before the promise resolves. A repeated run gets the recorded
   * result, and `run` is not executed again. Until the result is recorded, `run` is executed at least once:
   * give its effects `step.idempotencyKey`. The result is carried through JSON, up to 1 MiB. A step cannot
   * contain another step or a wait. Names have 1 to 200 characters.
   */
  step<T>(
    name: string,
    run: (step: StepRun) => T | Promise<T>,
    options?: StepOptions,
  ): Promise<Recorded<T>>;
  /**
   * A step for each item, up to `concurrency` at a time; returns the results in the order of the items. Item i
   * is the same step in each repetition. After a failure no more are begun, and the promise rejects with the
   * first failure once those under way have ended. At most 10,000 items.
   */
  map<Item, T>(
    name: string,
    items: readonly Item[],
    run: (item: Item, step: StepRun, index: number) => T | Promise<T>,
    options?: MapOptions,
  ): Promise<Recorded<T>[]>;
  /** Waits for so long, at most 365 days. The run holds no executor meanwhile. */
  sleep(name: string, duration: Duration): Promise<void>;
  /** Waits until a moment, at most 365 days away; a moment in the past is over at once. */
  sleepUntil(name: string, moment: Date | string | number): Promise<void>;
  /**
   * Waits for a received event (`POST /api/events`) of this name and key; null at the timeout, which is 30
   * days when left out and 365 at most. An event that came after the job was accepted counts too.
   */
  waitForEvent<Data = unknown>(
    name: string,
    wanted: {
      readonly event: string;
      /** Only events of this key; without it, only events that have none. */
      readonly key?: string | number | null | undefined;
      readonly timeout?: Duration | undefined;
    },
  ): Promise<ReceivedEvent<Data> | null>;
  /**
   * Asks a person, and waits for the decision. The timeout is 30 days when left out and 365 at most; at its end
   * the request counts as refused, with the reason `expired`. With `fields` the person fills in a form, whose values
   * are the `answer` of the decision.
   */
  approve<Answer extends object = Readonly<Record<string, unknown>>>(
    name: string,
    request: {
      /** What is asked, in one sentence of up to 200 characters. */
      readonly title: string;
      /** An object to show with it, as JSON. */
      readonly details?: object | undefined;
      /**
       * A form to fill in: a JSON Schema of an object whose properties are strings, numbers, integers, booleans, or lists
       * of named texts.
       */
      readonly fields?: object | undefined;
      readonly timeout?: Duration | undefined;
    },
  ): Promise<Decision<Answer>>;
  /**
   * Runs another skill, named `category/version/name`, as a job of its own, and returns its output. Rejects
   * with the code and message of a child that fails. The run holds no executor meanwhile.
   */
  run<Output = unknown>(name: string, skill: string, input: unknown): Promise<Output>;
  /**
   * When the last step or wait that was awaited was recorded; at first, when the job was accepted. The same in each
   * repetition, unlike `new Date()`.
   */
  now(): Date;
  /** A UUID that is the same in each repetition: the n-th of this job, or of the step in which it is called. */
  uuid(): string;
}

/** A number of milliseconds, or a text such as `'90s'`, `'15m'`, `'3d'`, `'1h 30m'`. */
export type Duration = number | string;

/** One execution of a step. */
export interface StepRun {
  /** The same in each execution of this step, also in later attempts, and different for all other steps and jobs. */
  readonly idempotencyKey: string;
  /** Aborts at the end of the step's `timeoutMs`, and with the signal of the run. */
  readonly signal: AbortSignal;
  /** Counts the executions of the step in this attempt of the job, from 1. */
  readonly attempt: number;
}

export interface StepOptions {
  /** Further executions, with growing delays, after the function has failed; 0 when left out, 100 at most. */
  readonly retries?: number | undefined;
  /** Milliseconds of one execution; without it, only the time limit of the run counts. */
  readonly timeoutMs?: number | undefined;
}

export interface MapOptions extends StepOptions {
  /** Items at a time; 10 when left out, 500 at most. */
  readonly concurrency?: number | undefined;
}

/** A received event, as the run gets it. */
export interface ReceivedEvent<Data = unknown> {
  readonly id: string;
  readonly event: string;
  readonly key: string | null;
  readonly data: Data;
  /** ISO 8601. */
  readonly received_at: string;
}

/** What a person has decided. */
export interface Decision<Answer = Readonly<Record<string, unknown>>> {
  readonly approved: boolean;
  /** The key or console session that decided; null at the timeout. */
  readonly by: { readonly kind: string; readonly id: string } | null;
  readonly reason: string | null;
  /** What was filled into the form, where it had `fields` and was approved. */
  readonly answer?: Answer;
}

/** A value as JSON carries it: a `Date` becomes a text, for example. */
export type Recorded<T> = 0 extends 1 & T
  ? T
  : T extends { toJSON(): infer Written }
    ? Written
    : T extends object
      ? { [Name in keyof T]: Recorded<T[Name]> }
      : T;

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
  /**
   * Files that the prompt is about, up to 20: ids of files of the platform, or urls. Pictures and PDF are sent as they are
   * to models that take them, other documents as text.
   */
  readonly attachments?: readonly string[] | undefined;
  /** Whether the request begins with the earlier messages of the run's conversation. */
  readonly continues?: boolean | undefined;
  /** Limit of tokens for one answer; the agent's setting, or else the platform's, is the upper bound. */
  readonly maxOutputTokens?: number | undefined;
  /** Limit of model calls; the platform's setting is the upper bound. */
  readonly maxTurns?: number | undefined;
  /** 0 to 2; the agent's setting when left out. Left out of calls of models that are known to take none. */
  readonly temperature?: number | undefined;
  /** How much the model reasons; the agent's setting when left out. The same holds for models that take none. */
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined;
  /** Longest time of one call of the model, 100 to 21,600,000; the agent's setting when left out. */
  readonly timeoutMs?: number | undefined;
  /** Longest time to the first byte of an answer, 100 to 3,600,000; the agent's setting when left out. */
  readonly firstByteTimeoutMs?: number | undefined;
}

/** The final answer of a model. */
export interface Generated {
  readonly text: string;
  /** The answer as a value that matches the schema; absent when the request has no schema. */
  readonly output?: unknown;
  /** Whether the text is cut, because the model reached its limit of tokens. */
  readonly isCut: boolean;
  /** The pictures that the model has made, as files of the job; absent without any. */
  readonly files?: readonly SkillFile[];
  /** Number of model calls. */
  readonly turns: number;
  /** Tokens of these calls, null where the provider did not report them, and what they cost. */
  readonly usage: {
    readonly prompt_tokens: number | null;
    readonly completion_tokens: number | null;
    readonly total_tokens: number | null;
    /** US dollars for the reported tokens; null where nothing of it is known. */
    readonly cost_usd: number | null;
    /** Whether some tokens were not reported or have no known price. */
    readonly cost_is_partial: boolean;
  };
}

/** One entry in an agent's memory (specification: Memory). */
export interface Memory {
  readonly id: string;
  readonly content: string;
  readonly tag: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The user whose memory it is; null for the agent's own, which the runs of all users see. */
  readonly user_id: string | null;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  /** From then on it is not found; null for never. */
  readonly expires_at: string | null;
  /** In the answer to `remember`: true where it replaced a memory that said nearly the same; else left out. */
  readonly updated?: boolean;
  /** The content of that memory. */
  readonly old_content?: string;
}

/**
 * The long-term memory of an agent. A run sees its own changes at once. They are recorded when the run
 * completes, so a failed or repeated attempt leaves no changes behind. An attempt may make 1,000 changes
 * of 4 MiB in total. A call with an invalid argument rejects with an error that says what is wrong.
 */
export interface SkillMemory {
  /**
   * Adds a memory. `content` has 1 byte to 64 KiB, `tag` 1 to 200 characters (`fact` when left out),
   * `metadata` up to 64 KiB of JSON. It is a memory of the user for whom the run was started, if there is one, or
   * with `whose: 'agent'` one of the agent, which the runs of all users see. With `ttl_seconds` it expires.
   */
  remember(memory: {
    readonly content: string;
    readonly tag?: string | undefined;
    readonly metadata?: Readonly<Record<string, unknown>> | undefined;
    readonly whose?: 'user' | 'agent' | undefined;
    readonly ttl_seconds?: number | undefined;
    /** The message of a conversation that it was formed of. */
    readonly source?: { readonly conversation_id: string; readonly message_id: string } | undefined;
  }): Promise<Memory>;
  /**
   * The newest memories, or those that contain any words of `query` in any inflection, best match first; words in
   * double quotes must stand together. With `tag` only those with this tag. `limit` is 1 to 200 (50 when left out). One call returns at most 1 MB.
   */
  recall(wanted?: {
    readonly query?: string | undefined;
    readonly tag?: string | undefined;
    readonly limit?: number | undefined;
    /** Only memories of the user of the run, or only the agent's own; both when left out. */
    readonly whose?: 'user' | 'agent' | undefined;
  }): Promise<Memory[]>;
  /** Deletes a memory of the agent or of the run's user; false when there is none of this id. */
  forget(id: string): Promise<boolean>;
  /** The profile of the run's user, which is in the prompt of the agent's model; empty where there is none. */
  profile(): Promise<string>;
  /** Replaces the profile of the run's user. Refuses one with more bytes than the agent's `profile` allows, 4,096 by default. */
  updateProfile(content: string): Promise<void>;
  /** The same memory with the rights of the agent's model, for what a model has decided. */
  readonly asModel: SkillMemory;
}

/**
 * A file of the platform. In the output of a skill it refers to the file: a model that called the skill as a tool sees the
 * picture or the text, and clients of the Model Context Protocol get the bytes.
 */
export interface SkillFile {
  readonly type: 'file';
  readonly id: string;
  readonly name: string;
  /** Judged by the bytes. */
  readonly media_type: string;
  /** Its size. */
  readonly bytes: number;
  /** The digest of its bytes, in hex. */
  readonly sha256: string;
}

/**
 * The files of the run's organization: those of its user, and those of no user. They are bounded as uploads are
 * (`FILE_MAX_MB`, `FILES_MAX`, `FILES_MAX_MB`). Calls reject with an error that says what is wrong.
 */
export interface SkillFiles {
  /**
   * Keeps bytes, or a text as UTF-8, as a file of the job. Outside of a step it is a step of its own, named
   * `files.put NAME`: a repeated run gets the recorded file. Equal bytes of one name are one file of the job, so a step that
   * is executed again keeps no second one. Secrets in the bytes are not replaced.
   */
  put(name: string, data: string | Uint8Array): Promise<SkillFile>;
  /** Reads a file by its id. */
  get(id: string): Promise<SkillFile & { readonly data: Uint8Array }>;
}

/** One executable example, shown in the documentation. The tests of the catalog run those of its skills. */
export interface SkillExample {
  readonly input: unknown;
  /** Left out where the output depends on the outside world. */
  readonly output?: unknown;
}

/** How a skill appears to clients of the Model Context Protocol. */
export interface SkillMcp {
  /**
   * The name of its tool: 1 to 90 letters, digits, dots, hyphens and underscores. Many clients take 64 characters, and
   * refuse a server with a dot in any of its names.
   */
  readonly name?: string;
  /**
   * Whether the output is `{ content }`, with the blocks that the client gets, such as
   * `{ type: 'image', data, mimeType }`. Else a client gets the output itself, as JSON. `beside`: the output is
   * structured content, and its field `_content`, if it has one, are blocks that go with it.
   */
  readonly content?: boolean | 'beside';
  /**
   * Whether a call becomes a task, which the client asks about: `always` at once, `never`, or by default when it
   * takes longer than two seconds. `required` is `always`, and refuses clients that do not know tasks.
   */
  readonly task?: 'always' | 'never' | 'required';
}

/** Whose runs a limit counts together. */
export type LimitScope = 'platform' | 'organization' | 'agent' | 'user' | 'key' | 'client-key';

/** How many runs of a skill go on at a time; others wait for their turn. */
export interface SkillConcurrency {
  /** 1 to 10,000. */
  readonly limit: number;
  /**
   * `platform` counts all runs, `organization` those of each organization, `agent` of each agent, `user` of each user, `key`
   * of each API key, and `client-key` those that clients name alike with the header `x-concurrency-key`. All when left out.
   */
  readonly per?: LimitScope;
}

/** How often runs of a skill start; others wait for their turn. */
export interface SkillRate {
  /** Starts within any `perSeconds` seconds, 1 to 1,000,000. */
  readonly limit: number;
  /** 1 to 86,400 (a day). */
  readonly perSeconds: number;
  /** As in `SkillConcurrency`. */
  readonly per?: LimitScope;
}

/** The fields of a type that hold a value of another one; any name where the type is unknown. */
type FieldWith<Value, T> = unknown extends T
  ? string
  : { [Name in keyof T]-?: T[Name] extends Value ? Name : never }[keyof T] & string;

/** A versioned unit of work (specification: Skill). */
export interface SkillDefinition<
  Input = unknown,
  Output = unknown,
  Config extends SkillConfig = SkillConfig,
> extends SkillFields<Input, Output, Config> {
  readonly parameters: JsonSchema;
  readonly output: JsonSchema;
  run(input: Input, ctx: SkillContext<Config>): Output | Promise<Output>;
}

/** All of a skill but its schemas and its code. */
interface SkillFields<Input, Output, Config extends SkillConfig> {
  /** Slug of the category, for example `text`. */
  readonly category: string;
  /** Kebab-case. */
  readonly name: string;
  /** `v<major>.<minor>`. */
  readonly version: string;
  readonly displayName: string;
  readonly description: string;
  /** Scopes that a key needs to run it; the category when left out. */
  readonly requiredScopes?: readonly string[];
  /** Milliseconds that one attempt may take; 60,000 when left out. */
  readonly timeoutMs?: number;
  /**
   * The field of the input that holds another `timeoutMs` for its run: an integer whose schema bounds it by `minimum`
   * and `maximum`, 86,400,000 (24 hours) at most.
   */
  readonly timeoutField?: FieldWith<number | undefined, Input> | null;
  /** Attempts of a direct run; 3 when left out. */
  readonly maxAttempts?: number;
  /** Whether a request may continue an earlier conversation of the agent (`x-conversation-id`). */
  readonly continuesConversations?: boolean;
  /**
   * The field of the input that holds the task. Later runs of the conversation show it to the model as the
   * user's message; without it they show the whole input as JSON.
   */
  readonly taskField?: FieldWith<string, Input> | null;
  /**
   * The field of the output that holds the answer. An output whose answer is the model's last message in the
   * conversation is not added as another message; without it, any field may equal that message.
   */
  readonly answerField?: FieldWith<string, Output> | null;
  readonly examples?: readonly SkillExample[];
  /** How the skill appears to clients of the Model Context Protocol; by default as `category__name`. */
  readonly mcp?: SkillMcp | null;
  /**
   * How many runs go on at a time, in all processes together: one limit, or several with different `per`. Runs beyond it
   * wait, also those that a model or another skill calls. A run that waits for time, an event, a person or another run
   * does not count meanwhile.
   */
  readonly concurrency?: SkillConcurrency | readonly SkillConcurrency[];
  /**
   * How often runs start, in all processes together: one limit, or several. Runs beyond it wait, also those that a model or
   * another skill calls. Each attempt counts, and each call; a run that goes on after a wait does not.
   */
  readonly rate?: SkillRate | readonly SkillRate[];
  /**
   * Whether an error with `retryAfterMs` puts off all runs of the skill, an hour at most, instead of its own job alone: no
   * attempt and no call of the skill starts before.
   */
  readonly slowsDown?: boolean;
  /** The settings that the skill needs from its users, such as a key for another service. */
  readonly config?: Config;
}

/** A definition whose code fits its schemas. */
interface TypedSkill<Parameters extends object, Output extends object, Config extends SkillConfig>
  extends SkillFields<SkillInput<Parameters>, SkillOutput<Output>, Config> {
  readonly parameters: Parameters;
  readonly output: Output;
  readonly run: SkillCode<SkillInput<Parameters>, SkillOutput<Output>, Config>;
}

/** Code may take more inputs than its schema allows, never fewer. For a schema that says nothing to the compiler, any. */
type SkillCode<Input, Output, Config extends SkillConfig> = unknown extends Input
  ? SkillDefinition<unknown, Output, Config>['run']
  : (input: Input, ctx: SkillContext<Config>) => Output | Promise<Output>;

/**
 * Types a skill: the input and the output of `run` from its schemas, and `ctx.config` from the settings that it declares.
 * Returns it as it is.
 */
export function defineSkill<
  const Parameters extends object,
  const Output extends object,
  const Config extends SkillConfig = SkillConfig,
>(
  skill: TypedSkill<Parameters, Output, Config>,
): SkillDefinition<SkillInput<Parameters>, SkillOutput<Output>, Config> {
  // The schema of a library may have a type without an index signature.
  return skill as SkillDefinition<unknown, unknown, Config> as typeof skill & {
    parameters: JsonSchema;
    output: JsonSchema;
  };
}

/**
 * An error that says how the platform treats it: `retryable: false` ends the job at once, and `code`
 * becomes the job's `error.code` if it is one of the codes below. Any error with these two fields is
 * treated alike; this class is a convenience.
 */
export class SkillError extends Error {
  readonly code: 'skill_execution_failed' | 'missing_credentials' | 'upstream_unavailable';
  readonly retryable: boolean;
  /** Milliseconds before the next attempt, where that is longer than the usual delay; at most an hour counts. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: {
      code?: 'skill_execution_failed' | 'missing_credentials' | 'upstream_unavailable';
      retryable?: boolean;
      retryAfterMs?: number | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'SkillError';
    this.code = options.code ?? 'skill_execution_failed';
    this.retryable = options.retryable ?? true;
    this.retryAfterMs = options.retryAfterMs;
  }
}
