/**
 * Estimates the tokens of a prompt before it is sent, from its size and from the provider's reports for
 * earlier prompts of the same model. Tokenizers differ between models, and many are not published.
 */

/** For a model without reports. Sizes count three bytes a token; English has four. */
const unknownRatio = 0.75;
/** Reports kept for a model; the largest is used, with this margin. */
const reportsMax = 20;
const margin = 1.1;
/** Ratios outside these bounds are errors of the provider's counting. */
const bounds = { least: 0.02, most: 3 };
/** Models with reports in memory; the oldest is evicted first. */
const modelsMax = 1_000;

export type Estimates = ReturnType<typeof createEstimates>;

export function createEstimates() {
  const ratios = new Map<string, number[]>();
  return {
    /** Tokens that a prompt of this size (see `tokensOfText`) will have. */
    tokens(model: string, size: number): number {
      const known = ratios.get(model);
      const ratio = known === undefined ? unknownRatio : Math.max(...known) * margin;
      // Rounding errors of floating point must not add a token.
      return Math.ceil(size * ratio - 1e-6);
    },

    /** Records the reported tokens of a prompt of this size. */
    learn(model: string, size: number, reported: number): void {
      if (reported <= 0) return;
      const ratio = Math.min(bounds.most, Math.max(bounds.least, reported / size));
      const known = ratios.get(model) ?? [];
      if (known.length === 0 && ratios.size >= modelsMax) {
        ratios.delete(ratios.keys().next().value as string);
      }
      ratios.set(model, [...known, ratio].slice(-reportsMax));
    },
  };
}
