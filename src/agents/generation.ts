/** The settings of a generation, and what a client is told while it is under way. */
import type { ToolCall, ToolOffer } from '../models/model.ts';
import type { CallCost } from './recorded-generation.ts';

/** What a client that follows the job is told while a model works. */
export type ThinkingReport =
  | { readonly type: 'token'; readonly data: { step: number; text: string } }
  | {
      readonly type: 'tool_call';
      readonly data: { step: number; call_id: string; tool: string; input: unknown };
    }
  | {
      readonly type: 'tool_result';
      readonly data: { step: number; call_id: string; tool: string } & (
        | { output: unknown }
        | { error: { code: string; message: string } }
      );
    }
  | {
      readonly type: 'message';
      readonly data: { role: 'assistant'; content: string; step: number };
    }
  | { readonly type: 'log'; readonly data: { message: string } };

/** The settings that all turns of a generation share. */
export interface Generation {
  readonly id: string;
  /** The step of the part of the run that asks, null for the run itself. */
  readonly parent: number | null;
  readonly organizationId: string;
  readonly model: string;
  readonly system: string;
  readonly offers: readonly ToolOffer[];
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  readonly temperature: number | undefined;
  /** Most tokens of one answer. */
  readonly output: number;
  /** Tokens of a request beside its messages, estimated. */
  readonly overhead: number;
  /** The model's context window, in tokens. */
  readonly window: number;
  /** Index in the dialogue of the message to be answered; earlier ones may be left out. */
  readonly task: number;
  readonly isDialogue: boolean;
  readonly signal: AbortSignal;
  /** By turn: calls without an answer that the provider may have charged. */
  readonly unanswered: Map<number, number>;
  /** The name of a tool on record. */
  nameOf(call: ToolCall): string;
  /** Receives the cost of each call, also of one without an answer. */
  onCost(cost: CallCost): void;
}
