/**
 * The AI SDK's models. Their packages take tens of milliseconds and megabytes to load, so each is loaded
 * at the first call that needs it. Every setting is passed explicitly, because the SDK reads missing
 * ones from the environment.
 */
import { lazily } from '../../kernel/lazy.ts';
import { withCacheBreakpoints } from './cache-breakpoints.ts';
import { effortOptions } from './effort.ts';
import type { ModelCall } from './model.ts';
import { promptOf, type SdkModel, type SdkOptions } from './prompt.ts';
import type { Access } from './providers.ts';
import { isObjectSchema, isStrictSchema } from './strict-schema.ts';

const openaiSdk = lazily(() => import('@ai-sdk/openai'));
const anthropicSdk = lazily(() => import('@ai-sdk/anthropic'));
const compatible = lazily(() => import('@ai-sdk/openai-compatible'));

/** A model of the SDK that sends its requests through `fetch`. */
export async function connect(
  { provider, baseUrl: baseURL, apiKey }: Access,
  name: string,
  fetch: typeof globalThis.fetch,
): Promise<SdkModel> {
  if (provider === 'anthropic') {
    const { createAnthropic } = await anthropicSdk();
    return apiKey === null
      ? createAnthropic({ baseURL, apiKey: 'none', fetch: withoutKey(fetch) }).messages(name)
      : createAnthropic({ baseURL, apiKey, fetch }).messages(name);
  }
  if (provider === 'openai' && apiKey !== null) {
    // The chat API, not the responses API: every gateway supports it.
    return (await openaiSdk()).createOpenAI({ baseURL, apiKey, fetch }).chat(name);
  }
  const { createOpenAICompatible } = await compatible();
  const settings = { baseURL, fetch, includeUsage: true, supportsStructuredOutputs: true };
  return createOpenAICompatible({
    ...settings,
    name: 'compatible',
    ...(apiKey === null ? {} : { apiKey }),
  }).chatModel(name);
}

/** Removes the key that the SDK requires of Anthropic. */
function withoutKey(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (url, init) => {
    const headers = new Headers(init?.headers);
    headers.delete('x-api-key');
    return fetch(url, { ...init, headers });
  };
}

/** The SDK's options for a call. */
export function optionsOf(protocol: Access['protocol'], call: ModelCall): SdkOptions {
  const { schema } = call;
  const strictJsonSchema = isStrictSchema(schema);
  const { maxOutputTokens, openai, anthropic } = effortOptions(protocol, call);
  const options: SdkOptions = {
    prompt: promptOf(protocol, call),
    maxOutputTokens,
    ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
    ...(call.tools.length === 0 ? {} : { tools: call.tools.map(toolOf) }),
    // Other schemas are described in the system text alone.
    ...(schema === undefined || !isObjectSchema(schema)
      ? {}
      : { responseFormat: { type: 'json', schema, name: 'answer' } as const }),
    providerOptions: {
      openai: { strictJsonSchema, ...openai },
      openaiCompatible: { strictJsonSchema, ...openai },
      // Arguments are forwarded when complete, so they need not stream before they are validated.
      anthropic: { toolStreaming: false, ...anthropic },
    },
  };
  return protocol === 'messages' ? withCacheBreakpoints(options) : options;
}

function toolOf({ name, description, parameters }: ModelCall['tools'][number]) {
  return { type: 'function', name, description, inputSchema: parameters } as const;
}
