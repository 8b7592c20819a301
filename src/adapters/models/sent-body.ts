import type { Json } from '../../kernel/json.ts';
import type { ModelCall } from './model.ts';
import { accessTo, partsOfModel } from './providers.ts';

/** The body that a provider is sent for a call. Throws where no request can be made of the call. */
export function bodyOfCall(call: ModelCall): Json {
  const { provider, name } = partsOfModel(call.model);
  return accessTo(provider, call.settings).protocol.bodyOf(call, name);
}
