/**
 * The port to models: one call, streamed, with its usage as the provider reports it. The loop of an
 * agent knows nothing of providers, and the adapters behind this know nothing of agents. A call is
 * made once: whether and when it is made again is decided by whoever asked.
 */

/** What a call cost; null where the provider did not say. */
export interface Usage {
  readonly prompt: number | null;
  readonly completion: number | null;
}

export const nothingReported: Usage = { prompt: null, completion: null };
export const nothingSpent: Usage = { prompt: 0, completion: 0 };

/** Whether the provider may ask money for a call that cost this. */
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

/** What a model may call. */
export interface ToolOffer {
  /** `[a-zA-Z0-9_-]{1,64}`. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object's. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The reasoning of an answer in a chat, which some providers want to see again. */
export interface Reasoning {
  /** `provider/model`: no other model is shown it. */
  readonly model: string;
  /** The field of a chat's message that it came in and goes back in. */
  readonly field: ReasoningField;
  readonly text: string;
}

export const reasoningFields = ['reasoning_content', 'reasoning'] as const;
export type ReasoningField = (typeof reasoningFields)[number];

/** What a model said; kept as JSON, as the other turns of a dialogue are. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /**
   * What the provider wants to see again unchanged (signed reasoning, for example); JSON, to be
   * shown to the same model only.
   */
  readonly opaque?: unknown;
  /** What it thought before it spoke, where a chat says that. */
  readonly reasoning?: Reasoning;
  /** Whether it ended because it had reached its most tokens. */
  readonly isCut?: boolean;
}

/** What a tool answered. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly callId: string;
  readonly name: string;
  /** What the tool gave, or what went wrong, as the model reads it. */
  readonly text: string;
  readonly isError: boolean;
}

/** One turn of a dialogue, in no provider's words. */
export type DialogueMessage =
  | { readonly role: 'user'; readonly text: string }
  | AssistantMessage
  | ToolMessage;

/** What a model is asked. */
export interface ModelCall {
  /** `provider/model`; the model's name may have further slashes. */
  readonly model: string;
  readonly organizationId: string;
  readonly system: string;
  /** Ends with a message of the user or of tools. */
  readonly messages: readonly DialogueMessage[];
  readonly tools: readonly ToolOffer[];
  /**
   * Asks for JSON of this schema where providers take it, which they do of an object's alone: `system`
   * has to say it, too. What comes back is judged by whoever asked.
   */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  readonly maxOutputTokens: number;
  readonly temperature?: number | undefined;
  /** Stops the call at once. */
  readonly signal: AbortSignal;
  /** Hears the text as it comes. */
  onText(delta: string): void;
}

/** A turn that a model finished. */
export interface ModelAnswer {
  readonly message: AssistantMessage;
  /** `length` when the output was cut at its most tokens, `too-long` when its text was at our bound. */
  readonly finish: 'stop' | 'tool-calls' | 'length' | 'too-long' | 'content-filter' | 'other';
  readonly usage: Usage;
}

/** Why a call gave no answer. */
export type ModelFault =
  /** No credentials for the provider, or none that it accepts; or no such provider. */
  | 'credentials'
  /** 408, 409, 429, 5xx, no connection, a stream that broke off or makes no sense: may pass. */
  | 'unavailable'
  /** The provider refuses this very request, or has no such model; again would be the same. */
  | 'refused'
  /** The signal. */
  | 'aborted';

/** A call that gave no answer. The message is a sentence for the operator, without secrets. */
export class ModelError extends Error {
  readonly fault: ModelFault;
  /** Milliseconds that the provider asks to be left alone for (Retry-After), null when it does not. */
  readonly retryAfterMs: number | null;
  /** What had come before the end. */
  readonly text: string;
  /**
   * What the call cost all the same: zeros where the provider did no work (it answered with an error
   * status other than 408 and 504), null where nobody knows.
   */
  readonly usage: Usage;
  /** Whether the provider sent nothing for too long. */
  readonly wasSilent: boolean;

  constructor(
    fault: ModelFault,
    message: string,
    options: {
      retryAfterMs?: number | null;
      text?: string;
      usage?: Usage;
      wasSilent?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'ModelError';
    this.fault = fault;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.text = options.text ?? '';
    this.usage = options.usage ?? nothingSpent;
    this.wasSilent = options.wasSilent ?? false;
  }
}

export interface Models {
  /** Asks a model; throws a ModelError and nothing else. */
  call(call: ModelCall): Promise<ModelAnswer>;
}
