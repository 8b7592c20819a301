/** The settings of a generation. */

import type { ModelCall } from '../../adapters/models/model.ts';
import type { TextSize } from '../../adapters/models/text-size.ts';
import type { Unanswered } from './call-retries.ts';
import type { Patience } from './pace/patience.ts';
import type { PricedCall } from './recorded-generation.ts';

/** The settings that all turns of a generation share. */
export interface Generation {
  readonly id: string;
  /** The step of the part of the run that asks, null for the run itself. */
  readonly parent: number | null;
  /** What its calls of the model have in common. */
  readonly call: Omit<ModelCall, 'settings' | 'messages' | 'tools' | 'maxOutputTokens' | 'onText'>;
  /** The version of the agent. */
  readonly agentVersion: number;
  /** Whether the agent may give tasks to others. */
  readonly mayDelegate: boolean;
  /** Fallback models for the one of `call`, in order. */
  readonly fallbacks: readonly string[];
  /** Sentences about settings that were left out of calls, each of which is logged once. */
  readonly leftOut: Set<string>;
  /** Models that refused a request with files: they are asked with lines of text in place of the files. */
  readonly withoutFiles: Set<string>;
  /** Most tokens of one answer. */
  readonly output: number;
  /** The size of a request beside its messages and tools. */
  readonly overhead: TextSize;
  /** The model's context window, in tokens; smaller after a provider has refused a prompt for its length. */
  window: number;
  /** Index in the dialogue of the message to be answered; earlier ones may be left out. */
  readonly task: number;
  readonly isDialogue: boolean;
  /** Whether a guard asks. */
  readonly isOfGuard: boolean;
  /** Whether what its models are sent is kept. */
  readonly keepsPrompts: boolean;
  /** How long its turns wait for providers. */
  readonly patience: Patience;
  /** Calls without an answer that the provider may have charged. */
  readonly unanswered: Unanswered;
  /** Tokens at which a budget cut an answer, by `triesKey`: the call was made again, or is to be made again. */
  readonly cuts: Map<string, number>;
  /** The SKILL.md skill whose files its tools read; empty without one. */
  readonly files: string;
  /** Of each call, also of one without an answer. */
  readonly costs: PricedCall[];
}
