/** How agents think, put together: models, what they cost, what is recorded of them, their tools. */

import type { Metrics } from '../../adapters/http/metrics.ts';
import { ProviderModels } from '../../adapters/models/models.ts';
import { Prices } from '../../adapters/models/prices.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Context } from '../../core/context/context.ts';
import type { Conversations } from '../../core/conversations/conversations.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import { type SkillRegistry, skillKey } from '../../core/skills/registry.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import { readSkillFile } from '../../core/skills/sources/skill-folder.ts';
import type { ReadSkillFile } from '../../core/thinking/attempt.ts';
import { ModelThinking } from '../../core/thinking/thinking.ts';
import { scheduledRuns } from '../../platform/schedules/run-ends.ts';
import { providerSettings, warnOfModel } from './provider-settings.ts';
import { fromDefinitions } from './skills.ts';

/** Of other slices. */
interface ThinkingSlices {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly conversations: Conversations;
  readonly credentials: Credentials;
  readonly skills: SkillRegistry;
}

/** `definitions` are those that the executors have loaded last. */
export function composeThinking(
  context: Context,
  { agents, apiKeys, conversations, credentials, skills }: ThinkingSlices,
  definitions: () => readonly LoadedSkill[],
  metrics: Metrics,
): ModelThinking {
  const { config, log } = context;
  const { providers } = config;
  warnOfModel('DEFAULT_MODEL', config.defaultModel, { providers, log });
  const models = new ProviderModels({
    clock: context.clock,
    onCall: (call) => metrics.modelCalled(call),
    silence: {
      firstTokenMs: config.modelFirstTokenTimeoutMs,
      betweenMs: config.modelSilenceTimeoutMs,
      keepAliveMs: config.modelKeepAliveTimeoutMs,
    },
    settingsOf: providerSettings(providers, credentials),
  });
  return new ModelThinking({
    context,
    agents,
    apiKeys,
    conversations,
    skills,
    models,
    readSkillFile: skillFileReader(definitions),
    prices: new Prices(config.modelPrices),
    scheduledJobOf: scheduledRuns.scheduledJobOf,
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
