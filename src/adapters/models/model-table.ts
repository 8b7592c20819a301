/**
 * What is known of models: what they can, and what they cost. Only what is certain is listed. The operator adds to it and
 * replaces it by `MODEL_ABILITIES` and `MODEL_PRICES`; `node scripts/missing-models.ts` says what is missing.
 *
 * Abilities are those that the providers document as of `tableDate`: developers.openai.com/api/docs/models and
 * platform.claude.com/docs/en/about-claude/models, with the pages of the models; for Gemini, xAI, Groq and Mistral those of
 * ai.google.dev, docs.x.ai, console.groq.com and docs.mistral.ai as of December 2025, so newer models of theirs are not
 * listed. Another provider, such as a gateway, may translate what the model itself would refuse. A model that no entry matches
 * gets every setting.
 *
 * Prices are what OpenAI, Anthropic and, for three models, Google ask for a million tokens at their standard rate, in dollars. Only models are listed
 * whose prices are certain; others have an unknown price until the operator sets it. A price that changes gets
 * another line with its first day, so that what is in here stays true for its time.
 *
 * Sources: developers.openai.com/api/docs/pricing and the pages of the models beside it, and
 * platform.claude.com/docs/en/about-claude/pricing with the pages of the models, as of November 2026; before 2026
 * platform.openai.com/docs/pricing and docs.anthropic.com/en/docs/about-claude/pricing, as of November 2025. The first
 * day of a model is that of its release there, and an earlier one only where the release is known to be later.
 * The prices of Gemini 3, xAI, Groq, Mistral, Azure and Bedrock are not known here. Google's are those of texts, from
 * December 2025 on. GPT-5.6 Sol is missing: its price was a promotion until 21 November 2026, and what follows is not known here.
 *
 * Anthropic's `cache_write` is that of entries of five minutes, which the platform asks for. OpenAI's is that of
 * entries of 30 minutes from GPT-5.6 on; before that it writes for free beside the input. Reasoning is billed as output
 * by both.
 */
import type { Effort } from './model.ts';

/**
 * The last day on which the entries were compared with what the providers document.
 *
 * @public For scripts/missing-models.ts.
 */
export const tableDate = '2026-11-29';

/** When a model takes a temperature: always, never, only with the effort `none`, only without another effort. */
export const temperatureRules = ['always', 'never', 'effort-none', 'no-effort'] as const;
type TemperatureRule = (typeof temperatureRules)[number];

/** How models of messages are told to think: with a number of tokens, or with an effort. */
export const thinkingForms = ['budget', 'adaptive'] as const;
export type ThinkingForm = (typeof thinkingForms)[number];

/** What a model can; undefined where it is not known. */
export interface Abilities {
  /** The efforts that it takes; empty where it takes none. */
  readonly efforts?: readonly Effort[];
  readonly temperature?: TemperatureRule;
  /** Whether it reasons where it is sent no effort. */
  readonly reasons?: boolean;
  readonly thinking?: ThinkingForm;
  /**
   * The effort of a chat completion with tools, where OpenAI refuses any other: `default` is none that is sent, `none`
   * has to be sent, because the model's default is refused too.
   */
  readonly effortWithTools?: 'default' | 'none';
  readonly tools?: boolean;
  readonly images?: boolean;
  /** Whether its answer can be held to a schema. */
  readonly schema?: boolean;
  /** Tokens of a prompt and its answer together. */
  readonly contextTokens?: number;
  /** Most tokens of an answer. */
  readonly outputTokens?: number;
}

interface ModelFamily extends Abilities {
  /** Of `provider/model`. */
  readonly models: RegExp;
}

const byEffort = ['low', 'medium', 'high'] as const;
const upToMax = [...byEffort, 'xhigh', 'max'] as const;
const any = ['none', 'minimal', ...upToMax] as const;

