/** The cost of a call of a model, in the form that steps, messages and budgets record. Pure. */
import { mayBeCharged, type Usage } from '../../adapters/models/model.ts';
import { costOf, type Price, ratesFor } from '../../adapters/models/price.ts';

/** The columns of the tokens that were reported. */
export function countsOf({ prompt, completion, cacheRead, cacheWrite, reasoning }: Usage) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    cache_read_tokens: cacheRead ?? null,
    cache_write_tokens: cacheWrite ?? null,
    reasoning_tokens: reasoning ?? null,
  };
}

/**
 * In nano-dollars: `cost` is for the reported tokens, null when the price is unknown or no tokens were reported;
 * `estimatedCost` is for the `estimated` tokens, which replace unreported counts.
 */
export function costsOf(
  usage: Usage,
  estimated: number,
  { expected, price }: { readonly expected: number; readonly price: Price | null },
) {
  const isUnused = !mayBeCharged(usage);
  if (price === null) {
    return { cost: isUnused ? 0 : null, estimatedCost: 0, isPriced: isUnused };
  }
  const prompt = usage.prompt === null ? Math.min(expected, estimated) : 0;
  const estimate = { prompt, completion: estimated - prompt };
  const rates = ratesFor(price, usage.prompt ?? prompt);
  return {
    cost: costOf(usage, rates),
    estimatedCost: costOf(estimate, rates) ?? 0,
    isPriced: true,
  };
}
