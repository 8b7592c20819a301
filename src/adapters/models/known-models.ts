/**
 * The settings that known models do not support, as documented by their providers on 2026-11-20. A model that no entry
 * matches gets every setting. There are only entries for OpenAI and Anthropic: another provider, such as a gateway,
 * may translate settings that the model itself would refuse.
 */
import type { Issue } from '../../kernel/errors.ts';
import type { Effort } from './model.ts';

/** When a model takes a temperature: always, never, only with the effort `none`, only without another effort. */
type TakesTemperature = 'always' | 'never' | 'effort-none' | 'no-effort';

interface KnownModel {
  /** Of `provider/model`. */
  readonly models: RegExp;
  /** The efforts that it takes; empty where it takes none. */
  readonly efforts: readonly Effort[];
  readonly temperature: TakesTemperature;
  /** Whether it reasons where it is sent no effort. */
  readonly reasonsByDefault?: boolean;
  /** How Anthropic's models are told to think: with a number of tokens, or with an effort. */
  readonly thinking?: 'budget' | 'adaptive';
  /**
   * The effort of a chat completion with tools, where OpenAI refuses any other: `default` is none that is sent, `none`
   * has to be sent, because the model's default is refused too.
   */
  readonly effortWithTools?: 'default' | 'none';
}

const byEffort = ['low', 'medium', 'high'] as const;
const any = ['none', 'minimal', ...byEffort, 'xhigh', 'max'] as const;

/** The first match counts. */
const knownModels: readonly KnownModel[] = [
  {
    models: /^openai\/(gpt-3\.5|gpt-4|chatgpt-4o|gpt-5-chat)/,
    efforts: [],
    temperature: 'always',
  },
  {
    models: /^openai\/o1-(mini|preview)/,
    efforts: [],
    temperature: 'always',
    reasonsByDefault: true,
  },
  { models: /^openai\/o\d/, efforts: byEffort, temperature: 'never', reasonsByDefault: true },
  {
    models: /^openai\/gpt-5(-|$)/,
    efforts: ['minimal', ...byEffort],
    temperature: 'never',
    reasonsByDefault: true,
  },
  { models: /^openai\/gpt-5\.1(-|$)/, efforts: ['none', ...byEffort], temperature: 'effort-none' },
  {
    models: /^openai\/gpt-5\.[2-5](-|$)/,
    efforts: ['none', ...byEffort, 'xhigh'],
    temperature: 'effort-none',
    effortWithTools: 'default',
  },
  {
    models: /^openai\/gpt-5\.([6-9]|\d\d)(-|$)/,
    efforts: ['none', ...byEffort, 'xhigh'],
    temperature: 'effort-none',
    reasonsByDefault: true,
    effortWithTools: 'none',
  },
  {
    models: /^openai\/gpt-([6-9]|\d\d)/,
    efforts: ['none', ...byEffort, 'xhigh'],
    temperature: 'effort-none',
    effortWithTools: 'default',
  },
  {
    models: /^anthropic\/claude-(instant|v?2(?!\d)|3-(haiku|sonnet|opus|5-))/,
    efforts: [],
    temperature: 'always',
  },
  {
    models:
      /^anthropic\/claude-(3-7|(sonnet|opus|haiku)-4-5|(sonnet|opus)-4(-[01])?(-20\d{6}|@.*|-latest)?$)/,
    efforts: any,
    temperature: 'no-effort',
    thinking: 'budget',
  },
  {
    models: /^anthropic\/claude-(sonnet|opus)-4-6/,
    efforts: ['none', ...byEffort, 'max'],
    temperature: 'no-effort',
    thinking: 'adaptive',
  },
  {
    models: /^anthropic\/claude-((sonnet|opus)-5-5|fable-5)/,
    efforts: [...byEffort, 'xhigh', 'max'],
    temperature: 'never',
    reasonsByDefault: true,
    thinking: 'adaptive',
  },
  {
    models: /^anthropic\/claude-opus-4-[78]/,
    efforts: ['none', ...byEffort, 'xhigh', 'max'],
    temperature: 'never',
    thinking: 'adaptive',
  },
  {
    models: /^anthropic\/claude-(opus|sonnet|haiku)-5/,
    efforts: ['none', ...byEffort, 'xhigh', 'max'],
    temperature: 'never',
    reasonsByDefault: true,
    thinking: 'adaptive',
  },
];