const plain: Abilities = { efforts: [], temperature: 'always' };
const older: Abilities = { ...plain, images: false, schema: false };
const o1: Abilities = { ...older, reasons: true, tools: false, contextTokens: 128_000 };
const seeing: Abilities = { images: true, schema: true };
const o: Abilities = {
  efforts: byEffort,
  temperature: 'never',
  reasons: true,
  schema: true,
  contextTokens: 200_000,
  outputTokens: 100_000,
};
const gpt5: Abilities = { ...seeing, contextTokens: 400_000, outputTokens: 128_000 };
const gpt6: Abilities = { ...seeing, contextTokens: 1_050_000, outputTokens: 128_000 };
const claude3: Abilities = { ...plain, images: true, schema: false, contextTokens: 200_000 };
const claude4: Abilities = {
  efforts: any,
  temperature: 'no-effort',
  thinking: 'budget',
  images: true,
  contextTokens: 200_000,
};
const claude: Abilities = {
  ...seeing,
  temperature: 'never',
  thinking: 'adaptive',
  contextTokens: 1_000_000,
  outputTokens: 128_000,
};

const gemini1: Abilities = {
  ...plain,
  ...seeing,
  contextTokens: 1_048_576,
  outputTokens: 8_192,
};
const gemini25: Abilities = {
  ...seeing,
  temperature: 'always',
  thinking: 'budget',
  reasons: true,
  contextTokens: 1_048_576,
  outputTokens: 65_536,
};
const grok: Abilities = { ...plain, ...seeing };
const groq: Abilities = {
  temperature: 'always',
  images: false,
  schema: false,
  contextTokens: 131_072,
};

