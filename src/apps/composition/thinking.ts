/** How agents think, put together: models, what they cost, what is recorded of them, their tools. */

import type { Metrics } from '../../adapters/http/metrics.ts';
import { KnownModels } from '../../adapters/models/known-models.ts';
import { ProviderModels } from '../../adapters/models/models.ts';
import { Prices } from '../../adapters/models/prices.ts';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Context } from '../../core/context/context.ts';
import type { Conversations } from '../../core/conversations/conversations.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import type { Files } from '../../core/files/files.ts';
import type { PromptSettings } from '../../core/journal/prompts/prompt-settings.ts';
import type { ProviderPaces } from '../../core/paces/provider-paces.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import { SkillFolders } from '../../core/skills/sources/skill-folders.ts';
import { Capacity } from '../../core/thinking/capacity.ts';
import { DocumentReader } from '../../core/thinking/document-reader.ts';
import { ModelThinking } from '../../core/thinking/thinking.ts';
import { warnOfModel } from './warn-of-model.ts';

/** Bytes that files take in this process at a time, for calls of models: four times their own. */
const fileBytesMax = 256 * 1024 * 1024;

/** Of other slices. */
interface ThinkingSlices {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly conversations: Conversations;
  readonly credentials: Credentials;
  readonly expressions: Expressions;
  readonly skills: SkillRegistry;
  readonly files: Files;
  readonly paces: ProviderPaces;
  readonly prompts: PromptSettings;
}

/** `definitions` are those that the executors have loaded last. */
export function composeThinking(
  context: Context,
  {
    agents,
    apiKeys,
    conversations,
    credentials,
    expressions,
    skills,
    files,
    paces,
    prompts,
  }: ThinkingSlices,
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
  });
  return new ModelThinking({
    context,
    agents,
    apiKeys,
    conversations,
    credentials,
    expressions,
    skills,
    models,
    paces,
    files,
    documents: new DocumentReader(),
    fileBytes: new Capacity(fileBytesMax),
    skillFolders: new SkillFolders(definitions),
    known: new KnownModels(config.modelAbilities),
    prices: new Prices(config.modelPrices),
    prompts,
  });
}
