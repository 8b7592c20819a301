/** How agents think, put together: models, what they cost, what is recorded of them, their tools. */

import type { Metrics } from '../../adapters/http/metrics.ts';
import type { Models } from '../../adapters/models/model.ts';
import { ProviderModels } from '../../adapters/models/models.ts';
import { Prices } from '../../adapters/models/prices.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Config } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import type { Conversations } from '../../core/conversations/conversations.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import { type SkillRegistry, skillKey } from '../../core/skills/registry.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import { readSkillFile } from '../../core/skills/sources/skill-folder.ts';
import type { ReadSkillFile } from '../../core/thinking/attempt.ts';
import { Thinking } from '../../core/thinking/thinking.ts';
import { scheduledRuns } from '../../platform/schedules/run-ends.ts';
import { providerSettings, warnOfModel } from './provider-settings.ts';
import { fromDefinitions } from './skills.ts';

export interface ThinkingDeps {
  readonly base: Context;
  readonly config: ThinkingConfig;
  /** Of other slices. */
  readonly slices: {
    readonly agents: Agents;
    readonly apiKeys: ApiKeys;
    readonly conversations: Conversations;
    readonly credentials: Pick<Credentials, 'settingsOf'>;
    readonly skills: SkillRegistry;
  };
  /** Those that the executors have loaded last. */
  definitions(): readonly LoadedSkill[];
  readonly metrics: Pick<Metrics, 'modelCalled'>;
}

type ThinkingConfig = Pick<
  Config,
  | 'defaultModel'
  | 'providers'
  | 'modelFirstTokenTimeoutMs'
  | 'modelSilenceTimeoutMs'
  | 'modelKeepAliveTimeoutMs'
  | 'agentTurnsMax'
  | 'agentTokensMax'
  | 'modelOutputTokens'
  | 'modelPrices'
  | 'modelContextTokens'
>;

export function composeThinking(deps: ThinkingDeps): Thinking {
  const { base, config, slices } = deps;
  const { agents, apiKeys, conversations, skills } = slices;
  const { scheduledJobOf } = scheduledRuns;
  const prices = new Prices(config.modelPrices);
  warnOfModel('DEFAULT_MODEL', config.defaultModel, { providers: config.providers, log: base.log });
  return new Thinking({
    clock: base.clock,
    agents,
    skills,
    readSkillFile: skillFileReader(deps.definitions),
    models: modelsOf(deps),
    conversations,
    calls: { context: base, conversations, prices, scheduledJobOf },
    scopesOf: async (apiKeyId) => (await apiKeys.cachedCaller(apiKeyId))?.scopes,
    defaultModel: config.defaultModel,
    limits: {
      turnsMax: config.agentTurnsMax,
      tokensMax: config.agentTokensMax,
      outputTokens: config.modelOutputTokens,
      contextTokens: config.modelContextTokens,
    },
  });
}

function modelsOf({ base, config, metrics, slices }: ThinkingDeps): Models {
  return new ProviderModels({
    clock: base.clock,
    onCall: (call) => metrics.modelCalled(call),
    silence: {
      firstTokenMs: config.modelFirstTokenTimeoutMs,
      betweenMs: config.modelSilenceTimeoutMs,
      keepAliveMs: config.modelKeepAliveTimeoutMs,
    },
    settingsOf: providerSettings(config.providers, slices.credentials),
  });
}

/** Reads the files in the folders of skills. */
function skillFileReader(definitions: () => readonly LoadedSkill[]): ReadSkillFile {
  const folders = fromDefinitions(
    definitions,
    (all) =>
      new Map(
        all.flatMap(({ category, version, name, folder }) =>
          folder === null ? [] : [[skillKey(category, version, name), folder]],
        ),
      ),
  );
  return async (skill, path, offset) => {
    const folder = folders().get(skill);
    if (folder === undefined) return { error: `There is no folder of ${skill}.` };
    return readSkillFile(folder, path, { offset: offset ?? 0 });
  };
}
