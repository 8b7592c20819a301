/**
 * Settings of calls of models. A skill's request overrides the agent's settings, which override the platform's
 * defaults.
 */

import { KnownModels } from '../../adapters/models/known-models.ts';
import type { Effort, ModelCall } from '../../adapters/models/model.ts';
import { invalid, invalidIn } from '../../kernel/errors.ts';
import type { Config } from '../config/config.ts';
import type { settingBounds } from './setting-bounds.ts';

export interface ModelSettings extends Partial<Record<keyof typeof settingBounds, number>> {
  readonly effort?: Effort;
}

/** The settings as a client gives them; null for one that it leaves to the platform. */
export type GivenSettings = { readonly [Name in keyof ModelSettings]: ModelSettings[Name] | null };

/** The fields of an agent that decide how its model is called. */
export interface CalledModel {
  /** Null for the platform's model. */
  readonly model: string | null;
  readonly settings: ModelSettings;
  /** Fallback models, in order. */
  readonly fallbacks: readonly string[];
}

/** Throws `400 validation_error` for settings that contradict each other or that one of the models refuses. */
export function requireTaken(
  { model, settings, fallbacks }: CalledModel,
  {
    defaultModel,
    modelContextTokens,
    modelAbilities,
  }: Pick<Config, 'defaultModel' | 'modelContextTokens' | 'modelAbilities'>,
): void {
  const known = new KnownModels(modelAbilities);
  const name = model ?? defaultModel;
  const models = name === null ? fallbacks : [name, ...fallbacks];
  const { max_output_tokens: output } = settings;
  const window = settings.context_tokens ?? known.windowOf(models, modelContextTokens);
  // A fallback model may give a shorter answer.
  const ofFallbacks = { ...settings, max_output_tokens: undefined };
  const faults = models.flatMap((one) =>
    known.faultsOf(one, one === name ? settings : ofFallbacks),
  );
  const own = model === null ? -1 : fallbacks.indexOf(model);
  if (own >= 0) throw invalid(`fallback_models.${own}`, "must not be the agent's own model");
  if (output !== undefined && output > window / 2) {
    const issue = `must be at most half of the context, which has ${window} tokens`;
    faults.unshift({ field: 'max_output_tokens', issue });
  }
  if (faults.length === 0) return;
  throw invalidIn(faults.map((fault) => ({ ...fault, field: `model_settings.${fault.field}` })));
}

/** The settings as they are stored: those that the client gave. */
export function storedSettings(given: GivenSettings | null): ModelSettings {
  const set = Object.entries(given ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries(set) as ModelSettings;
}

/** The settings in a skill's request. */
interface RequestSettings
  extends Pick<ModelCall, 'temperature' | 'effort' | 'timeoutMs' | 'firstByteTimeoutMs'> {
  readonly maxOutputTokens?: number;
}

/** Seconds for which a turn waits for a provider that does not serve it. */
const waitForProvider = 3_600;

/** How the calls of a request are made. */
interface CallSettings extends Omit<RequestSettings, 'maxOutputTokens'> {
  /** Most tokens of an answer. */
  readonly output: number;
  /** The context window, in tokens. */
  readonly window: number;
  /** Seconds for which a turn waits for a provider that does not serve it. */
  readonly waitForProvider: number;
}

/**
 * The settings of a request's calls: the skill's, else the agent's, else the platform's. `platform` has its window, as far
 * as the models have room for it.
 */
export function callSettings(
  request: RequestSettings,
  settings: ModelSettings,
  platform: { readonly window: number; readonly output: number },
): CallSettings {
  const window = settings.context_tokens ?? platform.window;
  const output = settings.max_output_tokens ?? Math.min(platform.output, window / 2);
  return {
    output: Math.min(request.maxOutputTokens ?? Infinity, Math.floor(output)),
    window,
    waitForProvider: settings.wait_for_provider ?? waitForProvider,
    temperature: request.temperature ?? settings.temperature,
    effort: request.effort ?? settings.effort,
    timeoutMs: request.timeoutMs ?? settings.timeout_ms,
    firstByteTimeoutMs: request.firstByteTimeoutMs ?? settings.first_byte_timeout_ms,
  };
}
