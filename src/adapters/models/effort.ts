/**
 * The effort of a model's reasoning in its provider's form: `reasoning_effort` in chat completions; in
 * Anthropic's messages an effort for the models that decide themselves how long they think, and a number of
 * tokens to think with for the others.
 */
import { thinkingOf } from './known-models.ts';
import type { Effort, ModelCall } from './model.ts';
import type { Opaque } from './prompt.ts';
import type { Protocol } from './providers.ts';

/** The part of an answer's tokens that a model may think with. */
const shares: Readonly<Record<Exclude<Effort, 'none'>, number>> = {
  minimal: 0.1,
  low: 0.25,
  medium: 0.4,
  high: 0.6,
  xhigh: 0.75,
  max: 0.85,
};
/** The bounds of that number; Anthropic takes no smaller one. */
const thinkingTokens = { min: 1_024, max: 24_000 };
/** The least tokens that remain for the text of the answer. */
const spokenMin = 256;

/** What a call asks of a model's reasoning, in the SDK's form. */
export interface EffortOptions {
  /** The rest of the answer's tokens. */
  readonly maxOutputTokens: number;
  readonly openai?: { readonly reasoningEffort: Effort };
  readonly anthropic?: {
    readonly thinking:
      | { readonly type: 'adaptive' | 'disabled' }
      | { readonly type: 'enabled'; readonly budgetTokens: number };
    readonly effort?: Exclude<Effort, 'none' | 'minimal'>;
  };
}

export function effortOptions(protocol: Protocol, call: EffortCall): EffortOptions {
  const { effort, maxOutputTokens, model } = call;
  if (effort === undefined) return { maxOutputTokens };
  if (protocol === 'chat') return { maxOutputTokens, openai: { reasoningEffort: effort } };
  if (thinkingOf(model) === 'adaptive') {
    if (effort === 'none')
      return { maxOutputTokens, anthropic: { thinking: { type: 'disabled' } } };
    const told = effort === 'minimal' ? 'low' : effort;
    return { maxOutputTokens, anthropic: { thinking: { type: 'adaptive' }, effort: told } };
  }
  const budgetTokens = effort === 'none' ? 0 : thoughtsOf(effort, maxOutputTokens);
  if (budgetTokens === 0 || !mayThink(call)) return { maxOutputTokens };
  return {
    // The SDK adds the budget to it.
    maxOutputTokens: maxOutputTokens - budgetTokens,
    anthropic: { thinking: { type: 'enabled', budgetTokens } },
  };
}

type EffortCall = Pick<ModelCall, 'effort' | 'maxOutputTokens' | 'model' | 'messages'>;

/** Tokens to think with; 0 where the answer has too few for it. */
function thoughtsOf(effort: keyof typeof shares, answerTokens: number): number {
  const { min, max } = thinkingTokens;
  if (answerTokens < min + spokenMin) return 0;
  const share = Math.round(answerTokens * shares[effort]);
  return Math.min(max, answerTokens - spokenMin, Math.max(min, share));
}

/**
 * Anthropic refuses to think on in an exchange whose last answer called tools without having thought, as the
 * answer of another model has.
 */
function mayThink({ model, messages }: EffortCall): boolean {
  const exchange = messages.slice(1 + messages.findLastIndex(({ role }) => role === 'user'));
  const last = exchange.findLast((message) => message.role === 'assistant');
  if (last === undefined) return true;
  const { model: own, parts } = (last.opaque ?? {}) as Partial<Opaque>;
  return own === model && parts?.some(({ type }) => type === 'reasoning') === true;
}
