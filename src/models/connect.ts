/**
 * The AI SDK's models. Their packages take tens of milliseconds and megabytes to load, so they are
 * loaded at the first call that needs them. Everything is said here, because the SDK reads from the
 * environment what it is not told.
 */
import { lazily } from '../kernel/lazy.ts';
import type { ModelCall } from './model.ts';
import { promptOf, type SdkModel, type SdkOptions } from './prompt.ts';
import type { Access } from './providers.ts';
import { isObjectSchema, isStrictSchema } from './strict-schema.ts';

const openai = lazily(() => import('@ai-sdk/openai'));
const anthropic = lazily(() => import('@ai-sdk/anthropic'));
const compatible = lazily(() => import('@ai-sdk/openai-compatible'));

/** A model that makes its requests by `fetch`. */
export async function connect(
  { provider, baseUrl: baseURL, apiKey }: Access,
  name: string,
  fetch: typeof globalThis.fetch,
): Promise<SdkModel> {
  if (provider === 'anthropic') {
    const { createAnthropic } = await anthropic();
    return apiKey === null
      ? createAnthropic({ baseURL, apiKey: 'none', fetch: withoutKey(fetch) }).messages(name)
      : createAnthropic({ baseURL, apiKey, fetch }).messages(name);
  }
  if (provider === 'openai' && apiKey !== null) {
    // Chat, not responses: every gateway speaks it.
    return (await openai()).createOpenAI({ baseURL, apiKey, fetch }).chat(name);
  }
  const { createOpenAICompatible } = await compatible();
  const settings = { baseURL, fetch, includeUsage: true, supportsStructuredOutputs: true };
  return createOpenAICompatible({
    ...settings,
    name: 'compatible',
    ...(apiKey === null ? {} : { apiKey }),
  }).chatModel(name);
}

/** The SDK knows no Anthropic without a key. */
function withoutKey(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (url, init) => {
    const headers = new Headers(init?.headers);
    headers.delete('x-api-key');
    return fetch(url, { ...init, headers });
  };
}

/** What the SDK is asked. */
export function optionsOf(protocol: Access['protocol'], call: ModelCall): SdkOptions {
  const { schema } = call;
  const strictJsonSchema = isStrictSchema(schema);
  return {
    prompt: promptOf(protocol, call),
    maxOutputTokens: call.maxOutputTokens,
    ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
    ...(call.tools.length === 0 ? {} : { tools: call.tools.map(toolOf) }),
    // Any other schema stands in the system text alone.
    ...(schema === undefined || !isObjectSchema(schema)
      ? {}
      : { responseFormat: { type: 'json', schema, name: 'answer' } as const }),
    providerOptions: {
      openai: { strictJsonSchema },
      openaiCompatible: { strictJsonSchema },
      // Arguments are passed on whole, so they need not come before they are checked.
      anthropic: { toolStreaming: false },
    },
  };
}

function toolOf({ name, description, parameters }: ModelCall['tools'][number]) {
  return { type: 'function', name, description, inputSchema: parameters } as const;
}
