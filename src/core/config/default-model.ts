/** Whether `DEFAULT_MODEL` and `EMBEDDING_MODEL` can be called with what the environment says of their providers. */

import { accessTo, knownProviders, partsOfModel } from '../../adapters/models/providers.ts';
import { nearestName } from '../../kernel/misspelt.ts';
import type { Config } from './config.ts';

export interface ModelSettingFault {
  /** Whether there is nothing at all of this name, so that it is probably misspelt. */
  readonly isUnknown: boolean;
  readonly provider: string;
  /** A sentence, and what to do. */
  readonly message: string;
  readonly remedy: string;
}

/** Null where there is no fault in a variable that names a model. */
export function modelSettingFault(
  variable: string,
  model: string,
  providers: Config['providers'],
): ModelSettingFault | null {
  const { provider } = partsOfModel(model);
  const settings = providers.get(provider);
  try {
    accessTo(provider, settings);
    return null;
  } catch (error) {
    const isUnknown = settings === undefined && !knownProviders.includes(provider);
    const [fault = '', remedy = ''] = (error as Error).message.split(': ');
    const near = isUnknown ? nearestName(provider, [...knownProviders, ...providers.keys()]) : null;
    const meant = near === null ? '' : `did you mean ${near}? Else `;
    const message = `${variable}=${model}: ${lowerFirst(fault)}`;
    return { isUnknown, provider, message, remedy: `${meant}${remedy}` };
  }
}

/** The beginning of a sentence within another; not of the name of a variable. */
function lowerFirst(text: string): string {
  return /^[A-Z][a-z]/.test(text) ? text.slice(0, 1).toLowerCase() + text.slice(1) : text;
}
