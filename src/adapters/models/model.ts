/**
 * The port to models: one streamed call, with its usage as the provider reports it. The loop of an agent
 * does not depend on providers, and the adapters do not depend on agents. A call is made once; the
 * caller decides on retries.
 */

import type { ThinkingForm } from './model-table.ts';
import type { ProviderSettings } from './providers.ts';

/** Tokens of a call; null where the provider did not report them. */
export interface Usage {
  readonly prompt: number | null;
  readonly completion: number | null;
  /** Of the prompt's tokens, those that the provider read from its cache; left out where it reported none. */
  readonly cacheRead?: number;
  /** Of the prompt's tokens, those that the provider wrote to its cache. */
  readonly cacheWrite?: number;
  /** Of the answer's tokens, those of reasoning. */
  readonly reasoning?: number;
}

export const nothingReported: Usage = { prompt: null, completion: null };
export const nothingSpent: Usage = { prompt: 0, completion: 0 };

/** Whether the provider may charge for a call of this usage. */
export function mayBeCharged({ prompt, completion }: Usage): boolean {
  return prompt !== 0 || completion !== 0;
}

/** A tool that a model called. */
export interface ToolCall {
  /** The model's own id of the call. */
  readonly id: string;
  readonly name: string;
  /** The arguments as the model wrote them; they need not be JSON. */
  readonly input: string;
}

/** A tool that a model may call. */
export interface ToolOffer {
  /** `[a-zA-Z0-9_-]{1,64}`. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, which are an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The reasoning of a chat's answer, which some providers require in later requests. */
export interface Reasoning {
  /** `provider/model`; it is sent to this model only. */
  readonly model: string;
  /** The field of a chat message that carries it, in both directions. */
  readonly field: ReasoningField;
  readonly text: string;
}

export const reasoningFields = ['reasoning_content', 'reasoning'] as const;
export type ReasoningField = (typeof reasoningFields)[number];

/** A model's turn of a dialogue; stored as JSON, as the other turns are. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /**
   * JSON that the provider requires unchanged in later requests, such as signed reasoning. It is sent
   * to the same model only.
   */
  readonly opaque?: unknown;
  /** The reasoning before the text, where a chat sends it. */
  readonly reasoning?: Reasoning;
  /** Whether the token limit cut it. */
  readonly isCut?: boolean;
  /** The pictures that the model has made, which were kept as files. */
  readonly files?: readonly MadeFile[];
}

/** The result of a tool. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly callId: string;
  readonly name: string;
  /** The output or the error, as the model reads it. */
  readonly text: string;
  readonly isError: boolean;
  /** The step that has the whole result on record, where `text` is its beginning; no provider is told of it. */
  readonly whole?: { readonly job: string; readonly step: number; readonly characters: number };
  /** Files that the output names. A call has them in a message of the user after the results. */
  readonly files?: readonly AttachedFile[];
  readonly worded?: readonly GivenFile[];
}

/** How a model is given a file: as it is, as its text, or as a note that says why neither. */
export interface GivenFile {
  /** Null where nothing is known of it but its name. */
  readonly id: string | null;
  readonly name: string;
  readonly as: 'file' | 'text' | 'note';
  /** What a note says, or why of a text the beginning alone is given; else null. */
  readonly reason: string | null;
}

/** A picture or a PDF that a message of the user, or the result of a tool, is about. */
export interface AttachedFile {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  /** Tokens that it has at most. */
  readonly tokens: number;
}

/** A picture that a model has made. */
export interface MadeFile extends AttachedFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** A file as a provider is sent it. */
export interface FileContent extends Pick<AttachedFile, 'name' | 'mediaType'> {
  readonly base64: string;
}

export interface UserMessage {
  readonly role: 'user';
  readonly text: string;
  readonly files?: readonly AttachedFile[];
  /** Files that the text has in words. */
  readonly worded?: readonly GivenFile[];
  /** Of `files`, in a call alone. */
  readonly contents?: readonly FileContent[];
}

/** One turn of a dialogue, independent of any provider. */
export type DialogueMessage = UserMessage | AssistantMessage | ToolMessage;

