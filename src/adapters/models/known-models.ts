/**
 * What is known of a model's abilities: the built-in table (`model-table.ts`), and what the operator says beside it. A model
 * of which nothing is known gets everything that is asked for.
 */
import type { Issue } from '../../kernel/errors.ts';
import type { Effort } from './model.ts';
import { type Abilities, families } from './model-table.ts';

/** The abilities of `model` (`provider/name`), as an operator knows them. A `*` at its end stands for any rest. */
export interface OperatorAbilities {
  readonly model: string;
  readonly abilities: Abilities;
}

/** The settings that not every model takes. */
export interface ChosenSettings {
  readonly temperature?: number | undefined;
  readonly effort?: Effort | undefined;
}

/** The settings of an agent that depend on its model. */
interface AgentSettings extends ChosenSettings {
  readonly context_tokens?: number | undefined;
  readonly max_output_tokens?: number | undefined;
}

/** What a call is sent in place of what was asked for. */
export interface TakenSettings extends ChosenSettings {
  readonly takesTools: boolean;
  readonly takesSchema: boolean;
  /** Pictures and PDF. */
  readonly takesFiles: boolean;
  /** Most tokens of an answer. */
  readonly outputTokens: number;
  readonly thinking: Abilities['thinking'];
  /** False where it is known to reason never. */
  readonly mayReason: boolean;
  /** Sentences for the log: what the call is sent in place of the chosen settings. */
  readonly notes: readonly string[];
}

/** The highest temperature of the messages protocol. */
const messagesTemperatureMax = 1;

/** OpenAI's name of a fine-tuned model, which can what its base can. */
const fineTuned = /(?<=^openai\/)ft:([^:]+):.*$/;

export class KnownModels {
  readonly #operators: readonly OperatorAbilities[];

  constructor(operators: readonly OperatorAbilities[]) {
    this.#operators = operators;
  }

  /** The operator's entries count first: that of the name, then the one that says most of it. */
  of(model: string): Abilities {
    const base = model.replace(fineTuned, '$1');
    const builtIn = families.find(({ models }) => models.test(base));
    const own = this.#operators
      .filter((one) => matches(one.model, model))
      .sort((a, b) => a.model.length - b.model.length);
    const exact = own.find((one) => one.model === model);
    const all = [builtIn, ...own.map(({ abilities }) => abilities), exact?.abilities];
    return Object.assign({}, ...all);
  }

  /** The settings that the model does not support, with reasons; empty for unknown models. */
  faultsOf(model: string, settings: AgentSettings): Issue[] {
    const known = this.of(model);
    const { context_tokens: window, max_output_tokens: output } = settings;
    const faults = refusedSettings(model, known, settings);
    if (window !== undefined && window > (known.contextTokens ?? Infinity)) {
      const issue = `must be at most ${known.contextTokens} for ${model}`;
      faults.push({ field: 'context_tokens', issue });
    }
    if (output !== undefined && output > (known.outputTokens ?? Infinity)) {
      const issue = `must be at most ${known.outputTokens} for ${model}`;
      faults.push({ field: 'max_output_tokens', issue });
    }
    return faults;
  }

  /** What the model supports of a call; chat completions refuse an effort beside the tools of some models. */
  takenBy(model: string, chosen: ChosenSettings, isChatWithTools: boolean): TakenSettings {
    const known = this.of(model);
    const { temperature, effort } = chosen;
    const refused = new Set(refusedSettings(model, known, chosen).map(({ field }) => field));
    const notes = (['temperature', 'effort'] as const)
      .filter((name) => refused.has(name))
      .map((name) => `${model} does not take the ${name} that was asked for: it is left out`);
    const own = refused.has('effort') ? undefined : effort;
    const withTools = isChatWithTools ? known.effortWithTools : undefined;
    const isReplaced = withTools !== undefined && own !== 'none';
    const sent = isReplaced ? (withTools === 'none' ? 'none' : undefined) : own;
    if (sent !== own) notes.push(effortNote(model, sent));
    return {
      temperature: refused.has('temperature') ? undefined : temperature,
      effort: sent,
      takesTools: known.tools ?? true,
      takesSchema: known.schema ?? true,
      takesFiles: known.images ?? true,
      outputTokens: known.outputTokens ?? Infinity,
      thinking: known.thinking,
      mayReason: known.reasons ?? known.efforts?.length !== 0,
      notes,
    };
  }

  /**
   * Whether a call with this effort reasons, as far as is known: with any but `none`, and without one where the model does
   * so by default.
   */
  reasonsWith(model: string, effort: Effort | undefined): boolean {
    return effort === undefined ? this.of(model).reasons === true : effort !== 'none';
  }

  /** The tokens that all of these models have room for, `otherwise` at most. */
  windowOf(models: readonly string[], otherwise: number): number {
    return Math.min(otherwise, ...models.map((model) => this.of(model).contextTokens ?? Infinity));
  }
}

function matches(pattern: string, model: string): boolean {
  return pattern.endsWith('*') ? model.startsWith(pattern.slice(0, -1)) : pattern === model;
}

function refusedSettings(
  model: string,
  known: Abilities,
  { temperature, effort }: ChosenSettings,
): Issue[] {
  const faults: Issue[] = [];
  const { efforts } = known;
  if (efforts !== undefined && effort !== undefined && !efforts.includes(effort)) {
    const taken = efforts.length === 0 ? 'none' : efforts.join(', ');
    faults.push({ field: 'effort', issue: `cannot be ${effort}: ${model} takes ${taken}` });
  }
  if (temperature === undefined) return faults;
  const why = refusedTemperature(known.temperature, effort);
  if (why !== null) faults.push({ field: 'temperature', issue: `cannot be set: ${model} ${why}` });
  else if (model.startsWith('anthropic/') && temperature > messagesTemperatureMax) {
    faults.push({ field: 'temperature', issue: `must be at most 1 for ${model}` });
  }
  return faults;
}

function refusedTemperature(
  takes: Abilities['temperature'],
  effort: Effort | undefined,
): string | null {
  switch (takes) {
    case undefined:
    case 'always':
      return null;
    case 'never':
      return 'takes none';
    case 'effort-none':
      return effort === 'none' ? null : 'takes one only with the effort none';
    case 'no-effort':
      return effort === undefined || effort === 'none' ? null : 'takes none beside an effort';
  }
}

function effortNote(model: string, sent: Effort | undefined): string {
  const why = `${model} takes no effort but none in chat completions with tools`;
  return sent === undefined ? `${why}: the effort is left out` : `${why}: it is called with none`;
}
