/** The model of agents that name none, and that of vectors: whether its provider is known and has credentials. */
import type { Config } from '../../../core/config/config.ts';
import { modelSettingFault } from '../../../core/config/default-model.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'model';

/** `stored` are the providers that some organization has credentials for. */
export function checkModel(
  { defaultModel, embeddingModel, providers }: Config,
  stored: readonly string[],
): Finding[] {
  const given = [
    ['DEFAULT_MODEL', defaultModel],
    ['EMBEDDING_MODEL', embeddingModel],
  ] as const;
  return given.flatMap(([variable, model]) => {
    if (model === null) return [];
    const found = modelSettingFault(variable, model, providers);
    if (found === null || stored.includes(found.provider)) {
      return [ok(check, `There are credentials for ${model}`)];
    }
    const { isUnknown, message, remedy } = found;
    return [isUnknown ? fault(check, message, remedy) : warning(check, message, remedy)];
  });
}
