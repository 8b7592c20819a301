/** How agents think, put together: models, what they cost, what is recorded of them, their tools. */
import type { Agents } from '../agents/agents.ts';
import { createJournals, type Journals } from '../agents/journal.ts';
import { createThinking, type Thinking } from '../agents/thinking.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Config } from '../config.ts';
import type { Conversations } from '../conversations/conversations.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { Database } from '../database/database.ts';
import type { Metrics } from '../http/metrics.ts';
import { isHeld } from '../jobs/jobs.store.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { meteredModels } from '../models/metered-models.ts';
import { ModelError } from '../models/model.ts';
import { createModels } from '../models/models.ts';
import { accessTo, partsOfModel } from '../models/providers.ts';
import { scheduledRuns } from '../schedules/run-ends.ts';
import { type SkillRegistry, skillKey } from '../skills/registry.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { readSkillFile } from '../skills/sources/skill-folder.ts';
import type { Recorder } from '../statistics/recorder.ts';
import { createReservations } from '../usage/reservations.ts';

export function composeThinking(parts: {
  config: Config;
  log: Logger;
  database: Database;
  clock: Clock;
  metrics: Pick<Metrics, 'modelCalled' | 'tokensUsed'>;
  agents: Agents;
  apiKeys: ApiKeys;
  conversations: Conversations;
  credentials: Credentials;
  skills: SkillRegistry;
  definitions: readonly LoadedSkill[];
  recorder: Pick<Recorder, 'used'>;
}): { journals: Journals; thinking: Thinking } {
  const {
    config,
    database,
    clock,
    metrics,
    apiKeys,
    conversations,
    credentials,
    skills,
    recorder,
  } = parts;
  const journals = createJournals({
    database,
    conversations,
    reservations: createReservations(),
    clock,
    isHeld,
    scheduledJobOf: scheduledRuns.scheduledJobOf,
    observe(job, used) {
      recorder.used(job, used);
      metrics.tokensUsed(used);
    },
  });
  const models = createModels({
    clock,
    silence: {
      firstTokenMs: config.modelFirstTokenTimeoutMs,
      betweenMs: config.modelSilenceTimeoutMs,
    },
    async settingsOf(organizationId, provider) {
      const platform = config.providers.get(provider);
      const own = await credentials.settingsOf(organizationId, provider);
      if (own === undefined) return platform;
      if ('fault' in own) throw new ModelError('credentials', own.fault);
      // The platform's address serves an organization's key; its key serves no other address.
      const baseUrl = own.baseUrl ?? platform?.baseUrl ?? null;
      // A credential with an address and no key belongs to a provider that requires none.
      return { ...own, baseUrl, isOpen: own.apiKey === null };
    },
  });
  warnOfDefault(config, parts.log);
  const folders = new Map(
    parts.definitions.flatMap(({ category, version, name, folder }) =>
      folder === null ? [] : [[skillKey(category, version, name), folder]],
    ),
  );
  const thinking = createThinking({
    agents: parts.agents,
    skills,
    conversations,
    models: meteredModels(models, clock, (call) => metrics.modelCalled(call)),
    scopesOf: async (apiKeyId) => (await apiKeys.cachedCaller(apiKeyId))?.scopes,
    async readFile(skill, path, offset) {
      const folder = folders.get(skill);
      if (folder === undefined) return { error: `There is no folder of ${skill}.` };
      return readSkillFile(folder, path, { offset: offset ?? 0 });
    },
    defaultModel: config.defaultModel,
    limits: {
      turnsMax: config.agentTurnsMax,
      tokensMax: config.agentTokensMax,
      outputTokens: config.modelOutputTokens,
      contextTokens: config.modelContextTokens,
    },
  });
  return { journals, thinking };
}

/** Not the end of a start: organizations may have accounts of their own. */
function warnOfDefault({ defaultModel, providers }: Config, log: Logger): void {
  if (defaultModel === null) return;
  try {
    const { provider } = partsOfModel(defaultModel);
    accessTo(provider, providers.get(provider));
  } catch (error) {
    const reason = (error as Error).message;
    log.warn({ default_model: defaultModel, reason }, 'DEFAULT_MODEL cannot be used as it is');
  }
}
