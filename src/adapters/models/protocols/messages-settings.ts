/**
 * What a call asks of a model in Anthropic's form: an effort for the models that decide themselves how long they think,
 * a number of tokens to think with for the others, and the schema of the answer.
 */
import type { Json } from '../../../kernel/json.ts';
import type { Effort, ModelCall } from '../model.ts';
import { partsOfTurn, type TurnPart } from '../prompt.ts';
import { closedSchema, isObjectSchema } from './sent-schemas.ts';

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

/** The efforts of models that know three. */
export const threeLevels: Readonly<Record<Effort, 'low' | 'medium' | 'high'>> = {
  none: 'low',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

interface Thinking {
  readonly thinking?:
    | { readonly type: 'adaptive' | 'disabled' }
    | { readonly type: 'enabled'; readonly budget_tokens: number };
  readonly effort?: Exclude<Effort, 'none' | 'minimal'>;
}

export function thinkingFor(call: ThinkingCall): Thinking {
  const { effort, maxOutputTokens } = call;
  if (effort === undefined) return {};
  if (call.thinking === 'adaptive') {
    if (effort === 'none') return { thinking: { type: 'disabled' } };
    return { thinking: { type: 'adaptive' }, effort: effort === 'minimal' ? 'low' : effort };
  }
  const budget = effort === 'none' ? 0 : thoughtsOf(effort, maxOutputTokens);
  if (budget === 0 || !mayThink(call)) return {};
  return { thinking: { type: 'enabled', budget_tokens: budget } };
}

/** The schema that the model is held to; undefined where its provider would refuse it: the system text has it, too. */
export function outputSchema(schema: Json): Json | undefined {
  return isObjectSchema(schema) ? (closedSchema(schema) ?? undefined) : undefined;
}

type ThinkingCall = Pick<
  ModelCall,
  'effort' | 'thinking' | 'maxOutputTokens' | 'model' | 'messages'
>;

/** Tokens to think with; 0 where the answer has too few for it. */
export function thoughtsOf(effort: keyof typeof shares, answerTokens: number): number {
  const { min, max } = thinkingTokens;
  if (answerTokens < min + spokenMin) return 0;
  const share = Math.round(answerTokens * shares[effort]);
  return Math.min(max, answerTokens - spokenMin, Math.max(min, share));
}

/**
 * Anthropic refuses to think on in an exchange whose last answer called tools without having thought, as the
 * answer of another model has.
 */
function mayThink({ model, messages }: ThinkingCall): boolean {
  const exchange = messages.slice(1 + messages.findLastIndex(({ role }) => role === 'user'));
  const last = exchange.findLast((message) => message.role === 'assistant');
  if (last === undefined) return true;
  return partsOfTurn(model, last).some(
    (part) => part.type === 'reasoning' && goesBack(model, part),
  );
}

/** Whether a part of a turn is sent: Anthropic refuses thoughts without its signature. */
export function goesBack(model: string, part: TurnPart): boolean {
  if (part.type !== 'reasoning' || !model.startsWith('anthropic/')) return true;
  return Object.keys(part.signed['anthropic'] ?? {}).length > 0;
}
