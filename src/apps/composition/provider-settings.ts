/** How an organization reaches a provider of models: with its own credentials, or with those of the platform. */

import { ModelError } from '../../adapters/models/model.ts';
import { accessTo, type ProviderSettings, partsOfModel } from '../../adapters/models/providers.ts';
import type { Config } from '../../core/config/config.ts';
import type { Credentials } from '../../core/credentials/credentials.ts';
import type { Logger } from '../../kernel/log.ts';

export function providerSettings(providers: Config['providers'], credentials: Credentials) {
  return async (
    organizationId: string,
    provider: string,
  ): Promise<ProviderSettings | undefined> => {
    const platform = providers.get(provider);
    const own = await credentials.settingsOf(organizationId, provider);
    if (own === undefined) return platform;
    if ('fault' in own) throw new ModelError('credentials', own.fault);
    // The platform's address serves an organization's key; its key serves no other address.
    const baseUrl = own.baseUrl ?? platform?.baseUrl ?? null;
    // A credential with an address and no key belongs to a provider that requires none.
    return { ...own, baseUrl, isOpen: own.apiKey === null };
  };
}

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
