/** The model of agents that name none: whether its provider is known and has credentials. */
import type { Config } from '../../config/config.ts';
import { defaultModelFault } from '../../config/default-model.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'model';

/** `stored` are the providers that some organization has credentials for. */
export function checkModel(config: Config, stored: readonly string[]): Finding[] {
  if (config.defaultModel === null) return [];
  const found = defaultModelFault(config);
  if (found === null || stored.includes(found.provider)) {
    return [ok(check, `There are credentials for ${config.defaultModel}`)];
  }
  const { isUnknown, message, remedy } = found;
  return [isUnknown ? fault(check, message, remedy) : warning(check, message, remedy)];
}