/** How much a model is to reason, from not at all to as much as it can. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof efforts)[number];

/** A call of a model. */
export interface ModelCall {
  /** `provider/model`; the model's name may have further slashes. */
  readonly model: string;
  /** How the provider is reached; undefined where nothing is known of it. */
  readonly settings: ProviderSettings | undefined;
  readonly system: string;
  /** Ends with a message of the user or of tools. */
  readonly messages: readonly DialogueMessage[];
  readonly tools: readonly ToolOffer[];
  /**
   * Asks for JSON of this schema, of a model that can be held to one. Providers accept the schema of an object alone, so `system` has to
   * ask for it too, and the caller validates the answer.
   */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  readonly maxOutputTokens: number;
  /** Whether the model has to answer without a call of a tool; the tools are those that the dialogue has called. */
  readonly mustAnswer?: boolean | undefined;
  readonly temperature?: number | undefined;
  readonly effort?: Effort | undefined;
  /** Whether the model may reason; it may by default. */
  readonly mayReason?: boolean | undefined;
  /** How a model of messages is told its effort; as a number of tokens by default. */
  readonly thinking?: ThinkingForm | undefined;
  /** The longest time until the first byte of the answer; the adapter's own bound by default. */
  readonly firstByteTimeoutMs?: number | undefined;
  /** The longest time until the end of the answer; none by default. */
  readonly timeoutMs?: number | undefined;
  /** Aborts the call at once. */
  readonly signal: AbortSignal;
  /** Receives the text as it streams. */
  onText(delta: string): void;
}

/** A turn that a model finished. */
export interface ModelAnswer {
  readonly message: AssistantMessage;
  /**
   * `length`: cut at `maxOutputTokens`. `too-long`: cut at the platform's bound of the text. `refusal`: the text is a
   * refusal, which the provider marks as one.
   */
  readonly finish:
    | 'stop'
    | 'tool-calls'
    | 'length'
    | 'too-long'
    | 'content-filter'
    | 'refusal'
    | 'other';
  readonly usage: Usage;
  /** Pictures as base64; their kind is to be judged by their bytes. */
  readonly pictures?: readonly string[];
}

/** Why a call has no answer. */
export type ModelFault =
  /** The provider is unknown, or its credentials are missing or rejected. */
  | 'credentials'
  /** 408, 409, 429, 5xx, no connection, an interrupted or invalid stream: a retry may succeed. */
  | 'unavailable'
  /** The provider refuses the request or has no such model: a retry would fail too. */
  | 'refused'
  /** The signal aborted the call. */
  | 'aborted';

/**
 * `setting`: a setting, or a combination of settings. `model`: the model, or this account's use of it. `length`: a
 * request that is too long for the model or its provider. `reasoning`: earlier reasoning that the provider cannot verify.
 */
export type RefusedPart = 'setting' | 'model' | 'length' | 'reasoning';

/** A call without an answer. The message is a sentence for the operator, without secrets. */
export class ModelError extends Error {
  readonly fault: ModelFault;
  /** The delay that the provider asks for (Retry-After), in milliseconds; else null. */
  readonly retryAfterMs: number | null;
  /** The text that had arrived. */
  readonly text: string;
  /**
   * The usage of the failed call: zeros where the provider did no work (an error status other than 408
   * and 504), null where it is unknown.
   */
  readonly usage: Usage;
  /** UTF-8 bytes of all that the model had written: text, reasoning, arguments of tools. */
  readonly seenBytes: number;
  /** Whether the provider sent nothing for too long, or took too long for its answer. */
  readonly wasSilent: boolean;
  /** Whether no answer had begun when the connection, or a gateway in front of the provider, failed. */
  readonly isDown: boolean;
  /** Whether the connection failed, whatever the model. */
  readonly wasLost: boolean;
  /** Whether the provider limits how much is asked of it. */
  readonly isRateLimited: boolean;
  /** Whether the model, or its provider's filter, refused to answer, instead of the provider the request. */
  readonly isDeclined: boolean;
  /** What the provider refuses, where another model may take the call; else null. */
  readonly refuses: RefusedPart | null;

  constructor(
    fault: ModelFault,
    message: string,
    options: {
      retryAfterMs?: number | null;
      text?: string;
      usage?: Usage;
      seenBytes?: number;
      wasSilent?: boolean;
      isDown?: boolean;
      wasLost?: boolean;
      isRateLimited?: boolean;
      isDeclined?: boolean;
      refuses?: RefusedPart | null;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'ModelError';
    this.fault = fault;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.text = options.text ?? '';
    this.usage = options.usage ?? nothingSpent;
    this.seenBytes = options.seenBytes ?? 0;
    this.wasSilent = options.wasSilent ?? false;
    this.isDown = options.isDown ?? false;
    this.wasLost = options.wasLost ?? false;
    this.isRateLimited = options.isRateLimited ?? false;
    this.isDeclined = options.isDeclined ?? false;
    this.refuses = options.refuses ?? null;
  }
}

export interface Models {
  /** Calls a model; throws only ModelErrors. */
  call(call: ModelCall): Promise<ModelAnswer>;
  /** Counts a call that could not be made, because its settings could not be read. */
  countUnmade(fault: ModelFault): void;
}