/** The settings that not every model takes. */
export interface ChosenSettings {
  readonly temperature?: number | undefined;
  readonly effort?: Effort | undefined;
}

/** The highest temperature of the messages protocol. */
const messagesTemperatureMax = 1;

/** The settings that the model does not support, with reasons; empty for unknown models. */
export function settingsFaults(model: string, { temperature, effort }: ChosenSettings): Issue[] {
  const faults: Issue[] = [];
  const known = knownModel(model);
  if (known !== undefined && effort !== undefined && !known.efforts.includes(effort)) {
    const taken =
      known.efforts.length === 0
        ? `${model} takes none`
        : `${model} takes ${known.efforts.join(', ')}`;
    faults.push({ field: 'effort', issue: `cannot be ${effort}: ${taken}` });
  }
  if (temperature === undefined) return faults;
  const why = known === undefined ? null : refusedTemperature(known.temperature, effort);
  if (why !== null) faults.push({ field: 'temperature', issue: `cannot be set: ${model} ${why}` });
  else if (model.startsWith('anthropic/') && temperature > messagesTemperatureMax) {
    faults.push({ field: 'temperature', issue: `must be at most 1 for ${model}` });
  }
  return faults;
}

function refusedTemperature(takes: TakesTemperature, effort: Effort | undefined): string | null {
  switch (takes) {
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

export interface TakenSettings extends ChosenSettings {
  /** Sentences for the log: what the call is sent in place of the chosen settings. */
  readonly notes: readonly string[];
}

/** The settings that the model supports; chat completions refuse an effort beside the tools of some models. */
export function takenSettings(
  model: string,
  { temperature, effort }: ChosenSettings,
  isChatWithTools: boolean,
): TakenSettings {
  const refused = new Set(settingsFaults(model, { temperature, effort }).map(({ field }) => field));
  const notes = (['temperature', 'effort'] as const)
    .filter((name) => refused.has(name))
    .map((name) => `${model} does not take the ${name} that was asked for: it is left out`);
  const own = refused.has('effort') ? undefined : effort;
  const withTools = isChatWithTools ? knownModel(model)?.effortWithTools : undefined;
  const isReplaced = withTools !== undefined && own !== 'none';
  const sent = isReplaced ? (withTools === 'none' ? 'none' : undefined) : own;
  if (sent !== own) notes.push(effortNote(model, sent));
  return {
    ...(temperature !== undefined && !refused.has('temperature') && { temperature }),
    ...(sent !== undefined && { effort: sent }),
    notes,
  };
}

function effortNote(model: string, sent: Effort | undefined): string {
  const why = `${model} takes no effort but none in chat completions with tools`;
  return sent === undefined ? `${why}: the effort is left out` : `${why}: it is called with none`;
}

/**
 * Whether a call with this effort reasons, as far as is known: with any but `none`, and without one where the model does
 * so by default.
 */
export function reasonsWith(model: string, effort: Effort | undefined): boolean {
  if (effort !== undefined) return effort !== 'none';
  const known = knownModel(model);
  return known === undefined ? isClaude(model) : known.reasonsByDefault === true;
}

/** How one of Anthropic's models is told to think. */
export function thinkingOf(model: string): 'budget' | 'adaptive' {
  return knownModel(model)?.thinking ?? (isClaude(model) ? 'adaptive' : 'budget');
}

/** Whether one of Anthropic's models holds its answer to a schema that it is sent: none before Claude 4.1 does. */
export function takesOutputSchema(model: string): boolean {
  return (
    isClaude(model) && !/claude-(instant|v?2|3|(sonnet|opus)-4(-0)?(-20\d{6}|@|$))/.test(model)
  );
}

/** Whether it is of Anthropic's families: names of them that no entry matches think as the newest ones do. */
function isClaude(model: string): boolean {
  return model.startsWith('anthropic/claude-');
}

function knownModel(model: string): KnownModel | undefined {
  return knownModels.find(({ models }) => models.test(model));
}
