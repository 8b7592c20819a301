/** Warns of a model in the environment that cannot be called as it is. */

import { accessTo, partsOfModel } from '../../adapters/models/providers.ts';
import type { Config } from '../../core/config/config.ts';
import type { Logger } from '../../kernel/log.ts';

/** Not the end of a start: organizations may have accounts of their own. */
export function warnOfModel(
  variable: string,
  model: string | null,
  { providers, log }: { readonly providers: Config['providers']; readonly log: Logger },
): void {
  if (model === null) return;
  try {
    const { provider } = partsOfModel(model);
    accessTo(provider, providers.get(provider));
  } catch (error) {
    const reason = (error as Error).message;
    log.warn({ [variable.toLowerCase()]: model, reason }, `${variable} cannot be used as it is`);
  }
}