/** The first match counts. */
export const families: readonly ModelFamily[] = [
  { models: /^openai\/gpt-3\.5/, ...older, contextTokens: 16_385, outputTokens: 4_096 },
  { models: /^openai\/gpt-4(-\d|$)/, ...older, contextTokens: 8_192, outputTokens: 8_192 },
  {
    models: /^openai\/gpt-4\.1/,
    ...plain,
    ...seeing,
    contextTokens: 1_047_576,
    outputTokens: 32_768,
  },
  {
    models: /^openai\/gpt-4(-turbo|o-2024-05-13)/,
    ...plain,
    images: true,
    schema: false,
    contextTokens: 128_000,
    outputTokens: 4_096,
  },
  {
    models: /^openai\/gpt-4o(-mini)?(-20|$)/,
    ...plain,
    ...seeing,
    contextTokens: 128_000,
    outputTokens: 16_384,
  },
  { models: /^openai\/(gpt-4|chatgpt-4o)/, ...plain },
  {
    models: /^openai\/gpt-5-chat/,
    ...plain,
    images: true,
    tools: false,
    schema: false,
    contextTokens: 128_000,
    outputTokens: 16_384,
  },
  { models: /^openai\/o1-mini/, ...o1, outputTokens: 65_536 },
  { models: /^openai\/o1-preview/, ...o1, outputTokens: 32_768 },
  { models: /^openai\/o3-mini/, ...o, images: false },
  { models: /^openai\/o\d/, ...o, images: true },
  {
    models: /^openai\/gpt-5(-|$)/,
    ...gpt5,
    efforts: ['minimal', ...byEffort],
    temperature: 'never',
    reasons: true,
  },
  {
    models: /^openai\/gpt-5\.1(-|$)/,
    ...gpt5,
    efforts: ['none', ...byEffort],
    temperature: 'effort-none',
  },
  {
    models: /^openai\/gpt-5\.([23]|4-(mini|nano))(-|$)/,
    ...gpt5,
    efforts: ['none', ...byEffort, 'xhigh'],
    temperature: 'effort-none',
    effortWithTools: 'default',
  },
  {
    models: /^openai\/gpt-5\.[45](-|$)/,
    ...gpt6,
    efforts: ['none', ...byEffort, 'xhigh'],
    temperature: 'effort-none',
    effortWithTools: 'default',
  },
  {
    models: /^openai\/gpt-5\.([6-9]|\d\d)(-|$)/,
    ...gpt6,
    efforts: ['none', ...upToMax],
    temperature: 'effort-none',
    reasons: true,
    effortWithTools: 'none',
  },
  {
    models: /^openai\/gpt-6(-astra|\.1-sol|\.2-)/,
    ...gpt6,
    efforts: upToMax,
    temperature: 'never',
    reasons: true,
    effortWithTools: 'default',
  },
  {
    models: /^openai\/gpt-([6-9]|\d\d)/,
    ...gpt6,
    efforts: ['none', ...upToMax],
    temperature: 'effort-none',
    effortWithTools: 'default',
  },
  { models: /^anthropic\/claude-(instant|v?2(?!\d))/, ...older },
  { models: /^anthropic\/claude-3-(haiku|sonnet|opus)/, ...claude3, outputTokens: 4_096 },
  { models: /^anthropic\/claude-3-5-/, ...claude3, outputTokens: 8_192 },
  {
    models: /^anthropic\/claude-(3-7|sonnet-4(-0)?(-20\d{6}|@.*|-latest)?$)/,
    ...claude4,
    schema: false,
    outputTokens: 64_000,
  },
  { models: /^anthropic\/claude-opus-4-1/, ...claude4, schema: true, outputTokens: 32_000 },
  {
    models: /^anthropic\/claude-(sonnet|opus|haiku)-4-5/,
    ...claude4,
    schema: true,
    outputTokens: 64_000,
  },
  {
    models: /^anthropic\/claude-opus-4(-0)?(-20\d{6}|@.*|-latest)?$/,
    ...claude4,
    schema: false,
    outputTokens: 32_000,
  },
  {
    models: /^anthropic\/claude-(sonnet|opus)-4-6/,
    ...claude,
    efforts: ['none', ...byEffort, 'max'],
    temperature: 'no-effort',
  },
  {
    models: /^anthropic\/claude-((sonnet|opus)-5-5|fable-5)/,
    ...claude,
    efforts: upToMax,
    reasons: true,
  },
  { models: /^anthropic\/claude-opus-4-[78]/, ...claude, efforts: ['none', ...upToMax] },
  {
    models: /^anthropic\/claude-(opus|sonnet|haiku)-5/,
    ...claude,
    efforts: ['none', ...upToMax],
    reasons: true,
  },
  { models: /^gemini\/gemini-1\.5-pro/, ...gemini1, contextTokens: 2_097_152 },
  { models: /^gemini\/gemini-(1\.5-flash|2\.0-flash(?!-thinking))/, ...gemini1 },
  { models: /^gemini\/gemini-2\.5-pro/, ...gemini25, efforts: ['minimal', ...upToMax] },
  { models: /^gemini\/gemini-2\.5-flash-lite/, ...gemini25, efforts: any, reasons: false },
  {
    models: /^gemini\/gemini-2\.5-flash(?!-image|-native|-preview-tts)/,
    ...gemini25,
    efforts: any,
  },
  { models: /^gemini\/gemini-[12]/, thinking: 'budget', schema: true },
  {
    models: /^gemini\/gemini-3-pro(-preview)?$/,
    ...gemini25,
    efforts: ['minimal', 'low', 'high', 'xhigh', 'max'],
    thinking: 'adaptive',
  },
  { models: /^gemini\/gemini-3-flash(-preview)?$/, ...gemini25, thinking: 'adaptive' },
  { models: /^gemini\/gemini-/, thinking: 'adaptive', reasons: true, schema: true },
  // It refuses an effort, although it always reasons.
  { models: /^xai\/grok-4(-0709|-latest)?$/, ...grok, reasons: true, contextTokens: 256_000 },
  { models: /^xai\/grok-4(-1)?-fast(-reasoning)?$/, ...grok, reasons: true },
  { models: /^xai\/grok-4(-1)?-fast-non-reasoning$/, ...grok },
  {
    models: /^xai\/grok-3-mini/,
    ...grok,
    efforts: ['low', 'high'],
    reasons: true,
    images: false,
    contextTokens: 131_072,
  },
  { models: /^xai\/grok-3/, ...grok, images: false, contextTokens: 131_072 },
  {
    models: /^groq\/openai\/gpt-oss-/,
    ...groq,
    efforts: byEffort,
    reasons: true,
    outputTokens: 65_536,
  },
  { models: /^groq\/llama-3\.3-70b-versatile$/, ...groq, efforts: [], outputTokens: 32_768 },
  { models: /^groq\/llama-3\.1-8b-instant$/, ...groq, efforts: [], outputTokens: 131_072 },
  // Of an answer that streams none can be held to a schema.
  { models: /^groq\//, schema: false },
  { models: /^mistral\/(mistral-large-24|codestral-25|pixtral-|open-mi)/, ...plain, schema: true },
  {
    models: /^bedrock\/.*anthropic\.claude-(3|(sonnet|opus)-4-20|(sonnet|opus|haiku)-4-[15])/,
    thinking: 'budget',
  },
  { models: /^bedrock\/.*anthropic\.claude-/, thinking: 'adaptive', temperature: 'no-effort' },
  // Names that no entry above matches are of newer models, which are as the newest ones are.
  { models: /^anthropic\/claude-/, thinking: 'adaptive', reasons: true, schema: true },
];

/** How many times the rates all tokens of a call with a long prompt cost. */
interface LongPrompts {
  /** Tokens of the prompt, with those of the cache. */
  readonly over: number;
  readonly input: number;
  readonly output: number;
}

const openAiLong: LongPrompts = { over: 272_000, input: 2, output: 1.5 };
const geminiLong: LongPrompts = { over: 200_000, input: 2, output: 1.5 };
const haikuLong: LongPrompts = { over: 100_000, input: 5, output: 5 };

/** The model, its first day, input, read from a cache, written to a cache, output. */
type Line = readonly [
  model: string,
  from: string,
  input: number,
  cacheRead: number,
  cacheWrite: number,
  output: number,
  long?: LongPrompts,
];

export const priceLines: readonly Line[] = [
  ['openai/gpt-6.2-sol', '2026-10-01', 2, 0.1, 2.5, 10, openAiLong],
  ['openai/gpt-6.1-sol', '2026-09-29', 2, 0.1, 2.5, 10, openAiLong],
  ['openai/gpt-6-sol', '2026-09-22', 2, 0.2, 2.5, 10, openAiLong],
  ['openai/gpt-6-luna', '2026-09-22', 0.1, 0.01, 0.125, 0.5, openAiLong],
  ['openai/gpt-6-astra', '2026-09-03', 10, 1, 12.5, 50, openAiLong],
  ['openai/gpt-5.6-terra', '2026-07-30', 2, 0.2, 2.5, 12, openAiLong],
  ['openai/gpt-5.6-terra', '2026-07-09', 2.5, 0.25, 3.125, 15, openAiLong],
  ['openai/gpt-5.6-luna', '2026-07-30', 0.2, 0.02, 0.25, 1.2, openAiLong],
  ['openai/gpt-5.6-luna', '2026-07-09', 1, 0.1, 1.25, 6, openAiLong],
  ['openai/gpt-5.5', '2026-04-23', 5, 0.5, 5, 30, openAiLong],
  ['openai/gpt-5.4', '2026-03-05', 2.5, 0.25, 2.5, 15, openAiLong],
  ['openai/gpt-5.4-mini', '2026-03-17', 0.75, 0.075, 0.75, 4.5],
  ['openai/gpt-5.4-nano', '2026-03-17', 0.2, 0.02, 0.2, 1.25],
  ['openai/gpt-5.2', '2025-12-11', 1.75, 0.175, 1.75, 14],
  ['openai/gpt-5.1', '2025-11-13', 1.25, 0.125, 1.25, 10],
  ['openai/gpt-5', '2025-08-07', 1.25, 0.125, 1.25, 10],
  ['openai/gpt-5-mini', '2025-08-07', 0.25, 0.025, 0.25, 2],
  ['openai/gpt-5-nano', '2025-08-07', 0.05, 0.005, 0.05, 0.4],
  ['openai/gpt-4.1', '2025-04-14', 2, 0.5, 2, 8],
  ['openai/gpt-4.1-mini', '2025-04-14', 0.4, 0.1, 0.4, 1.6],
  ['openai/gpt-4.1-nano', '2025-04-14', 0.1, 0.025, 0.1, 0.4],
  ['openai/gpt-4o', '2024-10-02', 2.5, 1.25, 2.5, 10],
  ['openai/gpt-4o-2024-05-13', '2024-05-13', 5, 5, 5, 15],
  ['openai/gpt-4o-mini', '2024-10-02', 0.15, 0.075, 0.15, 0.6],
  ['openai/o3', '2025-06-10', 2, 0.5, 2, 8],
  ['openai/o4-mini', '2025-04-16', 1.1, 0.275, 1.1, 4.4],
  ['openai/o3-mini', '2025-01-31', 1.1, 0.55, 1.1, 4.4],
  ['openai/o1', '2024-12-17', 15, 7.5, 15, 60],
  ['anthropic/claude-fable-5-1', '2026-09-01', 10, 0.25, 12.5, 50],
  ['anthropic/claude-fable-5', '2026-06-09', 10, 1, 12.5, 50],
  ['anthropic/claude-opus-5-5', '2026-09-22', 4, 0.2, 5, 20],
  ['anthropic/claude-opus-5', '2026-07-24', 5, 0.5, 6.25, 25],
  ['anthropic/claude-opus-4-8', '2026-05-28', 5, 0.5, 6.25, 25],
  ['anthropic/claude-opus-4-7', '2026-04-16', 5, 0.5, 6.25, 25],
  ['anthropic/claude-opus-4-6', '2026-02-05', 5, 0.5, 6.25, 25],
  ['anthropic/claude-sonnet-5-5', '2026-10-07', 2, 0.1, 2.5, 10],
  ['anthropic/claude-sonnet-5-5', '2026-09-28', 2, 0.2, 2.5, 10],
  ['anthropic/claude-sonnet-5', '2026-06-30', 2, 0.2, 2.5, 10],
  ['anthropic/claude-sonnet-4-6', '2026-02-17', 3, 0.3, 3.75, 15],
  ['anthropic/claude-haiku-5-5', '2026-10-07', 0.1, 0.01, 0.125, 0.5, haikuLong],
  ['anthropic/claude-opus-4-5', '2025-11-24', 5, 0.5, 6.25, 25],
  ['anthropic/claude-opus-4-1', '2025-08-05', 15, 1.5, 18.75, 75],
  ['anthropic/claude-opus-4', '2025-05-22', 15, 1.5, 18.75, 75],
  ['anthropic/claude-sonnet-4-5', '2025-09-29', 3, 0.3, 3.75, 15],
  ['anthropic/claude-sonnet-4', '2025-05-22', 3, 0.3, 3.75, 15],
  ['anthropic/claude-3-7-sonnet', '2025-02-24', 3, 0.3, 3.75, 15],
  ['anthropic/claude-3-5-sonnet', '2024-10-22', 3, 0.3, 3.75, 15],
  ['anthropic/claude-haiku-4-5', '2025-10-15', 1, 0.1, 1.25, 5],
  ['anthropic/claude-3-5-haiku', '2024-12-05', 0.8, 0.08, 1, 4],
  ['anthropic/claude-3-haiku', '2024-08-14', 0.25, 0.03, 0.3, 1.25],
  ['gemini/gemini-2.5-pro', '2025-12-01', 1.25, 0.125, 1.25, 10, geminiLong],
  ['gemini/gemini-2.5-flash', '2025-12-01', 0.3, 0.03, 0.3, 2.5],
  ['gemini/gemini-2.5-flash-lite', '2025-12-01', 0.1, 0.01, 0.1, 0.4],
];
