/** Whether `DEFAULT_MODEL` can be called with what the environment says of its provider. */
import { nearestName } from '../kernel/misspelt.ts';
import { accessTo, knownProviders, partsOfModel } from '../models/providers.ts';
import type { Config } from './config.ts';

export interface DefaultModelFault {
  /** Whether there is nothing at all of this name, so that it is probably misspelt. */
  readonly isUnknown: boolean;
  readonly provider: string;
  /** A sentence, and what to do. */
  readonly message: string;
  readonly remedy: string;
}

/** Null where there is no fault, or no default model. */
export function defaultModelFault({
  defaultModel,
  providers,
}: Pick<Config, 'defaultModel' | 'providers'>): DefaultModelFault | null {
  if (defaultModel === null) return null;
  const { provider } = partsOfModel(defaultModel);
  const settings = providers.get(provider);
  try {
    accessTo(provider, settings);
    return null;
  } catch (error) {
    const isUnknown = settings === undefined && !knownProviders.includes(provider);
    const [fault = '', remedy = ''] = (error as Error).message.split(': ');
    const near = isUnknown ? nearestName(provider, [...knownProviders, ...providers.keys()]) : null;
    const meant = near === null ? '' : `did you mean ${near}? Else `;
    const message = `DEFAULT_MODEL=${defaultModel}: ${lowerFirst(fault)}`;
    return { isUnknown, provider, message, remedy: `${meant}${remedy}` };
  }
}

/** The beginning of a sentence within another; not of the name of a variable. */
function lowerFirst(text: string): string {
  return /^[A-Z][a-z]/.test(text) ? text.slice(0, 1).toLowerCase() + text.slice(1) : text;
}
