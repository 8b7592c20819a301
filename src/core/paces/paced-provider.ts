/**
 * What shares a pace: the calls of one provider, at one address, with one credential. Its models have paces of their own
 * beside it, because providers limit each model's rate, and fail for some alone. Pure.
 */
import {
  type MinuteLimits,
  type ProviderSettings,
  partsOfModel,
} from '../../adapters/models/providers.ts';
import { digestOf } from '../../kernel/digest.ts';

export interface PacedProvider {
  /** Tells it from the same provider with another credential. */
  readonly name: string;
  /** The same of one of its models. */
  readonly model: string;
  /** As models name it. */
  readonly provider: string;
  readonly limits: MinuteLimits;
  /** Whose calls these are. */
  readonly organization: string;
  /** Whether it is the platform's, for all organizations. */
  readonly isShared: boolean;
}

export const unlimited: MinuteLimits = { calls: null, tokens: null };

/** The provider of a model, as an organization reaches it. Throws a ModelError. */
export function pacedProviderOf(
  model: string,
  settings: ProviderSettings | undefined,
  organizationId: string,
): PacedProvider {
  const { provider, name: ofModel } = partsOfModel(model);
  const { apiKey = null, baseUrl = null, source = 'platform', limits } = settings ?? {};
  // An organization's own credential has a pace of its own, even where another one has stored the same.
  const owner = source === 'organization' ? organizationId : null;
  const name = `${provider} ${digestOf(JSON.stringify([owner, baseUrl, apiKey]))}`;
  const isShared = owner === null;
  const organization = organizationId;
  return {
    name,
    model: `${name} ${ofModel}`,
    provider,
    limits: limits ?? unlimited,
    organization,
    isShared,
  };
}
