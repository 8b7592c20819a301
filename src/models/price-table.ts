/**
 * What OpenAI and Anthropic ask for a million tokens at their standard rate, in dollars. Only models are listed
 * whose prices are certain; others have an unknown price until the operator sets it. A price that changes gets
 * another line with its first day, so that what is in here stays true for its time.
 *
 * Sources: platform.openai.com/docs/pricing and docs.anthropic.com/en/docs/about-claude/pricing, as of November 2025.
 * Anthropic's `cache_write` is that of entries of five minutes, which the platform asks for. OpenAI writes for free
 * beside the input. Reasoning is billed as output by both.
 */

/** The model, its first day, input, read from a cache, written to a cache, output. */
type Line = readonly [
  model: string,
  from: string,
  input: number,
  cacheRead: number,
  cacheWrite: number,
  output: number,
];

export const priceLines: readonly Line[] = [
  ['openai/gpt-5.1', '2025-11-13', 1.25, 0.125, 1.25, 10],
  ['openai/gpt-5', '2025-08-07', 1.25, 0.125, 1.25, 10],
  ['openai/gpt-5-mini', '2025-08-07', 0.25, 0.025, 0.25, 2],
  ['openai/gpt-5-nano', '2025-08-07', 0.05, 0.005, 0.05, 0.4],
  ['openai/gpt-4.1', '2025-04-14', 2, 0.5, 2, 8],
  ['openai/gpt-4.1-mini', '2025-04-14', 0.4, 0.1, 0.4, 1.6],
  ['openai/gpt-4.1-nano', '2025-04-14', 0.1, 0.025, 0.1, 0.4],
  ['openai/gpt-4o', '2024-10-02', 2.5, 1.25, 2.5, 10],
  ['openai/gpt-4o-2024-05-13', '2024-05-13', 5, 5, 5, 15],
  ['openai/gpt-4o-mini', '2024-10-02', 0.15, 0.075, 0.15, 0.6],
  ['openai/o3', '2025-06-10', 2, 0.5, 2, 8],
  ['openai/o4-mini', '2025-04-16', 1.1, 0.275, 1.1, 4.4],
  ['openai/o3-mini', '2025-01-31', 1.1, 0.55, 1.1, 4.4],
  ['openai/o1', '2024-12-17', 15, 7.5, 15, 60],
  ['anthropic/claude-opus-4-5', '2025-11-24', 5, 0.5, 6.25, 25],
  ['anthropic/claude-opus-4-1', '2025-08-05', 15, 1.5, 18.75, 75],
  ['anthropic/claude-opus-4', '2025-05-22', 15, 1.5, 18.75, 75],
  ['anthropic/claude-sonnet-4-5', '2025-09-29', 3, 0.3, 3.75, 15],
  ['anthropic/claude-sonnet-4', '2025-05-22', 3, 0.3, 3.75, 15],
  ['anthropic/claude-3-7-sonnet', '2025-02-24', 3, 0.3, 3.75, 15],
  ['anthropic/claude-3-5-sonnet', '2024-10-22', 3, 0.3, 3.75, 15],
  ['anthropic/claude-haiku-4-5', '2025-10-15', 1, 0.1, 1.25, 5],
  ['anthropic/claude-3-5-haiku', '2024-12-05', 0.8, 0.08, 1, 4],
  ['anthropic/claude-3-haiku', '2024-08-14', 0.25, 0.03, 0.3, 1.25],
];
