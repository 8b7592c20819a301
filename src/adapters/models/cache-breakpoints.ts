/**
 * Marks the parts of a request that Anthropic caches: what is before a mark is read from the cache by a later
 * request that begins with the same bytes, for five minutes. OpenAI and most others cache by themselves what
 * two requests begin with. Pure.
 *
 * A request may have four marks: the tools, the system text, the end of this request, and the end of the
 * former one. The provider looks for an earlier entry only 20 blocks before a mark, which a turn with many
 * tools exceeds, so the former end is marked too. A request that no other will follow is not marked at its
 * end, because writing costs a quarter more than reading without the cache.
 */
import type { SdkOptions } from './prompt.ts';

const mark = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const;

/** The same request, with its marks. */
export function withCacheBreakpoints(options: SdkOptions): SdkOptions {
  const { prompt, tools } = options;
  const former = prompt.findLastIndex(({ role }) => role === 'assistant') - 1;
  const goesOn = tools !== undefined || former >= 0;
  const last = prompt.length - 1;
  const isMarked = (i: number) =>
    prompt[i]?.role === 'system' || (goesOn && (i === last || i === former));
  return {
    ...options,
    prompt: prompt.map((message, i) =>
      isMarked(i) ? { ...message, providerOptions: mark } : message,
    ),
    ...(tools === undefined
      ? {}
      : {
          tools: tools.map((tool, i) =>
            i === tools.length - 1 && tool.type === 'function'
              ? { ...tool, providerOptions: mark }
              : tool,
          ),
        }),
  };
}
